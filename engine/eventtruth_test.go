package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// A hook that fails at the very moment that the engine was made was called all the same.
func TestEventsTellWhenAHookFailedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape := &gaTape{}
		start := time.Now()
		boom := func(context.Context, *phase.Context) (phase.Command, error) {
			return phase.Command{}, errors.New("boom")
		}
		th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
			gaOn("one", phase.StepStart, boom, engine.OnError(engine.Skip)), gaOn("two", phase.StepStart, boom, engine.OnError(engine.Skip)),
			gaOn("lone", phase.StepEnd, boom, engine.OnError(engine.Skip)),
		}})
		gaPhase(t, th, phase.StepStart)
		gaPhase(t, th, phase.StepEnd)
		synctest.Wait()
		hooks := gaOf[engine.HookFinished](tape)
		require.Len(t, hooks, 3)
		for _, h := range hooks {
			require.Equal(t, engine.HookSkipped, h.Status)
			require.True(t, h.Began.Equal(start), "%s began %s", h.Hook, h.Began)
		}
	})
}

// A call after a conflict that ends its goroutine is told like one that returns.
func TestEventsTellOfARetryThatEndedItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape := &gaTape{}
		calls := 0
		th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
			gaKeys(detailCell), detailHook("quick", time.Second),
			gaOn("rude", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
				time.Sleep(2 * time.Second)
				if calls++; calls > 1 {
					runtime.Goexit()
				}
				return gaUpdates(detailCell.With("rude")), nil
			}, engine.OnError(engine.Skip)),
		}})
		start := time.Now()
		gaPhase(t, th, phase.StepStart)
		synctest.Wait()
		h := gaOf[engine.HookFinished](tape)[1]
		require.Equal(t, engine.HookSkipped, h.Status)
		require.Equal(t, 2, h.Calls)
		require.True(t, h.Began.Equal(start))
		require.Len(t, h.Retries, h.Calls-1)
		require.True(t, h.Retries[0].Began.Equal(start.Add(2*time.Second)))
	})
}

// The last conflict of a hook that is given up on is not told as if it were called again.
func TestEventsTellTheConflictAfterWhichAHookIsGivenUp(t *testing.T) {
	tape := &gaTape{}
	var th *engine.Thread
	th = gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Limits: engine.Limits{CommitRetries: 2}, Plugins: []engine.Plugin{
		gaKeys(conflictN), gaOn("hook", phase.StepStart, func(ctx context.Context, pc *phase.Context) (phase.Command, error) {
			_, err := th.Submit(ctx, "outside", gaUpdates(conflictN.With(conflictN.Get(pc.Snapshot())+1)))
			return gaUpdates(conflictN.With(-1)), err
		}, engine.OnError(engine.Skip)),
	}})
	gaPhase(t, th, phase.StepStart)
	var fates []string
	for _, c := range gaOf[engine.Conflict](tape) {
		fates = append(fates, c.Fate)
	}
	require.Equal(t, []string{"retried", "retried", "refused"}, fates)
	h := gaOf[engine.HookFinished](tape)[0]
	require.Equal(t, 3, h.Calls)
	require.Len(t, h.Retries, 2)
}

// What an observer does to slices of an event, or of an update in it, reaches nobody.
func TestObserversShareNoSlices(t *testing.T) {
	log := state.NewLog("seen.log", state.Options[string]{Shared: true, Scope: state.ScopeThread})
	set := state.NewSet[string]("seen.set", state.Options[string]{Shared: true, Scope: state.ScopeThread})
	spoil := func(all []engine.Write) {
		for i := range all {
			if list, ok := all[i].Update.Arg().([]string); ok {
				clear(list)
			}
			if list, ok := all[i].Update.Entry().([]string); ok {
				clear(list)
			}
			all[i] = engine.Write{}
		}
	}
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Plugins: []engine.Plugin{gaKeys(log, set, detailCell)}, Observers: []engine.Observer{
		engine.ObserverFunc(func(e engine.Event) {
			switch e := e.(type) {
			case engine.Committed:
				spoil(e.Writes)
			case engine.Conflict:
				spoil(e.Lost)
			case engine.HookFinished:
				clear(e.Retries)
			}
		}), tape,
	}})
	_, err := th.Submit(t.Context(), "me", gaUpdates(log.Append("a", "b"), set.Add("x", "y")))
	require.NoError(t, err)
	_, err = th.Run(t.Context(), gaAgent, engine.Prompt("x"))
	require.NoError(t, err)
	snap := th.Snapshot()
	require.Equal(t, []string{"a", "b"}, log.Get(snap).Slice())
	require.True(t, set.Has(snap, "x"))
	for _, c := range gaOf[engine.Committed](tape) {
		for _, w := range c.Writes {
			require.NotEmpty(t, w.Plugin)
			if list, ok := w.Update.Arg().([]string); ok {
				require.NotContains(t, list, "")
			}
		}
	}
}
