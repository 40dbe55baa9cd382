package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	actionsCount = state.NewCounter("actions.count", state.Options[int64]{Scope: state.ScopeThread})
	actionsCell  = state.NewCell[int]("actions.cell", state.Options[int]{})
	actionsLog   = state.NewLog("actions.log", state.Options[string]{})
	actionsTable = state.NewTable[int]("actions.table", state.Options[int]{})
)

// gaAct is a plugin with the handlers and the keys of these tests.
func gaAct(handlers ...phase.ActionHandler) engine.Plugin {
	return gaPlugin("act", func(r *engine.Registrar) {
		r.Key(actionsCount, actionsCell, actionsLog, actionsTable)
		r.Action(handlers...)
	})
}

// Capability A6. An action without a handler refuses the whole command when it is
// submitted, by a hook, a handler or from outside, with the nearest known name.
func TestActionsUnknownIsRefusedAtSubmit(t *testing.T) {
	known := phase.NewAction[int]("send_mail", phase.StepEnd)
	typo := phase.NewAction[int]("send_mial", phase.StepEnd)
	th := gaPlugins(t, gaAct(known.Handle(func(context.Context, *phase.Context, int) (cmd phase.Command, err error) {
		cmd.Update(actionsCount.With(1)).Schedule(typo.New(1))
		return cmd, nil
	})))
	var cmd phase.Command
	cmd.Update(actionsCount.With(1)).Schedule(typo.New(1))
	_, err := th.Submit(t.Context(), "x", cmd)
	require.ErrorIs(t, err, phase.ErrUnknownAction)
	var ua *engine.UnknownActionError
	require.ErrorAs(t, err, &ua)
	require.Equal(t, engine.UnknownActionError{Action: "send_mial", Nearest: "send_mail"}, *ua)
	require.Zero(t, th.Snapshot().Revision())

	gaSchedule(t, th, known.New(1))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, engine.ActionDead, rep.Actions[0].Status)
	require.ErrorIs(t, rep.Actions[0].Err, phase.ErrUnknownAction)
	require.Zero(t, actionsCount.Get(th.Snapshot()))
}

// Capability A6. An action made from another spec of the same name is refused, since
// its payload is of another type; so is one whose payload cannot be kept.
func TestActionsOfAnotherSpecAreRefused(t *testing.T) {
	mine := phase.NewAction[int]("same", phase.StepEnd)
	th := gaPlugins(t, gaAct(mine.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) { return phase.Command{}, nil })))
	for _, a := range []phase.Action{
		phase.NewAction[string]("same", phase.StepEnd).New("x"),
		phase.NewAction[int]("same", phase.StepEnd).New(1),
		phase.NewAction[int]("same", phase.StepStart).New(1),
		mine.ReplaySafe().New(1),
		phase.NewAction[chan int]("same", phase.StepEnd).New(make(chan int)),
	} {
		var cmd phase.Command
		cmd.Schedule(a)
		_, err := th.Submit(t.Context(), "x", cmd)
		require.ErrorIs(t, err, phase.ErrUnknownAction)
	}
	require.Zero(t, th.Snapshot().Revision())
}

// Fault B07. 100 goroutines that each schedule one action leave 100 actions with
// 100 different ids.
func TestActionsScheduledConcurrently(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	th := gaPlugins(t, gaAct(act.Handle(func(_ context.Context, _ *phase.Context, n int) (phase.Command, error) {
		return gaUpdates(actionsTable.Put(n, 1)), nil
	})))
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			var cmd phase.Command
			cmd.Schedule(act.New(i))
			if _, err := th.Submit(t.Context(), "x", cmd); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	rep := gaPhase(t, th, phase.StepEnd)
	ids := map[uint64]bool{}
	for _, a := range rep.Actions {
		ids[a.ID] = true
	}
	require.Len(t, ids, 100)
	require.Equal(t, 100, actionsTable.Len(th.Snapshot()))
}

// Capability A6. Ids are unique for the life of a thread, also after its state was
// carried to another one.
func TestActionsIDsSurviveRestore(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{gaAct(act.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) {
		return phase.Command{}, nil
	}))}})
	th, err := eng.NewThread("one")
	require.NoError(t, err)
	gaSchedule(t, th, act.New(1), act.New(2))
	gaPhase(t, th, phase.StepEnd)
	gaSchedule(t, th, act.New(3))
	dump, err := th.Export()
	require.NoError(t, err)
	th, err = eng.NewThread("two")
	require.NoError(t, err)
	require.NoError(t, th.Import(dump, state.RefuseUnknown))
	gaSchedule(t, th, act.New(4))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Len(t, rep.Actions, 2)
	require.Equal(t, []uint64{3, 4}, []uint64{rep.Actions[0].ID, rep.Actions[1].ID})
}

