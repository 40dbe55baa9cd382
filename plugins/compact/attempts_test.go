package compact_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
)

// A report from before a compaction does not count after it, also when the model is silent
// about its usage from then on.
func TestOldReports(t *testing.T) {
	var inputs []compact.Input
	n := 0
	w := &walker{calls: 6, usage: func(inference.Request) (u inference.Usage) {
		if n++; n == 3 {
			u.InputTokens = 5000
		}
		return u
	}}
	_, th, rec := open(t, w, compact.New(numbered(&inputs)))
	ask(t, th, agent(`{"max_tokens": 4000, "keep_recent": 2, "min_saving": 50}`), "go")
	require.Equal(t, []string{"4 done"}, fates(rec, "compact"))
}

// Nor does one count that is about a history which was edited since.
func TestReportOfAnotherHistory(t *testing.T) {
	var inputs []compact.Input
	w := &walker{usage: func(inference.Request) inference.Usage { return inference.Usage{InputTokens: 5000} }}
	_, th, _ := open(t, w, compact.New(numbered(&inputs)))
	spec := agent(`{"max_tokens": 4000, "keep_recent": 1, "min_saving": 50}`)
	for range 3 {
		ask(t, th, agent(`{"max_tokens": 0}`), "go")
	}
	fork, err := th.Fork(t.Context(), th.Snapshot().Revision(), "", engine.Transcript.Replace(inference.User(strings.Repeat("long ", 200)), inference.Assistant("yes")))
	require.NoError(t, err)
	ask(t, fork, spec, "go")
	require.Empty(t, inputs)
}

// A compaction that nobody asked for has to be worth it; without that it is not begun.
func TestMinSaving(t *testing.T) {
	var inputs []compact.Input
	_, th, rec := open(t, &walker{calls: 5}, compact.New(numbered(&inputs)))
	ask(t, th, agent(`{"max_tokens": 250, "keep_recent": 2, "min_saving": 500}`), "go")
	require.Empty(t, fates(rec, "compact"))
	require.Zero(t, compact.Attempts.Get(th.Snapshot()))

	_, th, rec = open(t, &walker{calls: 5}, compact.New(compact.Options{Summarizer: compact.SummarizerFunc(func(_ context.Context, in compact.Input) (compact.Output, error) {
		return compact.Output{Text: strings.Repeat("x", 4*(in.Tokens+60))}, nil
	})}))
	ask(t, th, agent(`{"max_tokens": 420, "keep_recent": 2, "min_saving": 190}`), "go")
	require.Equal(t, []string{"5 done"}, fates(rec, "compact"))
	require.Contains(t, slices.Collect(letters(th))[0], "and 190 are to be saved")
}

// A note that comes while the summary is written is not lost: another one is written.
func TestNoteMeanwhile(t *testing.T) {
	var inputs []compact.Input
	var th *engine.Thread
	options := numbered(&inputs)
	write := options.Summarizer
	options.Summarizer = compact.SummarizerFunc(func(ctx context.Context, in compact.Input) (compact.Output, error) {
		if len(inputs) == 0 {
			var cmd phase.Command
			cmd.Update(compact.Notes.Append("late"))
			if _, err := th.Submit(ctx, "beside", cmd); err != nil {
				return compact.Output{}, err
			}
		}
		return write.Summarize(ctx, in)
	})
	w := &walker{calls: 3}
	_, th, _ = open(t, w, compact.New(options))
	ask(t, th, agent(small), "go")
	require.Contains(t, w.sent()[3], "<s2>")
	require.Equal(t, []string{"late"}, inputs[1].Notes)
	require.Zero(t, compact.Notes.Get(th.Snapshot()).Len())
}

// An automatic compaction that fails is tried again after more and more steps, and every
// model call goes on with all messages. After a number of failures the digest steps in.
func TestFailuresAreTriedAgain(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		summarize compact.SummarizerFunc
		reason    string
	}{
		"error": {func(context.Context, compact.Input) (compact.Output, error) { return compact.Output{Text: "s"}, boom }, "boom"},
		"panic": {func(context.Context, compact.Input) (compact.Output, error) { panic(boom) }, "compact: the summarizer broke down: it panicked: boom"},
		"empty": {func(context.Context, compact.Input) (compact.Output, error) { return compact.Output{Text: " \n"}, nil }, "compact: the summary is empty"},
		"too long": {func(_ context.Context, in compact.Input) (compact.Output, error) {
			return compact.Output{Text: strings.Repeat("x", 10000)}, nil
		}, "compact: the summary saves too little"},
		"greedy": {func(_ context.Context, in compact.Input) (compact.Output, error) {
			in.Messages[0].Text = "changed"
			in.Messages = in.Messages[:1]
			return compact.Output{}, boom
		}, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			called := 0
			w := &walker{calls: 16}
			_, th, rec := open(t, w, compact.New(compact.Options{Summarizer: compact.SummarizerFunc(func(ctx context.Context, in compact.Input) (compact.Output, error) {
				called++
				return c.summarize(ctx, in)
			})}))
			ask(t, th, agent(`{"max_tokens": 310, "keep_recent": 2, "min_saving": 50, "summary_tokens": 30}`), "go")
			require.Equal(t, []string{"4 done", "6 done", "9 done", "14 done", "16 done"}, fates(rec, "compact"))
			require.Equal(t, 5, called)
			for i, sent := range w.sent()[:13] {
				require.Len(t, strings.Fields(sent), 1+2*i, "nothing is lost")
			}
			for step, want := range map[int]string{14: "a:c13 t:c13", 15: "a:c13 t:c13 a:c14 t:c14", 16: "a:c15 t:c15"} {
				sent := w.sent()[step-1]
				require.True(t, strings.HasPrefix(sent, "u:go u:<"), sent)
				require.True(t, strings.HasSuffix(sent, "> "+want), sent)
			}
			dead := slices.Collect(letters(th))
			require.Len(t, dead, 5)
			require.Regexp(t, "^compact.failed: .*"+c.reason, dead[0])
			require.Equal(t, compact.Backoff{Tries: 3}, compact.Attempts.Get(th.Snapshot()))
		})
	}
}

// What a summarizer used counts for the run, also if its summary does not.
func TestUsageIsAccounted(t *testing.T) {
	for _, text := range []string{"short", ""} {
		w := &walker{calls: 3}
		_, th, _ := open(t, w, compact.New(compact.Options{Summarizer: compact.ByModel(inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			return inference.Response{Message: inference.Assistant(text), Usage: inference.Usage{InputTokens: 70, OutputTokens: 7}}, nil
		}), "cheap")}))
		res := ask(t, th, agent(small), "go")
		require.Equal(t, inference.Usage{InputTokens: 70, OutputTokens: 7}, res.Usage)
		require.Equal(t, text, compact.Held.Get(th.Snapshot()).Text)
	}
}
