package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var convergeSeen = state.NewLog("converge.seen", state.Options[int]{Scope: state.ScopeThread})

// gaChain is a plugin whose action of argument n, at p, notes n and schedules
// itself with n-1 until 1.
func gaChain(p phase.Phase) (phase.ActionSpec[int], engine.Plugin) {
	link := phase.NewAction[int]("link", p)
	return link, gaPlugin("chain", func(r *engine.Registrar) {
		r.Key(convergeSeen)
		r.Action(link.Handle(func(_ context.Context, _ *phase.Context, n int) (cmd phase.Command, err error) {
			cmd.Update(convergeSeen.Append(n))
			if n > 1 {
				cmd.Schedule(link.New(n - 1))
			}
			return cmd, nil
		}))
	})
}

func gaSchedule(t testing.TB, th *engine.Thread, actions ...phase.Action) {
	t.Helper()
	var cmd phase.Command
	cmd.Schedule(actions...)
	_, err := th.Submit(t.Context(), "test", cmd)
	require.NoError(t, err)
}

func gaDead(th *engine.Thread) []engine.DeadLetter {
	var out []engine.DeadLetter
	for _, d := range th.DeadLetters() {
		out = append(out, d)
	}
	return out
}

// Capability A5. Fault B37. Fault F19. A chain of 16 rounds converges; one of 17
// is a typed error after 16 rounds whose work stays, the left-over is
// dead-lettered, and the next run of the phase does not trip again.
func TestConvergeSixteenRoundsAndNotOneMore(t *testing.T) {
	for p := range phase.All() {
		t.Run(p.String(), func(t *testing.T) {
			link, chain := gaChain(p)
			th := gaPlugins(t, chain)
			gaSchedule(t, th, link.New(16))
			rep := gaPhase(t, th, p)
			require.Equal(t, 16, rep.Rounds)
			require.Len(t, rep.Actions, 16)
			require.Equal(t, 16, convergeSeen.Get(th.Snapshot()).Len())
			require.Empty(t, gaDead(th))
			require.Zero(t, gaPhase(t, th, p).Rounds, "the queue is empty")

			th = gaPlugins(t, chain)
			gaSchedule(t, th, link.New(17))
			rep, err := th.RunPhase(t.Context(), gaAgent, p)
			require.ErrorIs(t, err, phase.ErrNotConverged)
			var ce *phase.ConvergenceError
			require.ErrorAs(t, err, &ce)
			require.Equal(t, phase.ConvergenceError{Phase: p, Rounds: 16, Pending: []string{"link"}}, *ce)
			require.Equal(t, 16, rep.Rounds)
			require.Equal(t, 16, convergeSeen.Get(th.Snapshot()).Len(), "committed rounds stay")
			require.Len(t, rep.Actions, 17)
			require.Equal(t, engine.ActionDead, rep.Actions[16].Status)
			dead := gaDead(th)
			require.Len(t, dead, 1)
			require.Equal(t, engine.ActionDead, dead[0].Status)
			require.Equal(t, "chain", dead[0].Plugin)
			require.Contains(t, dead[0].Reason, "16 rounds")
			rep = gaPhase(t, th, p)
			require.Zero(t, rep.Rounds, "it does not trip again")
		})
	}
}

// Fault B37. 500 actions scheduled at once are one round, and the limit counts
// rounds, not actions.
func TestConvergeManyActionsAreOneRound(t *testing.T) {
	link, chain := gaChain(phase.StepEnd)
	th := gaThread(t, engine.Config{Plugins: []engine.Plugin{chain}, Limits: engine.Limits{PhaseRounds: 1}})
	actions := make([]phase.Action, 500)
	for i := range actions {
		actions[i] = link.New(1)
	}
	gaSchedule(t, th, actions...)
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, 1, rep.Rounds)
	require.Len(t, rep.Actions, 500)
}

// Capability A5. The limit is Limits.PhaseRounds, each phase counts from zero, and a
// run that does not converge ends with the error as its cause.
func TestConvergeLimitIsConfigurableAndPerPhase(t *testing.T) {
	start, starts := gaChain(phase.StepStart)
	end := phase.NewAction[int]("end", phase.StepEnd)
	th := gaThread(t, engine.Config{Limits: engine.Limits{PhaseRounds: 3}, Plugins: []engine.Plugin{
		starts,
		gaPlugin("end", func(r *engine.Registrar) {
			r.Action(end.Handle(func(_ context.Context, _ *phase.Context, n int) (cmd phase.Command, err error) {
				if n > 1 {
					cmd.Schedule(end.New(n - 1))
				}
				return cmd, nil
			}))
		}),
	}})
	gaSchedule(t, th, start.New(3), end.New(3))
	res := gaRun(t, th)
	require.Equal(t, 6, res.Stats.Rounds)
	require.Equal(t, 3, res.Stats.MaxRounds)
	gaSchedule(t, th, start.New(4))
	res, err := th.Run(t.Context(), gaAgent, engine.Prompt("x"))
	require.NoError(t, err)
	require.Equal(t, phase.ReasonError, res.Reason)
	require.ErrorIs(t, res.Err, phase.ErrNotConverged)
	require.Equal(t, 1, res.Stats.DeadLetters)
}