// Fault F18. A handler that fails in any way is dead-lettered with its cause, the
// loop goes on, and what it returned besides the error counts for nothing.
func TestActionsFailureIsDeadLettered(t *testing.T) {
	boom := errors.New("boom")
	act := phase.NewAction[string]("act", phase.StepEnd)
	effect := effects.NewSpec[int]("tell")
	told := 0
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{gaAct(act.Handle(func(_ context.Context, _ *phase.Context, how string) (cmd phase.Command, err error) {
		cmd.Update(actionsLog.Append(how)).Emit(effect.New(1))
		switch how {
		case "error":
			return cmd, boom
		case "panic":
			panic(boom)
		case "lie":
			cmd.Update(state.NewCell[int]("unregistered", state.Options[int]{}).With(1))
		}
		return cmd, nil
	})), gaPlugin("tell", func(r *engine.Registrar) {
		r.Effect(effect.Handle(func(context.Context, *state.Snapshot, int) error { told++; return nil }))
	})}})
	gaSchedule(t, th, act.New("error"), act.New("ok"), act.New("panic"), act.New("lie"), act.New("fine"))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, 1, rep.Rounds)
	var got []engine.ActionStatus
	for _, a := range rep.Actions {
		got = append(got, a.Status)
	}
	require.Equal(t, []engine.ActionStatus{engine.ActionDead, engine.ActionDone, engine.ActionDead, engine.ActionDead, engine.ActionDone}, got)
	require.ErrorIs(t, rep.Actions[0].Err, boom)
	require.ErrorIs(t, rep.Actions[2].Err, boom)
	require.ErrorIs(t, rep.Actions[3].Err, state.ErrUnknownKey)
	require.Equal(t, []string{"ok", "fine"}, actionsLog.Get(th.Snapshot()).Slice())
	require.Equal(t, 2, told)
	dead := gaDead(th)
	require.Len(t, dead, 3)
	require.Equal(t, []uint64{1, 3, 4}, []uint64{dead[0].ID, dead[1].ID, dead[2].ID})
	for _, d := range dead {
		require.Equal(t, "test", d.Plugin, "who scheduled it")
		require.NotEmpty(t, d.Reason)
		require.False(t, d.Time.IsZero())
	}
	require.Contains(t, dead[0].Reason, "boom")
	require.Len(t, gaOf[engine.ActionFinished](tape), 5)
	require.Zero(t, gaPhase(t, th, phase.StepEnd).Rounds)
}

// Fault F18. A handler that loses to a commit from outside runs again and is not
// dead-lettered.
func TestActionsConflictIsRetried(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	var th *engine.Thread
	calls := 0
	th = gaPlugins(t, gaAct(act.Handle(func(ctx context.Context, pc *phase.Context, n int) (phase.Command, error) {
		v := actionsCell.Get(pc.Snapshot())
		if calls++; calls == 1 {
			_, err := th.Submit(ctx, "outside", gaUpdates(actionsCell.With(40)))
			require.NoError(t, err)
		}
		return gaUpdates(actionsCell.With(v + n)), nil
	})))
	gaSchedule(t, th, act.New(2))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, 42, actionsCell.Get(th.Snapshot()))
	require.Equal(t, 1, rep.Retries)
	require.Equal(t, engine.ActionDone, rep.Actions[0].Status)
	require.Empty(t, gaDead(th))
}

// Fault F18. The list of dead letters is bounded: the oldest go first, each with a
// warning.
func TestActionsDeadLettersAreBounded(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	tape := &gaTape{}
	th := gaThread(t, engine.Config{
		Observers: []engine.Observer{tape}, Limits: engine.Limits{DeadLetters: 3},
		Plugins: []engine.Plugin{gaAct(act.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) {
			return phase.Command{}, errors.New("no")
		}))},
	})
	for i := range 5 {
		gaSchedule(t, th, act.New(i))
	}
	gaPhase(t, th, phase.StepEnd)
	dead := gaDead(th)
	require.Len(t, dead, 3)
	require.Equal(t, []uint64{3, 4, 5}, []uint64{dead[0].ID, dead[1].ID, dead[2].ID})
	dropped := 0
	for _, w := range gaOf[engine.Warning](tape) {
		if w.Plugin != "act" {
			dropped++
		}
	}
	require.Equal(t, 2, dropped)
}

