package enginetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/stretchr/testify/require"
)

var (
	notes = state.NewLog("driver.notes", state.Options[string]{})
	owner = state.NewCell[string]("driver.owner", state.Options[string]{})
	note  = phase.NewAction[string]("driver.note", phase.StepEnd)
	tell  = effects.NewSpec[string]("driver.tell")
)

// clerk notes what it is told in every phase and takes the owner cell.
func clerk(name string, fail error) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		if name == "clerk" {
			r.Key(notes, owner)
			r.Action(note.Handle(func(_ context.Context, _ *phase.Context, s string) (cmd phase.Command, err error) {
				cmd.Update(notes.Append("action " + s)).Emit(tell.New(s))
				return cmd, nil
			}))
			r.Effect(tell.Handle(func(_ context.Context, _ *state.Snapshot, s string) error { return errors.New("deaf to " + s) }))
		}
		for p := range phase.All() {
			if p == phase.ToolGate {
				continue
			}
			r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				said := name
				if resp, ok := pc.Response(); ok {
					said += " heard " + resp.Message.Text
				}
				if id := pc.Call().ID; id != "" {
					said += " of " + id
				}
				if pc.Result().CallID != "" {
					said += " got " + pc.Result().Content
				}
				cmd.Update(notes.Append(said), owner.With(name))
				return cmd, fail
			}))
		}
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Block("no"), nil }))
		return nil
	})
}

func TestDriverRunsAPhaseByItself(t *testing.T) {
	d := enginetest.Driver{
		Plugins:  []engine.Plugin{clerk("clerk", nil), clerk("rival", nil)},
		Seed:     []state.Update{notes.Append("seed")},
		Actions:  []phase.Action{note.New("x")},
		Messages: []inference.Message{inference.User("hello")},
	}
	for range 2 { // each time anew
		out := d.RunPhase(t, phase.StepEnd)
		require.NoError(t, out.Err)
		require.Nil(t, out.Run)
		require.Equal(t, []string{"seed"}, notes.Get(out.Before).Slice())
		require.Equal(t, []string{"seed", "clerk", "rival", "action x"}, notes.Get(out.Snapshot).Slice())
		require.Equal(t, "hello", engine.Transcript.Get(out.Snapshot).At(0).Text)
		require.Equal(t, phase.StepEnd, out.Report.Phase)
		require.Equal(t, 1, out.Report.Rounds)
		require.Equal(t, 1, out.Report.Retries)
		require.Equal(t, engine.HookRetried, out.Report.Hooks[1].Status)
		require.ErrorContains(t, out.Report.Effects[0].Err, "deaf to x")
		require.Equal(t, "phase_started", out.Events[0].Type())
		require.Equal(t, "phase_finished", out.Events[len(out.Events)-1].Type())
		require.Len(t, enginetest.Select[engine.Conflict](out.Events), 1)
	}
}

func TestDriverTellsAFailedPhase(t *testing.T) {
	boom := errors.New("boom")
	d := enginetest.Driver{Plugins: []engine.Plugin{clerk("clerk", boom)}}
	out := d.RunPhase(t, phase.StepEnd)
	require.ErrorIs(t, out.Err, boom)
	require.Equal(t, engine.HookFailed, out.Report.Hooks[0].Status)
	require.Equal(t, 0, notes.Get(out.Snapshot).Len())

	d.Model = enginetest.NewScript(enginetest.Say("hi"))
	d.Spec.ActiveHookFilter = []string{"clerk"}
	out = d.RunPhase(t, phase.RunStart)
	require.ErrorContains(t, out.Err, "boom")
	require.Equal(t, phase.ReasonError, out.Run.Reason)
}

// The phase of a run has what a run has: a response, a call, a result, a gate.
func TestDriverCutsAPhaseOutOfARun(t *testing.T) {
	d := enginetest.Driver{
		Plugins:  []engine.Plugin{clerk("clerk", nil)},
		Spec:     engine.AgentSpec{PluginIDs: []string{"clerk"}, ActiveHookFilter: []string{"clerk"}},
		Seed:     []state.Update{owner.With("seed"), notes.Append("seed")},
		Actions:  []phase.Action{note.New("x")},
		Messages: []inference.Message{inference.User("hello")},
		Model:    enginetest.NewScript(enginetest.Say("a look").And(enginetest.Call("c1", "look", nil)), enginetest.Say("done")),
		Tools:    []engine.Tool{enginetest.StubTool("look", engine.Text("seen"))},
	}
	for p, want := range map[phase.Phase][]string{
		phase.RunStart:         {"clerk"},
		phase.AfterInference:   {"clerk heard a look"},
		phase.AfterToolExecute: {"clerk heard a look of c1 got blocked: no"},
		phase.StepEnd:          {"clerk heard a look", "action x"},
	} {
		out := d.RunPhase(t, p)
		require.NoError(t, out.Err)
		require.Equal(t, phase.ReasonNatural, out.Run.Reason)
		before := notes.Get(out.Before).Slice()
		require.Equal(t, "seed", before[0])
		require.Equal(t, append(before, want...), notes.Get(out.Snapshot).Slice(), p)
		require.Equal(t, out.Snapshot.Revision(), out.Report.Revision)
		require.Len(t, out.Report.Hooks, 1)
		require.Equal(t, "hello", engine.Transcript.Get(out.Before).At(0).Text)
		if p == phase.RunStart {
			require.Equal(t, "seed", owner.Get(out.Before))
		}
		if p == phase.StepEnd {
			require.Equal(t, engine.ActionDone, out.Report.Actions[0].Status)
			require.ErrorContains(t, out.Report.Effects[0].Err, "deaf to x")
			require.Equal(t, 1, out.Report.Rounds)
		}
	}
	out := d.RunPhase(t, phase.ToolGate)
	require.Equal(t, "no", enginetest.Select[engine.GateVoted](out.Events)[0].Reason)

	out = enginetest.Driver{Plugins: d.Plugins, Call: inference.ToolCall{ID: "c9", Name: "unknown"}}.RunPhase(t, phase.ToolGate)
	require.Equal(t, gate.KindBlock, enginetest.Select[engine.GateResolved](out.Events)[0].Decision)
	require.Equal(t, "c9", enginetest.Select[engine.PhaseStarted](out.Events)[0].Call)
}

func TestDriverFailsTheTestWhenThePhaseCannotRun(t *testing.T) {
	for want, d := range map[string]enginetest.Driver{
		"refused":        {Plugins: []engine.Plugin{clerk("clerk", nil), clerk("clerk", nil)}},
		"seed was":       {Seed: []state.Update{notes.Append("x")}},
		"before tool_ga": {Model: enginetest.NewScript(enginetest.Say("no call"))},
		"cannot run":     {Spec: engine.AgentSpec{PluginIDs: []string{"unknown"}}},
		"agent cannot":   {Spec: engine.AgentSpec{PluginIDs: []string{"unknown"}}, Model: enginetest.NewScript()},
	} {
		said := try(t.Context(), func(t enginetest.TB) { d.RunPhase(t, phase.ToolGate) })
		require.Len(t, said.faults, 1, want)
		require.Contains(t, said.text(), want)
	}
	d := enginetest.Driver{Configure: func(c *engine.Config) { c.Limits.PhaseRounds = -1 }}
	require.Contains(t, try(t.Context(), func(t enginetest.TB) { d.RunPhase(t, phase.RunStart) }).text(), "PhaseRounds")
}
