package compact_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// walker is a model that calls the tool look as often as told, with ids c1, c2 and so on,
// and says done. What it answers follows from the last message but instructions, so that it does not
// mind what became of the older ones. It keeps the requests.
type walker struct {
	calls int
	usage func(inference.Request) inference.Usage

	mu       sync.Mutex
	requests []inference.Request
}

func (w *walker) Generate(_ context.Context, r inference.Request) (resp inference.Response, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r.Clone())
	if w.usage != nil {
		resp.Usage = w.usage(r)
	}
	n, said := 0, slices.DeleteFunc(slices.Clone(r.Messages), func(m inference.Message) bool { return m.Role == inference.RoleSystem })
	if last := said[len(said)-1]; last.Role == inference.RoleTool {
		n, _ = strconv.Atoi(last.Result.CallID[1:])
	}
	if n == w.calls {
		resp.Message = inference.Assistant("done")
		return resp, nil
	}
	resp.Message = inference.Assistant(fmt.Sprintf("step %d", n+1), inference.ToolCall{ID: fmt.Sprintf("c%d", n+1), Name: "look", Args: "{}"})
	return resp, nil
}

// sent returns what each model call got, a word for each message: its first letter and
// the call id or the text.
func (w *walker) sent() (out []string) {
	for _, r := range w.requests {
		out = append(out, words(r.Messages))
	}
	return out
}

func words(messages []inference.Message) string {
	var out []string
	for _, m := range messages {
		text := m.Text
		switch {
		case m.Role == inference.RoleTool:
			text = m.Result.CallID
		case len(m.ToolCalls) > 0:
			text = m.ToolCalls[0].ID
		case strings.HasPrefix(text, "[Summary"):
			_, text, _ = strings.Cut(text, "\n")
			text = "<" + text + ">"
		}
		out = append(out, string(m.Role[:1])+":"+text)
	}
	return strings.Join(out, " ")
}

// numbered is a summarizer that writes s1, s2 and so on, and what it was given.
func numbered(inputs *[]compact.Input) compact.Options {
	return compact.Options{Summarizer: compact.SummarizerFunc(func(_ context.Context, in compact.Input) (compact.Output, error) {
		*inputs = append(*inputs, in)
		return compact.Output{Text: fmt.Sprintf("s%d", len(*inputs))}, nil
	})}
}

// A result of look is 100 tokens, an answer with its call about 10.
var look = enginetest.StubTool("look", engine.Output{Content: strings.Repeat("seen", 96)})

const small = `{"max_tokens": 250, "keep_recent": 2, "min_saving": 50}`

func agent(section string) engine.AgentSpec {
	return engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{compact.Name: inference.JSON(section)}}
}

func open(t *testing.T, m inference.Model, plugins ...engine.Plugin) (*engine.Engine, *engine.Thread, *enginetest.Recorder) {
	t.Helper()
	config, rec := enginetest.Config(t, append(plugins, tools(look))...)
	config.Model = m
	eng := enginetest.Engine(t, config)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	return eng, th, rec
}

func tools(list ...engine.Tool) engine.Plugin {
	return engine.NewPlugin("tools", func(r *engine.Registrar) error { r.Tool(list...); return nil })
}

func ask(t *testing.T, th *engine.Thread, spec engine.AgentSpec, text string) *engine.Result {
	t.Helper()
	res, err := th.Run(t.Context(), spec, engine.Prompt(text))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	return res
}

func fates(rec *enginetest.Recorder, action string) (out []string) {
	for _, e := range enginetest.Select[engine.ActionFinished](rec.Events()) {
		if e.Action == action {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s %s%s", e.Step, e.Status, e.By, e.Reason, e.Error)))
		}
	}
	return out
}