// Fault B37. More left-overs than the list holds: the newest stay.
func TestActionsDeadLettersOfOneBurial(t *testing.T) {
	link, chain := gaChain(phase.StepEnd)
	th := gaThread(t, engine.Config{Plugins: []engine.Plugin{chain}, Limits: engine.Limits{DeadLetters: 2, PhaseRounds: 1}})
	gaSchedule(t, th, link.New(2), link.New(2), link.New(2), link.New(2))
	rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepEnd)
	require.ErrorIs(t, err, phase.ErrNotConverged)
	require.Len(t, rep.Actions, 8)
	dead := gaDead(th)
	require.Len(t, dead, 2)
	require.Equal(t, []uint64{7, 8}, []uint64{dead[0].ID, dead[1].ID})
	require.Zero(t, gaPhase(t, th, phase.StepEnd).Rounds)
}

// Fault F18. A dead letter can be put back into the queue, once, and runs when its
// phase comes next.
func TestActionsRequeue(t *testing.T) {
	act := phase.NewAction[[]string]("act", phase.StepEnd)
	fail := true
	th := gaPlugins(t, gaAct(act.Handle(func(_ context.Context, _ *phase.Context, args []string) (phase.Command, error) {
		if fail {
			return phase.Command{}, errors.New("no")
		}
		return gaUpdates(actionsLog.Append(args...)), nil
	})))
	gaSchedule(t, th, act.New([]string{"a", "b"}))
	gaPhase(t, th, phase.StepEnd)
	require.Len(t, gaDead(th), 1)
	fail = false
	require.ErrorIs(t, th.Requeue(t.Context(), 99), engine.ErrNoDeadLetter)
	require.NoError(t, th.Requeue(t.Context(), 1))
	require.ErrorIs(t, th.Requeue(t.Context(), 1), engine.ErrNoDeadLetter)
	require.Empty(t, gaDead(th))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Len(t, rep.Actions, 1)
	require.EqualValues(t, 1, rep.Actions[0].ID)
	require.Equal(t, []string{"a", "b"}, actionsLog.Get(th.Snapshot()).Slice())
	require.Equal(t, engine.ActionDone, rep.Actions[0].Status)
	require.Zero(t, gaPhase(t, th, phase.StepEnd).Rounds)
}

// Fault F18. Of many who requeue one dead letter exactly one succeeds.
func TestActionsRequeueConcurrently(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	var fail atomic.Bool
	fail.Store(true)
	th := gaPlugins(t, gaAct(act.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) {
		if fail.Load() {
			return phase.Command{}, errors.New("no")
		}
		return gaUpdates(actionsCount.With(1)), nil
	})))
	gaSchedule(t, th, act.New(1))
	gaPhase(t, th, phase.StepEnd)
	fail.Store(false)
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if th.Requeue(t.Context(), 1) == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load())
	gaPhase(t, th, phase.StepEnd)
	require.EqualValues(t, 1, actionsCount.Get(th.Snapshot()))
}

// Capability A5. Fault F03. Handlers are serial unless they are ReplaySafe, and then a round's
// actions of that kind run at the same time under the hooks' conflict rule.
func TestActionsReplaySafeRunInParallel(t *testing.T) {
	for _, safe := range []bool{false, true} {
		t.Run(fmt.Sprintf("safe=%t", safe), func(t *testing.T) {
			const n = 6
			act := phase.NewAction[int]("act", phase.StepEnd)
			if safe {
				act = act.ReplaySafe()
			}
			var now, most atomic.Int64
			var gathered sync.WaitGroup
			gathered.Add(n)
			th := gaPlugins(t, gaAct(act.Handle(func(_ context.Context, pc *phase.Context, i int) (phase.Command, error) {
				m := now.Add(1)
				if m > most.Load() {
					most.Store(m)
				}
				if safe && pc.Snapshot().Revision() == 1 {
					gathered.Done()
					gathered.Wait()
				}
				now.Add(-1)
				return gaUpdates(actionsTable.Put(i%5, 1), actionsCell.With(actionsCell.Get(pc.Snapshot())+0), actionsLog.Append(fmt.Sprint(i))), nil
			})))
			var actions []phase.Action
			for i := range n {
				actions = append(actions, act.New(i))
			}
			gaSchedule(t, th, actions...)
			rep := gaPhase(t, th, phase.StepEnd)
			require.Equal(t, 1, rep.Rounds)
			require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, actionsLog.Get(th.Snapshot()).Slice())
			if !safe {
				require.EqualValues(t, 1, most.Load())
				require.Zero(t, rep.Retries)
				return
			}
			require.EqualValues(t, n, most.Load())
			require.Equal(t, n-1, rep.Retries, "all of them write one cell")
		})
	}
}

