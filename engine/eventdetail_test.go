package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var detailCell = state.NewCell("detail", state.Options[string]{Scope: state.ScopeThread})

// detailHook takes a while, and then writes what it is called.
func detailHook(name string, takes time.Duration) engine.Plugin {
	return gaOn(name, phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
		time.Sleep(takes)
		return gaUpdates(detailCell.With(name)), nil
	})
}

// Events tell when a hook was called, also again after a conflict, which of its
// commits are retries, what the loser wanted, and the states around a commit.
func TestEventsTellWhenAndWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape := &gaTape{}
		th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
			gaKeys(detailCell), detailHook("quick", time.Second), detailHook("slow", 2*time.Second), detailHook("last", 3*time.Second),
		}})
		start := time.Now()
		gaPhase(t, th, phase.StepStart)
		synctest.Wait()

		hooks := gaOf[engine.HookFinished](tape)
		require.Len(t, hooks, 3)
		for _, h := range hooks {
			require.True(t, h.Began.Equal(start), "all hooks of a tier are called at the same time")
		}
		require.Empty(t, hooks[0].Retries)
		after := func(d time.Duration) time.Time { return start.Add(d) }
		require.Len(t, hooks[1].Retries, 1)
		require.True(t, hooks[1].Retries[0].Began.Equal(after(3*time.Second)), "when the slowest had returned")
		require.Equal(t, 2*time.Second, hooks[1].Retries[0].Duration)
		require.Len(t, hooks[2].Retries, 1)
		require.True(t, hooks[2].Retries[0].Began.Equal(after(5*time.Second)), "one after the other")
		require.Equal(t, 6*time.Second, hooks[2].Duration, "of both calls")

		for _, c := range gaOf[engine.Conflict](tape) {
			require.Equal(t, "quick", c.Winner)
			require.Equal(t, c.Loser+"/step_start/0", c.Hook)
			require.Len(t, c.Lost, 1)
			require.Equal(t, c.Loser, c.Lost[0].Update.Arg())
		}
		commits := gaOf[engine.Committed](tape)
		require.Len(t, commits, 3)
		for i, c := range commits {
			require.Equal(t, i > 0, c.Retry)
			require.Equal(t, hooks[i].Hook, c.Writes[0].Hook)
			require.Equal(t, c.Revision-1, c.Before.Revision())
			require.Equal(t, c.Revision, c.After.Revision())
			require.Equal(t, hooks[i].Plugin, detailCell.Get(c.After))
			d, err := state.DeltaOf(c.Before, c.After)
			require.NoError(t, err)
			require.Len(t, d.Entries, 1)
			require.JSONEq(t, `"`+hooks[i].Plugin+`"`, string(d.Entries[0].Raw))
		}
	})
}

// A run's first event has the state that it found.
func TestRunStartedHasTheStateItFound(t *testing.T) {
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{gaKeys(detailCell)}})
	_, err := th.Submit(t.Context(), "me", gaUpdates(detailCell.With("before")))
	require.NoError(t, err)
	_, err = th.Run(t.Context(), gaAgent, engine.Prompt("x"))
	require.NoError(t, err)
	started := gaOf[engine.RunStarted](tape)
	require.Len(t, started, 1)
	require.Equal(t, "before", detailCell.Get(started[0].State))
	require.Nil(t, started[0].Found)
}
