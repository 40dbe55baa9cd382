package engine_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	submitCell  = state.NewCell[int]("submit.cell", state.Options[int]{Scope: state.ScopeThread})
	submitCount = state.NewCounter("submit.count", state.Options[int64]{Scope: state.ScopeThread})
)

// Capability A8. A submitted command commits its updates, queues its actions and
// delivers its effects, in this order, and returns the state after it.
func TestSubmitWholeCommand(t *testing.T) {
	act, tell := phase.NewAction[int]("act", phase.StepStart), effects.NewSpec[int]("tell")
	var seen []int
	by := ""
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{gaPlugin("p", func(r *engine.Registrar) {
		r.Key(submitCell)
		r.Action(act.Handle(func(ctx context.Context, _ *phase.Context, _ int) (phase.Command, error) {
			by = engine.Scheduler(ctx)
			return phase.Command{}, nil
		}))
		r.Effect(tell.Handle(func(_ context.Context, snap *state.Snapshot, _ int) error {
			seen = append(seen, submitCell.Get(snap))
			return nil
		}))
	})}})
	var cmd phase.Command
	cmd.Update(submitCell.With(1)).Schedule(act.New(1)).Emit(tell.New(1))
	snap, err := th.Submit(t.Context(), "cli", cmd)
	require.NoError(t, err)
	require.EqualValues(t, 1, snap.Revision())
	require.Equal(t, 1, submitCell.Get(snap))
	require.Equal(t, []int{1}, seen)
	require.Len(t, gaPhase(t, th, phase.StepStart).Actions, 1)
	require.Equal(t, "cli", by)
	require.Equal(t, "cli", gaOf[engine.Committed](tape)[0].Writes[0].Plugin)
	require.Equal(t, "cli", gaOf[engine.EffectFinished](tape)[0].Plugin)
}

// Capability A6. A command that does nothing commits nothing, and one that cannot be
// carried out or whose context has ended changes nothing.
func TestSubmitThatChangesNothing(t *testing.T) {
	boom := errors.New("boom")
	picky := state.NewCell("picky", state.Options[int]{Check: func(_, next int) error {
		if next < 0 {
			return boom
		}
		return nil
	}})
	th := gaPlugins(t, gaKeys(submitCell, picky))
	snap, err := th.Submit(t.Context(), "x", phase.Command{})
	require.NoError(t, err)
	require.Zero(t, snap.Revision())
	_, err = th.Submit(t.Context(), "x", gaUpdates(submitCell.With(1), picky.With(-1)))
	require.ErrorIs(t, err, boom)
	_, err = th.Submit(t.Context(), "x", gaUpdates(submitCell.With(1), submitCount.With(1)))
	require.ErrorIs(t, err, state.ErrUnknownKey)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(boom)
	_, err = th.Submit(ctx, "x", gaUpdates(submitCell.With(1)))
	require.ErrorIs(t, err, boom)
	require.Zero(t, th.Snapshot().Revision())
}

// Fault F10. Submits from many goroutines while a run is under way are all there at
// the end, and none of them, nor the run, fails.
func TestSubmitWhileARunIsUnderWay(t *testing.T) {
	const n = 8
	var started sync.WaitGroup
	started.Add(n)
	stop := make(chan struct{})
	var submitted atomic.Int64
	hook := func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		return gaUpdates(submitCount.With(1), submitCell.With(submitCell.Get(pc.Snapshot())+1)), nil
	}
	plugins := []engine.Plugin{gaKeys(submitCell, submitCount)}
	hooks := 0
	for p := range phase.All() {
		if p != phase.ToolGate && p != phase.BeforeToolExecute && p != phase.AfterToolExecute {
			plugins = append(plugins, gaOn(p.String(), p, hook), gaOn(p.String()+"2", p, hook))
			hooks += 2
		}
	}
	th := gaPlugins(t, plugins...)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			first := true
			for {
				if _, err := th.Submit(context.Background(), "outside", gaUpdates(submitCount.With(1))); err != nil {
					t.Error(err)
					return
				}
				submitted.Add(1)
				if first {
					first = false
					started.Done()
				}
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		})
	}
	started.Wait()
	const runs = 10
	for range runs {
		gaRun(t, th)
	}
	close(stop)
	wg.Wait()
	require.Equal(t, runs*hooks, submitCell.Get(th.Snapshot()))
	require.EqualValues(t, submitted.Load()+int64(runs*hooks), submitCount.Get(th.Snapshot()))
}

// Fault B38. A phase that runs beside a run takes part in it: with its agent, in its
// events and in its numbers.
func TestSubmitRunPhaseTakesPartInTheRun(t *testing.T) {
	var th *engine.Thread
	tape := &gaTape{}
	var run, inner string
	th = gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{
		gaOn("outer", phase.StepStart, func(ctx context.Context, pc *phase.Context) (phase.Command, error) {
			run = pc.Run().ID
			rep, err := th.RunPhase(ctx, engine.AgentSpec{}, phase.RunEnd)
			require.NoError(t, err)
			require.Len(t, rep.Hooks, 1)
			return phase.Command{}, nil
		}),
		gaOn("inner", phase.RunEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			if inner == "" {
				inner = pc.Run().ID
			}
			return phase.Command{}, nil
		}),
	}})
	res := gaRun(t, th)
	require.Equal(t, run, inner)
	require.Equal(t, res.Run, inner)
	require.Equal(t, 3, res.Stats.Hooks)
	for i, e := range tape.all() {
		require.EqualValues(t, i+1, e.Head().Seq)
	}
}

// Capability A3. RunPhase always runs the hooks of an agent, also while runs begin
// and end beside it.
func TestSubmitRunPhaseBesideRunsNeverLosesItsHooks(t *testing.T) {
	th := gaPlugins(t, gaOn("a", phase.AfterToolExecute, gaDoes(phase.Command{})))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := th.Run(context.Background(), gaAgent, engine.Input{}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2000 {
		require.Len(t, gaPhase(t, th, phase.AfterToolExecute).Hooks, 1)
	}
	close(stop)
	wg.Wait()
}

// Capability A16. RunPhase checks the spec before it runs anything.
func TestSubmitRunPhaseOfABadSpec(t *testing.T) {
	ran := 0
	th := gaPlugins(t, gaOn("a", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) { ran++; return phase.Command{}, nil }))
	_, err := th.RunPhase(t.Context(), engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"b"}}, phase.StepStart)
	require.ErrorIs(t, err, engine.ErrSpec)
	require.Zero(t, ran)
}

// Capability A13. One run at a time on a thread: a second is refused and disturbs
// nothing, and the thread is free again afterwards.
func TestSubmitSecondRunIsRefused(t *testing.T) {
	var th *engine.Thread
	var second, load error
	th = gaPlugins(t, gaOn("a", phase.StepStart, func(ctx context.Context, _ *phase.Context) (phase.Command, error) {
		_, second = th.Run(ctx, gaAgent, engine.Prompt("y"))
		dump, err := th.Export()
		require.NoError(t, err)
		load = th.Import(dump, state.KeepUnknown)
		return phase.Command{}, nil
	}))
	gaRun(t, th)
	require.ErrorIs(t, second, engine.ErrBusy)
	require.ErrorIs(t, load, engine.ErrBusy)
	gaRun(t, th)
}
