package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var lifeCell = state.NewCell[int]("life.cell", state.Options[int]{})

// Capability A13. Each of the nine phases fires, in the order of the lifecycle, as
// often as steps and calls are.
func TestLifecyclePhasesFireInOrder(t *testing.T) {
	tape := &gaTape{}
	call := func(id string) inference.ToolCall { return inference.ToolCall{ID: id, Name: "tool", Args: "{}"} }
	th := gaThread(t, engine.Config{
		Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{gaTools(gaTool{name: "tool"})},
		Model: gaCalls(call("c1"), call("c2")),
	})
	gaRun(t, th)
	var got []phase.Phase
	fired := map[phase.Phase]int{}
	for _, e := range gaOf[engine.PhaseStarted](tape) {
		got = append(got, e.Phase)
		fired[e.Phase]++
	}
	tools := []phase.Phase{phase.ToolGate, phase.BeforeToolExecute, phase.AfterToolExecute}
	want := []phase.Phase{phase.RunStart, phase.StepStart, phase.BeforeInference, phase.AfterInference}
	want = append(want, tools...)
	want = append(want, tools...)
	want = append(want, phase.StepEnd, phase.StepStart, phase.BeforeInference, phase.AfterInference, phase.StepEnd, phase.RunEnd)
	require.Equal(t, want, got)
	require.Len(t, fired, phase.Count, "every declared phase fires")
}

// Capability A13. The lifecycle is state: each hook reads where the run stands, and
// the stored status follows the run.
func TestLifecycleIsState(t *testing.T) {
	type at struct {
		Status phase.RunStatus
		Step   int
		Reason phase.Reason
	}
	var seen []at
	look := func(_ context.Context, pc *phase.Context) (phase.Command, error) {
		l := phase.RunLifecycle.Get(pc.Snapshot())
		require.Equal(t, pc.Run().ID, l.Run)
		seen = append(seen, at{l.Status, l.Step, l.Reason})
		return phase.Command{}, nil
	}
	th := gaPlugins(t, gaPlugin("look", func(r *engine.Registrar) {
		for _, p := range []phase.Phase{phase.RunStart, phase.StepStart, phase.StepEnd, phase.RunEnd} {
			r.Hook(p, phase.HookFunc(look))
		}
	}))
	require.Equal(t, phase.Lifecycle{Status: phase.Created}, phase.RunLifecycle.Get(th.Snapshot()))
	res := gaRun(t, th)
	require.Equal(t, []at{{phase.Running, 0, ""}, {phase.Running, 1, ""}, {phase.Running, 1, ""}, {phase.Running, 1, phase.ReasonNatural}}, seen)
	require.Equal(t, phase.Lifecycle{Run: res.Run, Status: phase.Done, Step: 1, Answered: 1, Ended: true, Reason: phase.ReasonNatural}, phase.RunLifecycle.Get(th.Snapshot()))
}

// Capability A13. Of several ends that hooks ask for the first in registration
// order counts, also when an unrelated conflict defers it.
func TestLifecycleFirstEndCounts(t *testing.T) {
	end := func(reason phase.Reason, cell bool) phase.HookFunc {
		return func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			if cell {
				cmd.Update(lifeCell.With(1))
			}
			cmd.EndRun(reason, "said "+string(reason))
			return cmd, nil
		}
	}
	for name, plugins := range map[string][]engine.Plugin{
		"plain":    {gaOn("a", phase.StepStart, end("first", false)), gaOn("b", phase.StepStart, end("second", false))},
		"deferred": {gaOn("x", phase.StepStart, gaWrites(lifeCell.With(9))), gaOn("a", phase.StepStart, end("first", true)), gaOn("b", phase.StepStart, end("second", false))},
		"tiers":    {gaOn("b", phase.StepStart, end("second", false), engine.Tier(1)), gaOn("a", phase.StepStart, end("first", false))},
	} {
		t.Run(name, func(t *testing.T) {
			th := gaPlugins(t, append([]engine.Plugin{gaKeys(lifeCell)}, plugins...)...)
			res := gaRun(t, th)
			require.EqualValues(t, "first", res.Reason)
			require.Equal(t, "said first", res.Detail)
		})
	}
}

