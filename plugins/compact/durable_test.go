package compact_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// fixed is a summarizer whose text follows from its input.
var fixed = compact.Options{Summarizer: compact.SummarizerFunc(func(_ context.Context, in compact.Input) (compact.Output, error) {
	return compact.Output{Text: strings.ReplaceAll(strings.TrimSpace(in.Former+" "+words(in.Messages)), " ", ",")}, nil
})}

// rerun is a tool that runs again after a crash.
type rerun struct{ engine.Tool }

func (rerun) Recovery() engine.Recovery { return engine.Rerun }

func inJournal(t *testing.T, j engine.Journal, m inference.Model) (*engine.Engine, *enginetest.Recorder) {
	t.Helper()
	config, rec := enginetest.Config(t, compact.New(fixed), tools(rerun{look}))
	config.Model, config.Journal = m, j
	e, err := engine.New(config)
	require.NoError(t, err)
	return e, rec
}

// Another process goes on with the summary, wherever the first one ended: what the model
// gets is what it would have got.
func TestResume(t *testing.T) {
	undisturbed := &walker{calls: 6}
	_, th, _ := open(t, undisturbed, compact.New(fixed))
	ask(t, th, agent(small), "go")
	want := undisturbed.sent()
	require.Contains(t, want[6], "<a:c1,")
	resumed := 0
	for n := 1; ; n++ {
		inner := memstore.New(memstore.Options{})
		broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
		require.NoError(t, err)
		first := &walker{calls: 6}
		eng, _ := inJournal(t, broken, first)
		th, err := eng.NewThread("t")
		require.NoError(t, err)
		_, err = th.Run(t.Context(), agent(small), engine.Prompt("go"))
		require.NoError(t, err)
		if broken.Counts().Faults[faultstore.Crash] == 0 {
			require.Greater(t, resumed, 30, "the process has to end in many places")
			return
		}
		second := &walker{calls: 6}
		eng, _ = inJournal(t, inner, second)
		th, err = eng.OpenThread(t.Context(), "t")
		require.NoError(t, err)
		if phase.RunLifecycle.Get(th.Snapshot()).Status != phase.Running {
			continue
		}
		resumed++
		res, err := th.Resume(t.Context(), agent(small), engine.Input{})
		require.NoError(t, err)
		require.NoError(t, res.Err)
		got := second.sent()
		require.Equal(t, strings.Join(want[len(want)-len(got):], "\n"), strings.Join(got, "\n"), "crash at append %d", n)
	}
}

// A fork from before the compaction has all messages, one from after it the summary, and
// one whose history was edited does not trust it.
func TestFork(t *testing.T) {
	w := &walker{calls: 3}
	eng, rec := inJournal(t, memstore.New(memstore.Options{}), w)
	th, err := eng.NewThread("t")
	require.NoError(t, err)
	ask(t, th, agent(small), "go")
	commits := enginetest.Select[engine.Committed](rec.Events())
	at := commits[slices.IndexFunc(commits, func(c engine.Committed) bool {
		return slices.ContainsFunc(c.Writes, func(w engine.Write) bool { return w.Key == compact.Held.Name() })
	})].Revision
	for name, c := range map[string]struct {
		revision uint64
		edit     bool
		want     string
	}{
		"before": {at - 1, false, "u:go u:<a:c1,t:c1,a:c2,t:c2> a:c3 t:c3"}, // compacted in its own run
		"early":  {commits[0].Revision, false, "u:go"},
		"after":  {at, false, "u:go u:<a:c1,t:c1,a:c2,t:c2> a:c3 t:c3"},
		"edited": {at, true, "u:other s:story"},
	} {
		t.Run(name, func(t *testing.T) {
			fork, err := th.Fork(t.Context(), c.revision, "")
			require.NoError(t, err)
			require.Equal(t, c.revision >= at, compact.Held.Get(fork.Snapshot()).Text != "")
			if c.edit {
				fork, err = th.Fork(t.Context(), c.revision, "", engine.Transcript.Replace(inference.User("other"), inference.System("story")))
				require.NoError(t, err)
			}
			w.requests = nil
			_, err = fork.Resume(t.Context(), agent(small), engine.Input{})
			require.NoError(t, err)
			require.Equal(t, c.want, w.sent()[0])
		})
	}
}

// An agent that takes over goes on with the summary.
func TestHandoff(t *testing.T) {
	w := &walker{calls: 4}
	config, _ := enginetest.Config(t, compact.New(fixed), tools(look), engine.NewPlugin("leaver", func(r *engine.Registrar) error {
		r.Hook(phase.StepStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if pc.Run().Step == 4 {
				cmd.Update(engine.HandOff("b"))
			}
			return cmd, nil
		}))
		return nil
	}))
	heir := agent(`{"max_tokens": 0}`)
	heir.ID = "b"
	config.Agents, config.Model = []engine.AgentSpec{heir}, w
	res, err := enginetest.Engine(t, config).Run(t.Context(), agent(small), engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, "b", res.Agent)
	require.Equal(t, "u:go u:<a:c1,t:c1,a:c2,t:c2> a:c3 t:c3 a:c4 t:c4", w.sent()[4])
}

// One plugin value serves many runs at once, none of which sees another's summary.
func TestConcurrentRuns(t *testing.T) {
	config, _ := enginetest.Config(t, compact.New(fixed), tools(look))
	w := &walker{calls: 6}
	config.Model = w
	eng := enginetest.Engine(t, config)
	var all sync.WaitGroup
	texts := make([]string, 16)
	for i := range texts {
		all.Go(func() {
			th, err := eng.NewThread("")
			if err != nil {
				texts[i] = err.Error()
				return
			}
			if _, err = th.Run(t.Context(), agent(small), engine.Prompt(fmt.Sprint("go", i))); err != nil {
				texts[i] = err.Error()
				return
			}
			pc, err := th.Context(agent(small))
			if err != nil {
				texts[i] = err.Error()
				return
			}
			texts[i] = words(compact.View(pc))
		})
	}
	all.Wait()
	for i, text := range texts {
		require.Equal(t, fmt.Sprintf("u:go%d u:<a:c1,t:c1,a:c2,t:c2,a:c3,t:c3,a:c4,t:c4,a:c5,t:c5> a:c6 t:c6 a:done", i), text)
	}
}

// The same run gives the same events, however many processors and whatever the timing.
func TestDeterminism(t *testing.T) {
	enginetest.CheckDeterminism(t, 9, func(shuffle enginetest.Shuffle) []string {
		config, rec := enginetest.Config(t, compact.New(compact.Options{Summarizer: compact.SummarizerFunc(func(ctx context.Context, in compact.Input) (compact.Output, error) {
			shuffle()
			return compact.Digest(ctx, in)
		})}), tools(look), engine.NewPlugin("noter", func(r *engine.Registrar) error {
			for i := range 3 {
				r.Hook(phase.BeforeInference, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
					shuffle()
					runtime.Gosched()
					cmd.Update(compact.Notes.Append(fmt.Sprint("note ", i)))
					return cmd, nil
				}))
			}
			return nil
		}))
		config.Model = &walker{calls: 6}
		_, err := enginetest.Engine(t, config).Run(t.Context(), agent(small), engine.Prompt("go"))
		require.NoError(t, err)
		return rec.Lines()
	})
}
