package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/picture"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Capability H6. What the author of a small hook system admits that his does not do,
// one by one.
func TestAdmittedShortcomings(t *testing.T) {
	t.Run("no veto", testVeto)
	t.Run("no priority and no conflict handling", testPriorityAndConflicts)
	t.Run("one bad handler kills the run", testFaultIsolation)
	t.Run("the context can do everything", testNarrowContext)
	t.Run("the manifest does not list hooks", testHooksInManifest)
	t.Run("no finer moments", testFinerMoments)
}

func plugin(name string, register func(*engine.Registrar)) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error { register(r); return nil })
}

func hook(fn func(pc *phase.Context, cmd *phase.Command) error) phase.Hook {
	return phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		err = fn(pc, &cmd)
		return cmd, err
	})
}

// play runs an agent whose model calls a tool and then is done.
func play(t *testing.T, tool func() string, list ...engine.Plugin) (*engine.Thread, *engine.Result, []engine.Event) {
	t.Helper()
	config, rec := enginetest.Config(t, list...)
	config.Model = enginetest.NewScript(enginetest.Call("c", "wipe", nil), enginetest.Say("done"))
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "wipe"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
		return engine.Text(tool()), nil
	})}
	res, err := th.Run(t.Context(), engine.AgentSpec{ID: "a"}, in)
	require.NoError(t, err)
	return th, res, rec.Events()
}

// One plugin says no, and the call does not run, whatever others approve and
// wherever they stand; the model learns why and the run goes on.
func testVeto(t *testing.T) {
	no := plugin("no", func(r *engine.Registrar) {
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Block("not here"), nil }))
	})
	yes := plugin("yes", func(r *engine.Registrar) {
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
			return gate.Approve().Because("sure"), nil
		}))
	})
	for _, order := range [][]engine.Plugin{{yes, no}, {no, yes}} {
		ran := 0
		_, res, events := play(t, func() string { ran++; return "wiped" }, order...)
		require.Zero(t, ran)
		require.Equal(t, phase.ReasonNatural, res.Reason)
		got := enginetest.Select[engine.ToolFinished](events)
		require.Len(t, got, 1)
		require.Equal(t, inference.OutcomeBlocked, got[0].Result.Outcome)
		require.Equal(t, "blocked: not here", got[0].Result.Content)
	}
}

// Tiers say who goes first, and two hooks of one tier that want the same key are
// told apart by registration order: nothing is lost, and the trace says who won.
func testPriorityAndConflicts(t *testing.T) {
	line := state.NewCell("line", state.Options[string]{})
	writer := func(name string, o ...engine.HookOption) engine.Plugin {
		return plugin(name, func(r *engine.Registrar) {
			r.Hook(phase.RunStart, hook(func(pc *phase.Context, cmd *phase.Command) error {
				cmd.Update(line.With(line.Get(pc.Snapshot()) + name + " "))
				return nil
			}), append(o, engine.Writes(line))...)
		})
	}
	keys := plugin("keys", func(r *engine.Registrar) { r.Key(line) })
	list := []engine.Plugin{keys, writer("last", engine.Tier(1)), writer("b"), writer("a"), writer("first", engine.Tier(-1))}
	th, res, events := play(t, func() string { return "" }, list...)
	require.NoError(t, res.Err)
	require.Equal(t, "first b a last ", line.Get(th.Snapshot()))
	conflicts := enginetest.Select[engine.Conflict](events)
	require.Len(t, conflicts, 1)
	require.Equal(t, []string{"line", "b", "a", "retried"}, []string{conflicts[0].Key, conflicts[0].Winner, conflicts[0].Loser, conflicts[0].Fate})
}

// A hook that panics or fails harms nobody but itself; an observer that panics, too.
func testFaultIsolation(t *testing.T) {
	seen := state.NewCounter("seen", state.Options[int64]{})
	bad := plugin("bad", func(r *engine.Registrar) {
		for p := range phase.All() {
			if p == phase.ToolGate {
				continue
			}
			r.Hook(p, hook(func(_ *phase.Context, cmd *phase.Command) error { panic("oh no") }), engine.OnError(engine.Skip))
			r.Hook(p, hook(func(_ *phase.Context, cmd *phase.Command) error { return errors.New("no") }), engine.OnError(engine.Skip))
		}
	})
	good := plugin("good", func(r *engine.Registrar) {
		r.Key(seen)
		for p := range phase.All() {
			if p != phase.ToolGate {
				r.Hook(p, hook(func(_ *phase.Context, cmd *phase.Command) error { cmd.Update(seen.With(1)); return nil }))
			}
		}
	})
	config, rec := enginetest.Config(t, bad, good)
	config.Observers = append(config.Observers, engine.ObserverFunc(func(engine.Event) { panic("observer") }))
	config.Model = enginetest.NewScript(enginetest.Call("c", "nope", nil), enginetest.Say("done"))
	th, err := enginetest.Engine(t, config).NewThread("")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	// Run start and end, twice the four phases of a step, and what follows a call.
	require.EqualValues(t, 2+2*4+1, seen.Get(th.Snapshot()))
	warned := 0
	for _, w := range enginetest.Select[engine.Warning](rec.Events()) {
		require.Equal(t, "bad", w.Plugin)
		warned++
	}
	require.Equal(t, 2*(2+2*4+1), warned, "each fault is told, with who it was")
}