// Capability A13. A command may end the run in each phase: RunEnd follows at the
// next boundary, once, and the reason is the command's.
func TestLifecycleEndInEachPhase(t *testing.T) {
	for p := range phase.All() {
		if p == phase.ToolGate || p == phase.RunEnd {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			ends, bodies := 0, 0
			model := gaCalls(inference.ToolCall{ID: "c", Name: "tool", Args: "{}"})
			th := gaThread(t, engine.Config{Model: model, Plugins: []engine.Plugin{
				gaTools(gaTool{"tool", func(context.Context, *phase.Context) (engine.Output, error) { bodies++; return engine.Text("ok"), nil }}),
				gaOn("end", p, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
					cmd.EndRun("mine", "now")
					return cmd, nil
				}),
				gaOn("count", phase.RunEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
					ends++
					require.EqualValues(t, "mine", phase.RunLifecycle.Get(pc.Snapshot()).Reason)
					return phase.Command{}, nil
				}),
			}})
			res := gaRun(t, th)
			require.EqualValues(t, "mine", res.Reason)
			require.Equal(t, 1, ends)
			asked := 0
			if p >= phase.AfterInference {
				asked = 1
			}
			require.Len(t, model.asked(), asked)
			require.Equal(t, p >= phase.AfterToolExecute, bodies == 1)
			open := 0
			for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
				open += len(m.ToolCalls)
				if m.Role == inference.RoleTool {
					open--
				}
			}
			require.Zero(t, open, "each call has its result")
		})
	}
}

// Capability A13. Status changes are checked: a plugin cannot take a run back.
func TestLifecycleTransitionsAreChecked(t *testing.T) {
	th := gaPlugins(t)
	set := func(s phase.RunStatus) error {
		_, err := th.Submit(t.Context(), "x", gaUpdates(phase.RunLifecycle.With(phase.LifecycleUpdate{Status: s})))
		return err
	}
	allowed := map[[2]phase.RunStatus]bool{
		{phase.Created, phase.Running}: true, {phase.Running, phase.Waiting}: true, {phase.Waiting, phase.Running}: true,
		{phase.Running, phase.Done}: true, {phase.Waiting, phase.Done}: true,
	}
	all := []phase.RunStatus{phase.Created, phase.Running, phase.Waiting, phase.Done, "bogus"}
	for _, path := range [][]phase.RunStatus{{}, {phase.Running}, {phase.Running, phase.Waiting}, {phase.Running, phase.Done}} {
		for _, to := range all {
			th = gaPlugins(t)
			from := phase.Created
			for _, s := range path {
				require.NoError(t, set(s))
				from = s
			}
			err := set(to)
			if from == to || allowed[[2]phase.RunStatus{from, to}] {
				require.NoError(t, err, "%s to %s", from, to)
			} else {
				require.Error(t, err, "%s to %s", from, to)
				require.Equal(t, from, phase.RunLifecycle.Get(th.Snapshot()).Status)
			}
		}
	}
}

// Capability A13. A run starts anew: neither the end nor the wish to continue of the
// last run is left over.
func TestLifecycleBeginsAnewWithEachRun(t *testing.T) {
	var fresh []phase.Lifecycle
	th := gaPlugins(t,
		gaOn("look", phase.RunStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			l := phase.RunLifecycle.Get(pc.Snapshot())
			l.Run = ""
			fresh = append(fresh, l)
			return phase.Command{}, nil
		}),
		gaOn("end", phase.RunEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Continue("no effect here")
			return cmd, nil
		}))
	first, second := gaRun(t, th), gaRun(t, th)
	require.NotEqual(t, first.Run, second.Run)
	require.Equal(t, []phase.Lifecycle{{Status: phase.Running}, {Status: phase.Running}}, fresh)
	require.Equal(t, 1, second.Steps)
}
