package compact_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
)

type check = func(ctx context.Context, pc *phase.Context, args compact.Args) (gate.Ruling, error)

func guard(fn check) engine.Plugin {
	return engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.ActionGate(gate.OnAction(compact.Compact, fn))
		return nil
	})
}

// Capability M7. Another plugin cancels a compaction with a reason: the model call goes on
// with all messages, and it is wished for again after more and more steps.
func TestGateCancels(t *testing.T) {
	var inputs []compact.Input
	w := &walker{calls: 8}
	_, th, rec := open(t, w, compact.New(numbered(&inputs)), guard(func(_ context.Context, pc *phase.Context, args compact.Args) (gate.Ruling, error) {
		if args.Reason != compact.ReasonSize || args.Thread != pc.Run().Thread {
			return gate.Ruling{}, errors.New("unexpected arguments")
		}
		return gate.Cancel("in the middle of a proof"), nil
	}))
	ask(t, th, agent(small), "go")
	require.Equal(t, []string{
		"4 cancelled guard in the middle of a proof", "6 cancelled guard in the middle of a proof", "9 cancelled guard in the middle of a proof",
	}, fates(rec, "compact"))
	require.Empty(t, inputs)
	require.Empty(t, fates(rec, "compact.invalidated"))
	for i, sent := range w.sent() {
		require.Len(t, strings.Fields(sent), 1+2*i)
	}
	require.Equal(t, compact.Backoff{Tries: 3, Wait: 4}, compact.Attempts.Get(th.Snapshot()))
}

// Capability M7. Another plugin brings a summary of its own, which is committed in its
// name; everything else is as if it were the summarizer's.
func TestGateReplaces(t *testing.T) {
	var inputs []compact.Input
	w := &walker{calls: 3}
	_, th, rec := open(t, w, compact.New(numbered(&inputs)), guard(func(_ context.Context, pc *phase.Context, args compact.Args) (gate.Ruling, error) {
		cut, err := compact.Prepare(pc, args)
		if err != nil {
			return gate.Ruling{}, err
		}
		cmd, err := cut.Command("of " + strings.ReplaceAll(words(cut.Messages), " ", ","))
		return gate.Replace("knows better", cmd), err
	}))
	ask(t, th, agent(small), "go")
	require.Equal(t, "u:go u:<of a:c1,t:c1,a:c2,t:c2> a:c3 t:c3", w.sent()[3])
	require.Empty(t, inputs)
	require.Equal(t, []string{"4 replaced guard knows better"}, fates(rec, "compact"))
	require.Equal(t, []string{"4 done"}, fates(rec, "compact.invalidated"))
	var writers []string
	for _, c := range enginetest.Select[engine.Committed](rec.Events()) {
		for _, change := range c.Writes {
			if change.Key == compact.Held.Name() {
				writers = append(writers, change.Plugin)
			}
		}
	}
	require.Equal(t, []string{"guard"}, writers)
}

// A gate that fails, or whose summary is of no use, keeps the compaction from happening:
// it is a dead letter with the reason, and the model call goes on with all messages.
func TestGateFails(t *testing.T) {
	summary := func(text string) check {
		return func(_ context.Context, pc *phase.Context, args compact.Args) (gate.Ruling, error) {
			cut, err := compact.Prepare(pc, args)
			if err != nil {
				return gate.Ruling{}, err
			}
			cmd, err := cut.Command(text)
			return gate.Replace("", cmd), err
		}
	}
	for name, c := range map[string]struct {
		check  check
		reason string
	}{
		"error": {func(context.Context, *phase.Context, compact.Args) (gate.Ruling, error) {
			return gate.Ruling{}, errors.New("oh no")
		}, "oh no"},
		"panic":    {func(context.Context, *phase.Context, compact.Args) (gate.Ruling, error) { panic("oh no") }, "oh no"},
		"empty":    {summary(""), compact.ErrEmpty.Error()},
		"too long": {summary(strings.Repeat("long ", 400)), compact.ErrNoSaving.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			w := &walker{calls: 3}
			_, th, _ := open(t, w, compact.New(compact.Options{}), guard(c.check))
			ask(t, th, agent(small), "go")
			require.Equal(t, "u:go a:c1 t:c1 a:c2 t:c2 a:c3 t:c3", w.sent()[3])
			dead := slices.Collect(letters(th))
			require.Len(t, dead, 1)
			require.Regexp(t, "^compact: .*"+c.reason, dead[0])
		})
	}
}