// Capability A5. A mixed round keeps the order of the queue: a row of ReplaySafe
// actions runs together between the others.
func TestActionsMixedRoundKeepsOrder(t *testing.T) {
	safe := phase.NewAction[string]("safe", phase.StepEnd).ReplaySafe()
	plain := phase.NewAction[string]("plain", phase.StepEnd)
	note := func(_ context.Context, _ *phase.Context, s string) (phase.Command, error) {
		return gaUpdates(actionsLog.Append(s)), nil
	}
	th := gaPlugins(t, gaAct(safe.Handle(note), plain.Handle(note)))
	gaSchedule(t, th, safe.New("a"), safe.New("b"), plain.New("c"), safe.New("d"), plain.New("e"), plain.New("f"), safe.New("g"), safe.New("h"))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g", "h"}, actionsLog.Get(th.Snapshot()).Slice())
	require.Equal(t, 6, rep.Commits)
	require.Equal(t, 1, rep.Rounds)
}

// Fault F22. Cancellation is noticed between actions: the rest stays queued, is no
// dead letter, and runs when the phase comes next.
func TestActionsCancelBetweenActions(t *testing.T) {
	cause := errors.New("enough")
	act := phase.NewAction[int]("act", phase.StepEnd)
	ctx, cancel := context.WithCancelCause(t.Context())
	th := gaPlugins(t, gaAct(act.Handle(func(_ context.Context, _ *phase.Context, n int) (phase.Command, error) {
		if n == 2 {
			cancel(cause)
		}
		return gaUpdates(actionsCount.With(1)), nil
	})))
	gaSchedule(t, th, act.New(1), act.New(2), act.New(3), act.New(4))
	rep, err := th.RunPhase(ctx, gaAgent, phase.StepEnd)
	require.ErrorIs(t, err, cause)
	require.Len(t, rep.Actions, 2)
	require.EqualValues(t, 2, actionsCount.Get(th.Snapshot()))
	require.Empty(t, gaDead(th))
	rep = gaPhase(t, th, phase.StepEnd)
	require.Len(t, rep.Actions, 2)
	require.EqualValues(t, 4, actionsCount.Get(th.Snapshot()))
}

// Fault F22. A handler that ends with its cancelled context did not fail: its action
// stays queued.
func TestActionsCancelDuringAction(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	ctx, cancel := context.WithCancel(t.Context())
	th := gaPlugins(t, gaAct(act.Handle(func(ctx context.Context, _ *phase.Context, _ int) (phase.Command, error) {
		cancel()
		return gaUpdates(actionsCount.With(1)), ctx.Err()
	})))
	gaSchedule(t, th, act.New(1))
	_, err := th.RunPhase(ctx, gaAgent, phase.StepEnd)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, gaDead(th))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Len(t, rep.Actions, 1)
	require.EqualValues(t, 1, actionsCount.Get(th.Snapshot()))
}

// Fault F08. Effects of actions that committed are delivered, and the actions are in
// the report, also when the run was cancelled in the middle of their round.
func TestActionsCancelDoesNotLoseCommittedEffects(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd).ReplaySafe()
	effect := effects.NewSpec[int]("tell")
	told := 0
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan struct{})
	th := gaPlugins(t, gaAct(act.Handle(func(ctx context.Context, _ *phase.Context, n int) (cmd phase.Command, err error) {
		if n == 1 {
			defer close(first)
			cmd.Update(actionsCount.With(1)).Emit(effect.New(1))
			return cmd, nil
		}
		<-first
		cancel()
		return cmd, ctx.Err()
	})), gaPlugin("tell", func(r *engine.Registrar) {
		r.Effect(effect.Handle(func(context.Context, *state.Snapshot, int) error { told++; return nil }))
	}))
	gaSchedule(t, th, act.New(1), act.New(2))
	rep, err := th.RunPhase(ctx, gaAgent, phase.StepEnd)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, actionsCount.Get(th.Snapshot()), told, "an effect for each commit that carried one")
	done := 0
	for _, a := range rep.Actions {
		if a.Status == engine.ActionDone {
			done++
		}
	}
	require.EqualValues(t, actionsCount.Get(th.Snapshot()), done)
	require.Empty(t, gaDead(th))
}

