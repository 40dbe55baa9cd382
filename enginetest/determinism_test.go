package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// The busy scenario: everything that could make an order depend on timing.
var (
	title   = state.NewCell[string]("busy.title", state.Options[string]{})                  // fought over
	seats   = state.NewTable[string]("busy.seats", state.Options[string]{})                 // fought over by entry
	total   = state.NewCounter("busy.total", state.Options[int64]{})                        // shared
	journal = state.NewLog("busy.journal", state.Options[string]{Scope: state.ScopeThread}) // in order

	dig   = phase.NewAction[int]("busy.dig", phase.StepEnd)                        // cascades, serial
	sweep = phase.NewAction[int]("busy.sweep", phase.BeforeInference).ReplaySafe() // parallel rounds
	post  = effects.NewSpec[string]("busy.post")
)

// busyHook writes shared, fought-over and ordered state from every phase.
func busyHook(name string, shuffle enginetest.Shuffle) phase.HookFunc {
	return func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		shuffle()
		p := pc.Phase().String()
		cmd.Update(
			title.With(title.Get(pc.Snapshot())+"+"+name),
			seats.Put(name, p),
			total.With(1),
			journal.Append(name+" at "+p),
		)
		if name == "b" || pc.Phase() == phase.StepStart {
			cmd.Update(seats.Put("window", name))
		}
		if pc.Phase() == phase.StepStart {
			cmd.Schedule(sweep.New(1))
		}
		cmd.Emit(post.New(name + " " + p))
		return cmd, nil
	}
}

func busyPlugin(name string, tier int, shuffle enginetest.Shuffle) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		for p := range phase.All() {
			if p != phase.ToolGate {
				r.Hook(p, busyHook(name, shuffle), engine.Tier(tier))
			}
		}
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			shuffle()
			switch call := pc.Call(); {
			case call.Name == "forbidden":
				return gate.Block("not for " + name), nil
			case call.Name == "mend" && name == "b" && call.Args == "{}":
				return gate.Edit(`{"by":"b"}`), nil
			case call.Name == "mend" && name == "a":
				return gate.Ask(gate.Ticket{Message: "mend?", Default: gate.DefaultYes}), nil
			}
			return gate.Abstain(), nil
		}))
		r.Transform(inference.TransformFunc(func(_ context.Context, req inference.Request) (inference.Request, error) {
			shuffle()
			req.System += " " + name
			return req, nil
		}))
		return nil
	})
}

func busyCore(shuffle enginetest.Shuffle) engine.Plugin {
	return engine.NewPlugin("core", func(r *engine.Registrar) error {
		r.Key(title, seats, total, journal)
		r.Effect(post.Handle(func(_ context.Context, _ *state.Snapshot, s string) error {
			shuffle()
			if strings.HasPrefix(s, "c after") {
				return errors.New("the post is closed")
			}
			return nil
		}))
		r.Action(
			dig.Handle(func(_ context.Context, pc *phase.Context, depth int) (cmd phase.Command, err error) {
				shuffle()
				cmd.Update(title.With(fmt.Sprintf("dug %d", depth)))
				if depth < 4 {
					cmd.Schedule(dig.New(depth+1), dig.New(5))
				}
				if depth == 5 {
					return cmd, errors.New("hit a rock")
				}
				return cmd, nil
			}),
			sweep.Handle(func(_ context.Context, pc *phase.Context, depth int) (cmd phase.Command, err error) {
				shuffle()
				cmd.Update(title.With(title.Get(pc.Snapshot())+"~"), total.With(1))
				if depth < 2 {
					cmd.Schedule(sweep.New(depth + 1))
				}
				return cmd, nil
			}),
		)
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			shuffle()
			cmd.Schedule(dig.New(1))
			return cmd, nil
		}))
		r.Hook(phase.BeforeInference, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
			shuffle()
			panic("a bad day")
		}), engine.OnError(engine.Skip))
		for _, name := range []string{"look", "mend", "forbidden"} {
			r.Tool(engine.NewTool(inference.ToolSpec{Name: name}, func(_ context.Context, pc *phase.Context, in struct {
				By string `json:"by"`
			}) (engine.Output, error) {
				shuffle()
				out := engine.Text(name + " " + pc.Call().ID + in.By)
				out.Command.Update(seats.Put("tool", pc.Call().ID), journal.Append(pc.Call().ID))
				out.Command.Schedule(dig.New(4)).Emit(post.New(pc.Call().ID))
				return out, nil
			}))
		}
		return nil
	})
}

// busyRun runs the scenario: two runs on one thread, the first of three steps with
// parallel calls, refused tool commands, edits, approvals and a delegate.
func busyRun(t *testing.T, shuffle enginetest.Shuffle) []string {
	rec := &enginetest.Recorder{}
	config := engine.Config{
		Plugins: []engine.Plugin{
			busyCore(shuffle), busyPlugin("a", 0, shuffle), busyPlugin("b", 0, shuffle), busyPlugin("c", 1, shuffle),
		},
		Stream:    true,
		Now:       enginetest.NewClock(enginetest.Epoch()).Now,
		NewID:     enginetest.NewIDs("id"),
		Observers: []engine.Observer{rec},
	}
	config.Agents = []engine.AgentSpec{{ID: "scout", ModelID: "scout", ActiveHookFilter: []string{"core", "b"}}}
	config.Models = map[string]inference.Model{"scout": enginetest.NewScript(enginetest.Say("nothing to see"))}
	config.Model = enginetest.NewScript(
		enginetest.Call("c1", "look", nil).And(enginetest.Call("c2", "mend", inference.JSON("{}")),
			enginetest.Call("c3", "forbidden", nil), enginetest.Call("c4", engine.DelegatePrefix+"scout", map[string]string{"input": "go"})),
		enginetest.Say("that was the first run"),
		enginetest.Say("that was the second"),
	)
	eng, err := engine.New(config)
	require.NoError(t, err)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	spec := engine.AgentSpec{ID: "busy", ToolExecution: engine.ToolsParallel, Delegates: []string{"scout"}}
	for _, input := range []string{"work", "work on"} {
		res, err := th.Run(t.Context(), spec, engine.Prompt(input))
		require.NoError(t, err)
		require.Equal(t, phase.ReasonNatural, res.Reason, res.Detail)
	}
	dump, err := th.Export()
	require.NoError(t, err)
	lines := rec.Lines()
	for _, e := range dump.Entries {
		lines = append(lines, e.Name+" = "+string(e.Raw))
	}
	return lines
}

// Capability B8.
func TestOneEventSequenceWhateverTheTiming(t *testing.T) {
	lines := busyRun(t, func() {})
	for _, part := range []string{
		`"type":"conflict"`, `"fate":"retried"`, `"fate":"refused"`, `"type":"round_finished"`, `"round":4`, `"tier":1`,
		`"decision":"block"`, `"type":"call_edited"`, `"type":"ticket_answered"`, `"status":"dead_lettered"`,
		`"error":"effects: `, `"type":"inference_chunk"`, `"type":"warning"`, `"parent":"`, `"type":"gate_clashed"`,
	} {
		require.True(t, slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, part) }), "the scenario shows no %s", part)
	}
	enginetest.CheckDeterminism(t, timings, func(shuffle enginetest.Shuffle) []string { return busyRun(t, shuffle) })
}