// Capability G1. That caches are void is told with the sizes before and after, and other
// plugins have a say in that as well.
func TestGateOnInvalidated(t *testing.T) {
	var inputs []compact.Input
	var seen []compact.InvalidatedArgs
	w := &walker{calls: 3}
	_, th, rec := open(t, w, compact.New(numbered(&inputs)), engine.NewPlugin("cache", func(r *engine.Registrar) error {
		r.ActionGate(gate.OnAction(compact.Invalidated, func(_ context.Context, _ *phase.Context, args compact.InvalidatedArgs) (gate.Ruling, error) {
			seen = append(seen, args)
			return gate.Cancel("there is no cache"), nil
		}))
		return nil
	}))
	ask(t, th, agent(small), "go")
	require.Len(t, seen, 1)
	require.Greater(t, seen[0].Before, seen[0].After)
	require.Zero(t, compact.Last.Get(th.Snapshot()))
	require.Equal(t, []string{"4 cancelled cache there is no cache"}, fates(rec, "compact.invalidated"))
	require.Contains(t, w.sent()[3], "<s1>")
}

// Report 6. The compactions of a delegated run are under the gates of the run that
// delegated. Such a gate does not see the thread, so it cannot summarise it by mistake.
func TestDelegatedRun(t *testing.T) {
	for name, c := range map[string]struct {
		ruling func(compact.Cut, error) (gate.Ruling, error)
		want   string
	}{
		"proceeds": {func(compact.Cut, error) (gate.Ruling, error) { return gate.Ruling{}, nil }, "u:dig u:<s1> a:c3 t:c3"},
		"cancels":  {func(compact.Cut, error) (gate.Ruling, error) { return gate.Cancel("not below me"), nil }, "u:dig a:c1 t:c1 a:c2 t:c2 a:c3 t:c3"},
		"replaces": {func(cut compact.Cut, err error) (gate.Ruling, error) {
			if !errors.Is(err, compact.ErrThread) {
				return gate.Ruling{}, nil
			}
			cmd, err := cut.Command("of the wrong thread")
			return gate.Replace("knows better", cmd), err
		}, "u:dig a:c1 t:c1 a:c2 t:c2 a:c3 t:c3"},
	} {
		t.Run(name, func(t *testing.T) {
			var inputs []compact.Input
			w := &walker{calls: 3}
			config, _ := enginetest.Config(t, compact.New(numbered(&inputs)), tools(look), guard(func(_ context.Context, pc *phase.Context, args compact.Args) (gate.Ruling, error) {
				return c.ruling(compact.Prepare(pc, args))
			}))
			child := agent(small)
			child.ID, child.ModelID, child.ActiveHookFilter = "child", "walker", []string{compact.Name, "tools"}
			parent := engine.AgentSpec{ID: "parent", ModelID: "boss", ActiveHookFilter: []string{"guard"}, Delegates: []string{"child"}}
			config.Agents = []engine.AgentSpec{parent, child}
			config.Models = map[string]inference.Model{"walker": w, "boss": enginetest.NewScript(
				enginetest.Call("d", engine.DelegatePrefix+"child", inference.JSON(`{"input": "dig"}`)), enginetest.Say("fine"))}
			res, err := enginetest.Engine(t, config).Run(t.Context(), parent, engine.Prompt("go"))
			require.NoError(t, err)
			require.NoError(t, res.Err)
			require.Equal(t, c.want, w.sent()[3])
		})
	}
}

// A summarizer that hangs is given up on after its time, and at once when the run is
// cancelled; nothing is compacted then.
func TestSummarizerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context, in compact.Input) (compact.Output, error) {
			<-ctx.Done()
			return compact.Output{Text: "late"}, nil
		}
		w := &walker{calls: 3}
		_, th, _ := open(t, w, compact.New(compact.Options{Summarizer: compact.SummarizerFunc(hangs)}))
		ask(t, th, agent(small), "go")
		require.Equal(t, "u:go a:c1 t:c1 a:c2 t:c2 a:c3 t:c3", w.sent()[3])
		require.Contains(t, slices.Collect(letters(th))[0], "the summarizer took too long: the limit is 1m0s")

		ctx, cancel := context.WithCancel(t.Context())
		_, th, _ = open(t, &walker{calls: 3}, compact.New(compact.Options{Summarizer: compact.SummarizerFunc(func(ctx context.Context, in compact.Input) (compact.Output, error) {
			cancel()
			return hangs(ctx, in)
		})}))
		res, err := th.Run(ctx, agent(small), engine.Prompt("go"))
		require.NoError(t, err)
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		require.Zero(t, compact.Held.Get(th.Snapshot()))
		for letter := range letters(th) {
			require.Contains(t, letter, "compact: the run ended before", "it did not fail")
		}
	})
}
