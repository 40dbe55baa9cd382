package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	tiersLog  = state.NewLog("tiers.log", state.Options[string]{})
	tiersCell = state.NewCell[int]("tiers.cell", state.Options[int]{})
)

// Capability G2. Capability H6. Lower tiers run first whatever the registration order, each sees what the
// tiers before committed, and hooks of one tier share a snapshot and a commit.
func TestTiersRunInOrderWithACommitBetween(t *testing.T) {
	hook := func(name string) phase.HookFunc {
		return func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			return gaUpdates(tiersLog.Append(fmt.Sprintf("%s@%d", name, pc.Snapshot().Revision()))), nil
		}
	}
	th := gaPlugins(t, gaKeys(tiersLog),
		gaOn("late", phase.StepEnd, hook("late"), engine.Tier(5)),
		gaOn("a", phase.StepEnd, hook("a")),
		gaOn("early", phase.StepEnd, hook("early"), engine.Tier(-3)),
		gaOn("b", phase.StepEnd, hook("b")),
	)
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, []string{"early@0", "a@1", "b@1", "late@2"}, tiersLog.Get(th.Snapshot()).Slice())
	require.Equal(t, 3, rep.Commits)
	var order []string
	for _, h := range rep.Hooks {
		order = append(order, fmt.Sprintf("%s %d", h.Hook, h.Tier))
	}
	require.Equal(t, []string{"early/step_end/0 -3", "a/step_end/0 0", "b/step_end/0 0", "late/step_end/0 5"}, order)
}

// Capability A4. Hooks of different tiers do not conflict: the later one reads what
// the earlier wrote, without a retry.
func TestTiersDoNotConflict(t *testing.T) {
	bump := func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		return gaUpdates(tiersCell.With(tiersCell.Get(pc.Snapshot()) + 1)), nil
	}
	th := gaPlugins(t, gaKeys(tiersCell), gaOn("a", phase.StepStart, bump), gaOn("b", phase.StepStart, bump, engine.Tier(1)), gaOn("c", phase.StepStart, bump, engine.Tier(2)))
	rep := gaPhase(t, th, phase.StepStart)
	require.Zero(t, rep.Retries)
	require.Equal(t, 3, tiersCell.Get(th.Snapshot()))
}

// Capability G2. StopPhase skips the later tiers, not the siblings and not the
// phase's actions, in each phase that runs hooks.
func TestTiersStopPhase(t *testing.T) {
	for p := range phase.All() {
		if p == phase.ToolGate {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			action := phase.NewAction[int]("act", p)
			th := gaPlugins(t, gaKeys(tiersLog),
				gaPlugin("handler", func(r *engine.Registrar) {
					r.Action(action.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) {
						return gaUpdates(tiersLog.Append("action")), nil
					}))
				}),
				gaOn("check", p, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
					cmd.Update(tiersLog.Append("check")).Schedule(action.New(1)).StopPhase()
					return cmd, nil
				}),
				gaOn("sibling", p, gaWrites(tiersLog.Append("sibling"))),
				gaOn("commit", p, gaWrites(tiersLog.Append("commit")), engine.Tier(1)),
				gaOn("push", p, gaWrites(tiersLog.Append("push")), engine.Tier(2)),
			)
			rep := gaPhase(t, th, p)
			require.True(t, rep.Stopped)
			require.Len(t, rep.Hooks, 2, "hooks of skipped tiers are not in the report")
			require.Equal(t, []string{"check", "sibling", "action"}, tiersLog.Get(th.Snapshot()).Slice())
		})
	}
}

// Capability G2. A stop without anything else works too, holds for this phase
// only, and the next one is whole again.
func TestTiersStopHoldsForOnePhase(t *testing.T) {
	stop := true
	th := gaPlugins(t, gaKeys(tiersLog),
		gaOn("check", phase.StepEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			if stop {
				cmd.StopPhase()
			}
			return cmd, nil
		}),
		gaOn("commit", phase.StepEnd, gaWrites(tiersLog.Append("commit")), engine.Tier(1)))
	require.True(t, gaPhase(t, th, phase.StepEnd).Stopped)
	require.Zero(t, tiersLog.Get(th.Snapshot()).Len())
	stop = false
	require.False(t, gaPhase(t, th, phase.StepEnd).Stopped)
	require.Equal(t, []string{"commit"}, tiersLog.Get(th.Snapshot()).Slice())
}

// Capability G2. Only a command that counts stops the phase: not that of a skipped
// hook, and of a deferred hook the one of its second call.
func TestTiersStopOfCommandThatDoesNotCount(t *testing.T) {
	calls := 0
	th := gaPlugins(t, gaKeys(tiersLog, tiersCell),
		gaOn("skipped", phase.StepEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.StopPhase()
			return cmd, errors.New("no")
		}, engine.OnError(engine.Skip)),
		gaOn("winner", phase.StepEnd, gaWrites(tiersCell.With(1))),
		gaOn("loser", phase.StepEnd, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			calls++
			cmd.Update(tiersCell.With(2))
			if tiersCell.Get(pc.Snapshot()) == 0 {
				cmd.StopPhase()
			}
			return cmd, nil
		}),
		gaOn("commit", phase.StepEnd, gaWrites(tiersLog.Append("commit")), engine.Tier(1)))
	rep := gaPhase(t, th, phase.StepEnd)
	require.Equal(t, 2, calls)
	require.False(t, rep.Stopped)
	require.Equal(t, []string{"commit"}, tiersLog.Get(th.Snapshot()).Slice())
}

// Capability G2. A tier that fails keeps the later tiers and the actions of the
// phase from running; what earlier tiers committed stays.
func TestTiersFailureEndsThePhase(t *testing.T) {
	boom := errors.New("boom")
	action := phase.NewAction[int]("act", phase.StepEnd)
	acted := 0
	th := gaPlugins(t, gaKeys(tiersLog),
		gaPlugin("handler", func(r *engine.Registrar) {
			r.Action(action.Handle(func(context.Context, *phase.Context, int) (cmd phase.Command, err error) {
				acted++
				return cmd, nil
			}))
		}),
		gaOn("first", phase.StepEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(tiersLog.Append("first")).Schedule(action.New(1))
			return cmd, nil
		}),
		gaOn("sibling", phase.StepEnd, gaWrites(tiersLog.Append("sibling")), engine.Tier(1)),
		gaOn("bad", phase.StepEnd, func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, boom }, engine.Tier(1)),
		gaOn("last", phase.StepEnd, gaWrites(tiersLog.Append("last")), engine.Tier(2)))
	rep, err := th.RunPhase(t.Context(), gaAgent, phase.StepEnd)
	require.ErrorIs(t, err, boom)
	require.Equal(t, []engine.HookStatus{engine.HookCommitted, engine.HookDropped, engine.HookFailed}, gaStatuses(rep))
	require.Equal(t, []string{"first"}, tiersLog.Get(th.Snapshot()).Slice())
	require.Zero(t, acted)
	rep, err = th.RunPhase(t.Context(), engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"keys"}}, phase.StepEnd)
	require.NoError(t, err)
	require.Equal(t, 1, acted, "what the first tier scheduled is still queued")
	require.Len(t, rep.Actions, 1)
}

// Capability G2. There is no tier and no stop at ToolGate, since it takes no hook.
func TestTiersNotAtToolGate(t *testing.T) {
	_, err := engine.New(engine.Config{Plugins: []engine.Plugin{gaOn("a", phase.ToolGate, gaDoes(phase.Command{}), engine.Tier(1))}})
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorContains(t, err, "plugin a")
	require.ErrorContains(t, err, "Gate")
}