// Capability A6. Each handler runs on a fresh snapshot: it sees what the action
// before it committed, in its round and in earlier ones.
func TestConvergeHandlersSeeFreshSnapshots(t *testing.T) {
	note := phase.NewAction[int]("note", phase.StepEnd)
	total := state.NewCell[int]("total", state.Options[int]{})
	var rounds []int
	th := gaPlugins(t, gaPlugin("p", func(r *engine.Registrar) {
		r.Key(total)
		r.Action(note.Handle(func(_ context.Context, pc *phase.Context, n int) (phase.Command, error) {
			rounds = append(rounds, pc.Round())
			cmd := gaUpdates(total.With(total.Get(pc.Snapshot())*10 + n))
			if n == 1 {
				cmd.Schedule(note.New(4))
			}
			return cmd, nil
		}))
	}))
	gaSchedule(t, th, note.New(1), note.New(2), note.New(3))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, 1234, total.Get(th.Snapshot()))
	require.Equal(t, []int{1, 1, 1, 2}, rounds)
	require.Equal(t, 2, rep.Rounds)
	require.Zero(t, rep.Retries)
}

// Fault B11. Fault F20. An action scheduled at StepStart for any phase runs exactly
// once in it, with no hook there; one whose phase is over is reported as
// undelivered, by an event and a dead letter.
func TestConvergeEveryPhaseRunsItsActions(t *testing.T) {
	for p := range phase.All() {
		t.Run(p.String(), func(t *testing.T) {
			var at []phase.Phase
			tape := &gaTape{}
			action := phase.NewAction[string]("act", p)
			th := gaThread(t, engine.Config{
				Model: gaCalls(inference.ToolCall{ID: "c", Name: "tool", Args: "{}"}), Observers: []engine.Observer{tape},
				Plugins: []engine.Plugin{
					gaTools(gaTool{name: "tool"}),
					gaPlugin("sched", func(r *engine.Registrar) {
						r.Action(action.Handle(func(_ context.Context, pc *phase.Context, arg string) (phase.Command, error) {
							require.Equal(t, "arg", arg)
							at = append(at, pc.Phase())
							return phase.Command{}, nil
						}))
						r.Hook(phase.StepStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
							if pc.Run().Step == 1 {
								cmd.Schedule(action.New("arg"))
							}
							return cmd, nil
						}))
					}),
				},
			})
			res := gaRun(t, th)
			ended := gaOf[engine.ActionFinished](tape)
			require.Len(t, ended, 1)
			if p == phase.RunStart {
				require.Empty(t, at)
				require.Equal(t, engine.ActionUndelivered, ended[0].Status)
				require.Equal(t, "sched", ended[0].Plugin)
				dead := gaDead(th)
				require.Len(t, dead, 1)
				require.Equal(t, engine.ActionUndelivered, dead[0].Status)
				require.Equal(t, res.Run, dead[0].Run)
				require.Equal(t, 1, res.Stats.DeadLetters, "Stats counts what was not delivered")
				return
			}
			require.Equal(t, []phase.Phase{p}, at)
			require.Equal(t, engine.ActionDone, ended[0].Status)
			require.Equal(t, 1, ended[0].Round)
			require.Empty(t, gaDead(th))
			require.Equal(t, 1, res.Stats.Actions)
			require.Zero(t, res.Stats.DeadLetters)
		})
	}
}

// Fault B11. Actions run also when the run was ended early: those for RunEnd in
// RunEnd, and the rest is reported.
func TestConvergeActionsOfARunThatEndsEarly(t *testing.T) {
	var ran []string
	atEnd, later := phase.NewAction[int]("at_end", phase.RunEnd), phase.NewAction[int]("later", phase.AfterInference)
	note := func(name string) func(context.Context, *phase.Context, int) (phase.Command, error) {
		return func(context.Context, *phase.Context, int) (phase.Command, error) {
			ran = append(ran, name)
			return phase.Command{}, nil
		}
	}
	th := gaPlugins(t, gaPlugin("p", func(r *engine.Registrar) {
		r.Action(atEnd.Handle(note("at_end")), later.Handle(note("later")))
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Schedule(atEnd.New(1), later.New(1)).EndRun("enough", "said the hook")
			return cmd, nil
		}))
	}))
	res := gaRun(t, th)
	require.EqualValues(t, "enough", res.Reason)
	require.Equal(t, []string{"at_end"}, ran)
	dead := gaDead(th)
	require.Len(t, dead, 1)
	require.Equal(t, "later", dead[0].Action.Name())
}

// Capability A5. A failed phase leaves its queue as it is: the actions run when the
// phase comes next.
func TestConvergeNotAfterAFailedGather(t *testing.T) {
	link, chain := gaChain(phase.StepEnd)
	fail := true
	th := gaPlugins(t, chain, gaOn("bad", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) {
		if fail {
			return phase.Command{}, errors.New("no")
		}
		return phase.Command{}, nil
	}))
	gaSchedule(t, th, link.New(1))
	rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepEnd)
	require.Error(t, err)
	require.Empty(t, rep.Actions)
	fail = false
	require.Len(t, gaPhase(t, th, phase.StepEnd).Actions, 1)
}