// What a hook is given can tell and not do: it has no field and no method that
// registers, fires, commits or reaches a live object, and the registrar that a
// plugin kept is dead. Changing what the methods return changes nothing.
func testNarrowContext(t *testing.T) {
	typ := reflect.TypeFor[*phase.Context]()
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		require.Equal(t, 1, m.Type.NumIn(), "%s takes something in", m.Name)
		require.NotZero(t, m.Type.NumOut(), "%s only does something", m.Name)
		for o := range m.Type.NumOut() {
			out := m.Type.Out(o)
			require.NotContains(t, []reflect.Kind{reflect.Func, reflect.Chan, reflect.Map}, out.Kind(), m.Name)
			require.True(t, out.Kind() != reflect.Pointer || out == reflect.TypeFor[*state.Snapshot](), "%s returns %s", m.Name, out)
		}
	}
	for i := range typ.Elem().NumField() {
		require.False(t, typ.Elem().Field(i).IsExported(), typ.Elem().Field(i).Name)
	}

	var kept *engine.Registrar
	sneaky := 0
	asked := 0
	intruder := plugin("intruder", func(r *engine.Registrar) {
		kept = r
		r.Hook(phase.AfterInference, hook(func(pc *phase.Context, _ *phase.Command) error {
			kept.Hook(phase.StepEnd, hook(func(*phase.Context, *phase.Command) error { sneaky++; return nil }))
			kept.Tool(enginetest.StubTool("sneaky", engine.Text("")))
			resp, _ := pc.Response()
			for i := range resp.Message.ToolCalls {
				resp.Message.ToolCalls[i].Name = "other"
			}
			req, _ := pc.Request()
			for i := range req.Messages {
				req.Messages[i].Text = "changed"
			}
			asked++
			return nil
		}))
	})
	ran := 0
	th, res, events := play(t, func() string { ran++; return "ok" }, intruder)
	require.NoError(t, res.Err)
	require.Equal(t, 2, asked, "the hook ran in both steps")
	require.Zero(t, sneaky, "a hook registered while the engine runs never runs")
	require.Equal(t, 1, ran, "the call is the one that the model made")
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		require.NotEqual(t, "changed", m.Text)
	}
	for _, e := range enginetest.Select[engine.InferenceStarted](events) {
		require.Equal(t, 1, e.Tools, "no tool was added")
	}
}

// The manifest lists each hook with phase, tier, deadline, error rule and declared
// keys, and which hooks could conflict, before anything runs.
func testHooksInManifest(t *testing.T) {
	line := state.NewCell("line", state.Options[string]{})
	nothing := hook(func(*phase.Context, *phase.Command) error { return nil })
	config, _ := enginetest.Config(t,
		plugin("one", func(r *engine.Registrar) {
			r.Key(line)
			r.Hook(phase.StepEnd, nothing, engine.Tier(2), engine.Writes(line), engine.OnError(engine.Skip))
			r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Abstain(), nil }))
		}),
		plugin("two", func(r *engine.Registrar) { r.Hook(phase.StepEnd, nothing, engine.Tier(2), engine.Writes(line)) }))
	m := enginetest.Engine(t, config).Describe()
	require.Equal(t, []engine.HookManifest{{ID: "one/step_end/0", Phase: phase.StepEnd, Tier: 2, OnError: engine.Skip, Writes: []string{"line"}}}, m.Plugins[0].Hooks)
	require.Equal(t, "one/tool_gate/0", m.Plugins[0].Gates[0].ID)
	require.Equal(t, []string{"one/step_end/0", "two/step_end/0"}, m.Conflicts[0].Hooks)
	require.Contains(t, picture.Text(m), "hook one/step_end/0")
}

// There are moments for the run, each step, the model and each call, besides those
// that plugins make themselves by scheduling actions; each fires, in this order.
func testFinerMoments(t *testing.T) {
	saved := phase.NewAction[string]("file_saved", phase.AfterToolExecute)
	moments := state.NewLog("moments", state.Options[string]{})
	note := func(pc *phase.Context, cmd *phase.Command) error {
		cmd.Update(moments.Append(fmt.Sprintf("%d %s", pc.Run().Step, pc.Phase())))
		return nil
	}
	all := plugin("moments", func(r *engine.Registrar) {
		r.Key(moments)
		for p := range phase.All() {
			if p != phase.ToolGate {
				r.Hook(p, hook(note))
			}
		}
		r.Action(saved.Handle(func(_ context.Context, _ *phase.Context, path string) (cmd phase.Command, err error) {
			cmd.Update(moments.Append("file saved: " + path))
			return cmd, nil
		}))
	})
	files := plugin("files", func(r *engine.Registrar) {
		r.Hook(phase.AfterToolExecute, hook(func(_ *phase.Context, cmd *phase.Command) error { cmd.Schedule(saved.New("a.txt")); return nil }))
	})
	judged := 0
	gates := plugin("gates", func(r *engine.Registrar) {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			judged++
			return gate.Abstain(), nil
		}))
	})
	th, res, _ := play(t, func() string { return "ok" }, all, files, gates)
	require.NoError(t, res.Err)
	require.Equal(t, 1, judged)
	got := slices.Collect(func(yield func(string) bool) {
		for _, m := range moments.Get(th.Snapshot()).All() {
			if !yield(m) {
				return
			}
		}
	})
	require.Equal(t, []string{
		"0 run_start",
		"1 step_start", "1 before_inference", "1 after_inference",
		"1 before_tool_execute", "1 after_tool_execute", "file saved: a.txt", "1 step_end",
		"2 step_start", "2 before_inference", "2 after_inference", "2 step_end",
		"2 run_end",
	}, got)
}
