package enginetest_test

import (
	"context"
	"testing"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/stretchr/testify/require"
)

var fired = state.NewLog("conformance.fired", state.Options[phase.Phase]{Scope: state.ScopeThread})

// probe is a plugin with one hook on p, or one gate on tool_gate, that leaves a
// trace in state or, since gates cannot write, calls told.
func probe(p phase.Phase, told func()) engine.Plugin {
	return engine.NewPlugin("probe", func(r *engine.Registrar) error {
		r.Key(fired)
		if p == phase.ToolGate {
			r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Phase() == p {
					told()
				}
				return gate.Approve(), nil
			}))
			return nil
		}
		r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			told()
			cmd.Update(fired.Append(pc.Phase()))
			return cmd, nil
		}))
		return nil
	})
}

func probedRun(t *testing.T, plugin engine.Plugin) (*state.Snapshot, *enginetest.Recorder) {
	config, rec := enginetest.Config(t, plugin)
	config.Model = enginetest.NewScript(enginetest.Call("c1", "look", nil), enginetest.Say("done"))
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), engine.AgentSpec{ID: "agent"}, engine.Input{
		Tools: []engine.Tool{enginetest.StubTool("look", engine.Text("seen"))},
	})
	require.NoError(t, err)
	require.Equal(t, phase.ReasonNatural, res.Reason, res.Detail)
	return th.Snapshot(), rec
}

// Capability A13. Capability G1. Report 7. Every declared phase fires, as often as the run passes it: here
// in two steps, of which the first calls a tool.
func TestEveryPhaseFires(t *testing.T) {
	times := map[phase.Phase]int{
		phase.RunStart: 1, phase.StepStart: 2, phase.BeforeInference: 2, phase.AfterInference: 2,
		phase.ToolGate: 1, phase.BeforeToolExecute: 1, phase.AfterToolExecute: 1, phase.StepEnd: 2, phase.RunEnd: 1,
	}
	require.Len(t, times, phase.Count, "a phase was declared that this test does not know")
	for p := range phase.All() {
		t.Run(p.String(), func(t *testing.T) {
			calls := 0
			snap, rec := probedRun(t, probe(p, func() { calls++ }))
			require.Equal(t, times[p], calls)
			starts := 0
			for _, e := range enginetest.Select[engine.PhaseStarted](rec.Events()) {
				if e.Phase == p {
					require.Equal(t, 1, e.Hooks)
					starts++
				}
			}
			require.Equal(t, times[p], starts)
			if p != phase.ToolGate {
				require.Equal(t, times[p], fired.Get(snap).Len())
				require.Equal(t, p, fired.Get(snap).At(0))
			}
		})
	}
}

// Capability A5. Every phase has the action loop, also without a hook.
func TestEveryPhaseRunsItsActions(t *testing.T) {
	for p := range phase.All() {
		t.Run(p.String(), func(t *testing.T) {
			act := phase.NewAction[int]("conformance.act", p)
			again := phase.NewAction[int]("conformance.again", p)
			plugin := engine.NewPlugin("probe", func(r *engine.Registrar) error {
				r.Key(fired)
				r.Action(
					act.Handle(func(_ context.Context, pc *phase.Context, _ int) (cmd phase.Command, err error) {
						cmd.Update(fired.Append(pc.Phase())).Schedule(again.New(0))
						return cmd, nil
					}),
					again.Handle(func(_ context.Context, pc *phase.Context, _ int) (cmd phase.Command, err error) {
						require.Equal(t, 2, pc.Round())
						cmd.Update(fired.Append(pc.Phase()))
						return cmd, nil
					}),
				)
				r.Hook(phase.RunStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
					cmd.Schedule(act.New(0))
					return cmd, nil
				}))
				return nil
			})
			snap, rec := probedRun(t, plugin)
			require.Equal(t, []phase.Phase{p, p}, fired.Get(snap).Slice())
			for _, e := range enginetest.Select[engine.ActionFinished](rec.Events()) {
				require.Equal(t, engine.ActionDone, e.Status)
				require.Equal(t, p, e.Phase)
			}
		})
	}
}

// Capability A12. Report 7. A phase that is not declared cannot be registered on.
func TestUndeclaredPhaseIsRefused(t *testing.T) {
	for _, p := range []phase.Phase{0, phase.Phase(phase.Count) + 1, 255} {
		_, err := engine.New(engine.Config{Plugins: []engine.Plugin{probe(p, func() {})}})
		require.ErrorIs(t, err, engine.ErrRegistration)
		require.ErrorContains(t, err, "plugin probe")
		require.ErrorContains(t, err, "unknown phase")
		act := phase.NewAction[int]("conformance.act", p)
		_, err = engine.New(engine.Config{Plugins: []engine.Plugin{engine.NewPlugin("actor", func(r *engine.Registrar) error {
			r.Action(act.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) { return phase.Command{}, nil }))
			return nil
		})}})
		require.ErrorIs(t, err, engine.ErrRegistration)
		require.ErrorContains(t, err, "plugin actor")
	}
}