// Capability G7. When the conversation is too large, a summary takes the place of its
// older messages in what the model gets, and it is told that caches are void. What the
// user wants stays, calls stay with their results, the next summary is made of the last
// one, and the transcript stays whole.
func TestCompaction(t *testing.T) {
	var inputs []compact.Input
	w := &walker{calls: 6}
	_, th, rec := open(t, w, compact.New(numbered(&inputs)))
	ask(t, th, agent(small), "go")
	require.Equal(t, []string{
		"u:go",
		"u:go a:c1 t:c1",
		"u:go a:c1 t:c1 a:c2 t:c2",
		"u:go u:<s1> a:c3 t:c3",
		"u:go u:<s1> a:c3 t:c3 a:c4 t:c4",
		"u:go u:<s2> a:c5 t:c5",
		"u:go u:<s2> a:c5 t:c5 a:c6 t:c6",
	}, w.sent())
	require.Equal(t, "a:c1 t:c1 a:c2 t:c2", words(inputs[0].Messages))
	require.Equal(t, "s1", inputs[1].Former)
	require.Equal(t, "a:c3 t:c3 a:c4 t:c4", words(inputs[1].Messages))

	snap := th.Snapshot()
	require.Equal(t, "u:go a:c1 t:c1 a:c2 t:c2 a:c3 t:c3 a:c4 t:c4 a:c5 t:c5 a:c6 t:c6 a:done", words(engine.Transcript.Get(snap).Slice()))
	held, last := compact.Held.Get(snap), compact.Last.Get(snap)
	require.Equal(t, "s2", held.Text)
	require.Equal(t, 9, held.Upto)
	require.Equal(t, []int{0}, held.Kept)
	require.Equal(t, 2, last.Count)
	require.Equal(t, compact.ReasonSize, last.Reason)
	require.Greater(t, last.Before, 250)
	require.Less(t, last.After, 200)
	require.Zero(t, compact.Attempts.Get(snap))
	require.Equal(t, []string{"4 done", "6 done"}, fates(rec, "compact"))
	require.Equal(t, []string{"4 done", "6 done"}, fates(rec, "compact.invalidated"))

	// The next run goes on with the summary, and what the user wanted first goes into
	// the next one.
	w.requests = nil
	ask(t, th, agent(small), "more")
	require.Equal(t, "u:<s3> a:done u:more", w.sent()[0])
	require.Equal(t, "u:go a:c5 t:c5 a:c6 t:c6", words(inputs[2].Messages))
}

// What the model reports counts more than the estimate, and after a compaction it counts
// no more.
func TestReportedUsage(t *testing.T) {
	var inputs []compact.Input
	w := &walker{calls: 4, usage: func(r inference.Request) inference.Usage {
		return inference.Usage{InputTokens: int64(1000 * len(r.Messages)), OutputTokens: 1}
	}}
	_, th, _ := open(t, w, compact.New(numbered(&inputs)))
	ask(t, th, agent(`{"max_tokens": 4000, "keep_recent": 2, "min_saving": 50}`), "go")
	require.Equal(t, []string{
		"u:go",
		"u:go a:c1 t:c1",
		"u:go a:c1 t:c1 a:c2 t:c2",
		"u:go u:<s1> a:c3 t:c3",
		"u:go u:<s2> a:c4 t:c4",
	}, w.sent())
	require.Equal(t, compact.ReasonUsage, compact.Last.Get(th.Snapshot()).Reason)
}

// Capability M6. A person asks for a compaction with /compact and says what matters; it
// happens before the next model call, however small the conversation is.
func TestSlashCommand(t *testing.T) {
	var inputs []compact.Input
	w := &walker{calls: 2}
	eng, th, _ := open(t, w, compact.New(numbered(&inputs)))
	spec := agent(`{"keep_recent": 1, "instructions": "be brief"}`)
	set, err := slash.For(eng, spec)
	require.NoError(t, err)
	run := func(line string) string {
		reply, err := set.Run(t.Context(), th, nil, line)
		require.NoError(t, err)
		return reply.Text
	}
	require.Equal(t, "There is nothing to compact.", run("/compact"))
	ask(t, th, spec, "go")
	require.Equal(t, "Older messages are replaced by a summary before the model is asked again.", run("/compact keep the names"))
	require.Empty(t, inputs)
	w.requests = nil
	ask(t, th, spec, "more")
	require.Equal(t, "u:<s1> u:more", w.sent()[0])
	require.Equal(t, "keep the names", inputs[0].Instructions)
	require.Equal(t, compact.ReasonCommand, compact.Last.Get(th.Snapshot()).Reason)

	run("/compact")
	run("/compact") // the second one finds nothing to do
	ask(t, th, spec, "more")
	require.Len(t, inputs, 2)
	require.Equal(t, "be brief", inputs[1].Instructions)
	require.Empty(t, slices.Collect(letters(th)))
}