// Fault F25. A handler has the time that its Timeout or Limits.ActionTimeout gives:
// then it is dead-lettered, and the loop goes on.
func TestActionsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, own := phase.NewAction[int]("slow", phase.StepEnd), phase.NewAction[int]("own", phase.StepEnd)
		sleeps := func(context.Context, *phase.Context, int) (phase.Command, error) {
			time.Sleep(time.Hour)
			return gaUpdates(actionsCount.With(100)), nil
		}
		th := gaThread(t, engine.Config{Limits: engine.Limits{ActionTimeout: time.Second}, Plugins: []engine.Plugin{
			gaAct(slow.Handle(sleeps), own.Handle(sleeps).Timeout(5*time.Second)),
		}})
		gaSchedule(t, th, slow.New(1), own.New(1))
		start := time.Now()
		rep := gaPhase(t, th, phase.StepEnd)
		require.Equal(t, 6*time.Second, time.Since(start))
		for i, limit := range []time.Duration{time.Second, 5 * time.Second} {
			var te *engine.TimeoutError
			require.ErrorAs(t, rep.Actions[i].Err, &te)
			require.Equal(t, limit, te.Limit)
			require.Equal(t, engine.ActionDead, rep.Actions[i].Status)
		}
		time.Sleep(2 * time.Hour)
		require.Zero(t, actionsCount.Get(th.Snapshot()))
	})
}

// Capability A2. The handler of a plugin that no filter lists serves the others, and
// is told who scheduled the action.
func TestActionsHandlerOfInactivePluginServes(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepStart)
	by := ""
	th := gaPlugins(t, gaAct(act.Handle(func(ctx context.Context, _ *phase.Context, _ int) (phase.Command, error) {
		by = engine.Scheduler(ctx)
		return phase.Command{}, nil
	})), gaOn("user", phase.StepStart, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
		cmd.Schedule(act.New(1))
		return cmd, nil
	}))
	rep, err := th.RunPhase(t.Context(), engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"user"}}, phase.StepStart)
	require.NoError(t, err)
	require.Len(t, rep.Actions, 1)
	require.Equal(t, "user", by)
	require.Equal(t, "user", rep.Actions[0].Plugin)
}

// Capability A5. A handler may keep the context and the action's payload: what later
// rounds run does not reach them.
func TestActionsContextOutlivesItsRound(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepStart)
	var kept []context.Context
	th := gaPlugins(t, gaAct(act.Handle(func(ctx context.Context, _ *phase.Context, left int) (cmd phase.Command, err error) {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		kept = append(kept, inner)
		if left > 1 {
			cmd.Schedule(act.New(left - 1))
		}
		return cmd, nil
	})))
	gaSchedule(t, th, act.New(3))
	rep := gaPhase(t, th, phase.StepStart)
	require.Len(t, rep.Actions, 3)
	var by []string
	for _, ctx := range kept {
		by = append(by, engine.Scheduler(ctx))
	}
	require.Equal(t, []string{"test", "act", "act"}, by)
}

// Capability A6. A payload is frozen when the action is made: what its maker or a
// handler does to its own copy changes nothing for the next call.
func TestActionsPayloadIsFrozen(t *testing.T) {
	act := phase.NewAction[map[string]int]("act", phase.StepEnd)
	var seen []int
	th := gaPlugins(t, gaAct(act.Handle(func(_ context.Context, _ *phase.Context, m map[string]int) (phase.Command, error) {
		seen = append(seen, m["a"])
		m["a"] = 77
		return phase.Command{}, nil
	})))
	args := map[string]int{"a": 1}
	a := act.New(args)
	args["a"] = 2
	gaSchedule(t, th, a, a)
	gaPhase(t, th, phase.StepEnd)
	require.Equal(t, []int{1, 1}, seen)
}