// Capability A5. Commit, round and action events come in the order in which things
// happened.
func TestConvergeEvents(t *testing.T) {
	link, chain := gaChain(phase.StepEnd)
	tape := &gaTape{}
	th := gaThread(t, engine.Config{Plugins: []engine.Plugin{chain}, Observers: []engine.Observer{tape}})
	gaSchedule(t, th, link.New(2), link.New(1))
	gaPhase(t, th, phase.StepEnd)
	var got []string
	for _, e := range tape.all() {
		switch e := e.(type) {
		case engine.Committed:
			got = append(got, fmt.Sprintf("commit round %d", e.Round))
		case engine.RoundFinished:
			got = append(got, fmt.Sprintf("round %d of %d", e.Round, e.Actions))
		case engine.ActionFinished:
			got = append(got, fmt.Sprintf("action %d round %d %s", e.ID, e.Round, e.Status))
		case engine.PhaseFinished:
			got = append(got, fmt.Sprintf("phase in %d rounds", e.Rounds))
		}
	}
	require.Equal(t, []string{
		"commit round 0", // the submit
		"commit round 1", "action 1 round 1 done", "commit round 1", "action 2 round 1 done", "round 1 of 2",
		"commit round 2", "action 3 round 2 done", "round 2 of 1",
		"phase in 2 rounds",
	}, got)
}

// Fault F02. The cost of an action does not grow with the length of the queue:
// from 1,000 to 10,000 queued actions the bytes allocated for each grow by a
// logarithm at most, also beside 10,000 actions of another phase.
func TestConvergeQueueCostIsNLogN(t *testing.T) {
	act, other := phase.NewAction[int]("act", phase.StepEnd), phase.NewAction[int]("other", phase.RunEnd)
	nothing := func(context.Context, *phase.Context, int) (phase.Command, error) { return phase.Command{}, nil }
	cost := func(n, beside int) (perAction float64) {
		th := gaPlugins(t, gaPlugin("p", func(r *engine.Registrar) { r.Action(act.Handle(nothing), other.Handle(nothing)) }))
		var cmd phase.Command
		for i := range n {
			cmd.Schedule(act.New(i))
		}
		for i := range beside {
			cmd.Schedule(other.New(i))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := th.Submit(t.Context(), "test", cmd)
		require.NoError(t, err)
		rep := gaPhase(t, th, phase.StepEnd)
		runtime.ReadMemStats(&after)
		require.Len(t, rep.Actions, n)
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
	}
	cost(100, 0) // warm up
	small, large, crowded := cost(1_000, 0), cost(10_000, 0), cost(1_000, 10_000)
	t.Logf("bytes for each action: %.0f of 1,000, %.0f of 10,000, %.0f of 1,000 beside 10,000 others", small, large, crowded)
	require.Less(t, large, 1.6*small, "bytes for each of 10,000 actions against 1,000")
	require.Less(t, crowded, 6*small, "bytes for each of 1,000 actions beside 10,000 of another phase, their scheduling included")
}

// Fault F02. Scheduling one action at a time is as cheap with a long queue as with
// a short one.
func TestConvergeSchedulingIntoALongQueue(t *testing.T) {
	act := phase.NewAction[int]("act", phase.StepEnd)
	nothing := func(context.Context, *phase.Context, int) (phase.Command, error) { return phase.Command{}, nil }
	th := gaPlugins(t, gaPlugin("p", func(r *engine.Registrar) { r.Action(act.Handle(nothing)) }))
	add := func(n int) {
		for i := range n {
			gaSchedule(t, th, act.New(i))
		}
	}
	add(100)
	short := testing.AllocsPerRun(200, func() { add(1) })
	add(10_000)
	long := testing.AllocsPerRun(200, func() { add(1) })
	t.Logf("allocations: %.0f into a short queue, %.0f into a long one", short, long)
	require.LessOrEqual(t, long, short+12, "allocations of one submit")
}

// Capability A8. An effect of a handler is delivered before the next round, so that
// what it submits belongs to the same phase.
func TestConvergeEffectMayScheduleForTheSamePhase(t *testing.T) {
	link, chain := gaChain(phase.StepEnd)
	effect := effects.NewSpec[int]("more")
	var th *engine.Thread
	th = gaPlugins(t, chain,
		gaPlugin("handler", func(r *engine.Registrar) {
			r.Effect(effect.Handle(func(ctx context.Context, _ *state.Snapshot, n int) error {
				var cmd phase.Command
				cmd.Schedule(link.New(n))
				_, err := th.Submit(ctx, "handler", cmd)
				return err
			}))
		}),
		gaOn("hook", phase.StepEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Emit(effect.New(2))
			return cmd, nil
		}))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, 2, rep.Rounds)
	require.Equal(t, []int{2, 1}, convergeSeen.Get(th.Snapshot()).Slice())
}