func letters(th *engine.Thread) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, d := range th.DeadLetters() {
			if !yield(d.Action.Name() + ": " + d.Reason) {
				return
			}
		}
	}
}

// Plugins add lines to the next summary, pin messages and schedule compactions; system
// messages stay anyway.
func TestNotesAndPins(t *testing.T) {
	var inputs []compact.Input
	w := &walker{calls: 4}
	_, th, _ := open(t, w, compact.New(numbered(&inputs)), engine.NewPlugin("other", func(r *engine.Registrar) error {
		r.Hook(phase.StepStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			switch pc.Run().Step {
			case 2:
				cmd.Update(compact.Pinned.Add(2), engine.Transcript.Append(inference.System("rule"))) // the result of c1
			case 4:
				cmd.Update(compact.Notes.Append("the door is red"))
				cmd.Schedule(compact.Compact.New(compact.Args{Reason: "tidy", Keep: 1}))
			}
			return cmd, nil
		}))
		return nil
	}))
	ask(t, th, agent(`{"max_tokens": 0}`), "go")
	require.Equal(t, "u:go a:c1 t:c1 s:rule a:c2 t:c2", w.sent()[2])
	require.Equal(t, "u:go a:c1 t:c1 s:rule u:<s1> a:c3 t:c3", w.sent()[3])
	require.Equal(t, []string{"the door is red"}, inputs[0].Notes)
	require.Zero(t, compact.Notes.Get(th.Snapshot()).Len())
}

// Messages that another transform changed in place are sent as changed; one that takes
// older messages away in front of the plugin keeps the summary out, with a warning.
func TestOtherTransforms(t *testing.T) {
	other := func(change func([]inference.Message) []inference.Message) engine.Plugin {
		return engine.NewPlugin("other", func(r *engine.Registrar) error {
			r.Transform(inference.TransformFunc(func(_ context.Context, req inference.Request) (inference.Request, error) {
				req.Messages = change(req.Messages)
				return req, nil
			}))
			return nil
		})
	}
	var inputs []compact.Input
	w := &walker{calls: 4}
	_, th, _ := open(t, w, other(func(m []inference.Message) []inference.Message {
		m[0].Text = "GO"
		return m
	}), compact.New(numbered(&inputs)))
	ask(t, th, agent(small), "go")
	require.Equal(t, "u:GO u:<s1> a:c3 t:c3 a:c4 t:c4", w.sent()[4])

	w = &walker{calls: 4}
	_, th, rec := open(t, w, other(func(m []inference.Message) []inference.Message { return m[min(1, len(m)-1):] }), compact.New(numbered(&inputs)))
	ask(t, th, agent(small), "go")
	require.Equal(t, "a:c1 t:c1 a:c2 t:c2 a:c3 t:c3", w.sent()[3])
	warnings := enginetest.Select[engine.Warning](rec.Events())
	require.NotEmpty(t, warnings)
	require.Contains(t, warnings[0].Message, "register the plugin before those")
}

func TestSettings(t *testing.T) {
	good := compact.Settings{MaxTokens: 0, KeepRecent: 1, MinSaving: 1, SummaryTokens: 1, Timeout: "1s", BytesPerToken: 1}
	require.NoError(t, good.Validate())
	for _, spoil := range []func(*compact.Settings){
		func(s *compact.Settings) { s.MaxTokens = -1 },
		func(s *compact.Settings) { s.KeepRecent = 0 },
		func(s *compact.Settings) { s.MinSaving = 0 },
		func(s *compact.Settings) { s.SummaryTokens = 0 },
		func(s *compact.Settings) { s.FallbackAfter = -1 },
		func(s *compact.Settings) { s.BytesPerToken = 0 },
		func(s *compact.Settings) { s.Timeout = "soon" },
		func(s *compact.Settings) { s.Timeout = "-1s" },
	} {
		bad := good
		spoil(&bad)
		require.ErrorContains(t, bad.Validate(), "compact: ")
	}
	_, th, _ := open(t, &walker{}, compact.New(compact.Options{}))
	_, err := th.Run(t.Context(), agent(`{"max_tokens": -1}`), engine.Prompt("go"))
	require.ErrorIs(t, err, engine.ErrSpec)
}