// Fault B11. An action runs once though an effect of its round runs the phase, and
// so the rest of the queue, in between.
func TestActionsRunOnceThoughAnEffectRunsThePhase(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	effect := effects.NewSpec[int]("again")
	var th *engine.Thread
	calls := map[int]int{}
	th = gaPlugins(t, gaAct(act.Handle(func(_ context.Context, _ *phase.Context, n int) (cmd phase.Command, err error) {
		calls[n]++
		cmd.Update(actionsCount.With(1))
		if n == 1 {
			cmd.Emit(effect.New(1))
		}
		return cmd, nil
	})), gaPlugin("again", func(r *engine.Registrar) {
		r.Effect(effect.Handle(func(ctx context.Context, _ *state.Snapshot, _ int) error {
			_, err := th.RunPhase(ctx, gaAgent, phase.StepEnd)
			return err
		}))
	}))
	gaSchedule(t, th, act.New(1), act.New(2), act.New(3))
	gaPhase(t, th, phase.StepEnd)
	require.Equal(t, map[int]int{1: 1, 2: 1, 3: 1}, calls)
	require.EqualValues(t, 3, actionsCount.Get(th.Snapshot()))
}

// Fault B11. Two passes over one phase at the same time commit each action once.
func TestActionsCommitOnceUnderConcurrentPhases(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	var both sync.WaitGroup
	both.Add(2)
	var calls atomic.Int64
	th := gaPlugins(t, gaAct(act.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) {
		if calls.Add(1) <= 2 {
			both.Done()
			both.Wait() // both passes have taken up the action
		}
		return gaUpdates(actionsCount.With(1)), nil
	})))
	gaSchedule(t, th, act.New(1))
	var done atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepEnd)
			if err != nil {
				t.Error(err)
			}
			for _, a := range rep.Actions {
				if a.Status == engine.ActionDone {
					done.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, actionsCount.Get(th.Snapshot()))
	require.EqualValues(t, 1, done.Load())
	require.Empty(t, gaDead(th))
}

// Capability A19. A check at BeforeToolExecute that schedules a pause has it settled
// in the same phase: the body does not run, the run waits, and nothing is left
// queued; with someone there to answer, the call goes on.
func TestActionsPauseIsSettledInItsPhase(t *testing.T) {
	for _, answer := range []bool{false, true} {
		t.Run(fmt.Sprintf("answer=%t", answer), func(t *testing.T) {
			body, after := 0, 0
			tape := &gaTape{}
			c := engine.Config{
				Model: gaCalls(inference.ToolCall{ID: "c1", Name: "tool", Args: "{}"}), Observers: []engine.Observer{tape},
				Plugins: []engine.Plugin{
					gaTools(gaTool{"tool", func(context.Context, *phase.Context) (engine.Output, error) { body++; return engine.Text("ok"), nil }}),
					gaOn("check", phase.BeforeToolExecute, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
						cmd.Schedule(engine.SuspendCall.New(gate.Ticket{Message: "sure?"}))
						return cmd, nil
					}),
					gaOn("after", phase.AfterToolExecute, func(context.Context, *phase.Context) (phase.Command, error) { after++; return phase.Command{}, nil }),
				},
			}
			if answer {
				c.Resolver = gate.ResolverFunc(func(_ context.Context, q gate.Ticket) (phase.Answer, error) {
					require.Equal(t, "check", q.Plugin)
					return phase.Answer{Approved: true}, nil
				})
			}
			th := gaThread(t, c)
			res := gaRun(t, th)
			for _, e := range gaOf[engine.PhaseFinished](tape) {
				if e.Phase == phase.BeforeToolExecute {
					require.Equal(t, 1, e.Rounds, "the pause is settled before the phase ends")
				}
			}
			require.Empty(t, gaDead(th))
			if answer {
				require.Equal(t, phase.Done, res.Status)
				require.Equal(t, 1, body)
				require.Equal(t, 1, after)
				return
			}
			require.Equal(t, phase.Waiting, res.Status)
			require.Equal(t, 0, body)
			require.Equal(t, 0, after)
			require.Len(t, res.Tickets, 1)
			require.Equal(t, "sure?", res.Tickets[0].Message)
			require.Equal(t, "c1", res.Tickets[0].Call)
			rep, err := th.RunPhase(t.Context(), engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"tools"}}, phase.BeforeToolExecute)
			require.NoError(t, err)
			require.Zero(t, rep.Rounds)
		})
	}
}
