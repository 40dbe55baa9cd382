package recording_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
	"github.com/ddd26017/fixpoint/state"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares texts with a file of that name.
func golden(t *testing.T, texts ...string) {
	t.Helper()
	name := filepath.Join("testdata", strings.ReplaceAll(t.Name(), "/", "_")+".txt")
	got := strings.Join(texts, "\n\n") + "\n"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(name, []byte(got), 0o666))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))), got)
}

// Capability B2. Three hooks fight over a key: the first wins, and the others are called
// again one by one, of which one fails.
func TestHooksThatFight(t *testing.T) {
	write := func(name string) engine.Plugin {
		calls := 0
		return hook(name, phase.StepStart, func(pc *phase.Context, cmd *phase.Command) error {
			if calls++; name == "c" && calls > 1 {
				return errors.New("out of paint\x1b[31m")
			}
			cmd.Update(board.With(board.Get(pc.Snapshot())+name), total.With(2))
			return nil
		}, engine.OnError(engine.Skip))
	}
	w := newWorld(t, nil, write("a"), write("b"), write("c"), write("d"))
	w.run(engine.Prompt("paint"))
	var texts []string
	for _, rev := range []uint64{2, 3, 4, 0} {
		texts = append(texts, w.explain(recording.Query{Key: "board", Revision: rev}))
	}
	golden(t, append(texts, w.explain(recording.Query{Key: "total"}))...)
	checkState(t, w.rec, w.dumps)
}

// Capability B2. What merges has all its authors, in order, and what they gave.
func TestHooksThatMerge(t *testing.T) {
	add := func(name string, n int64) engine.Plugin {
		return hook(name, phase.StepStart, func(pc *phase.Context, cmd *phase.Command) error {
			cmd.Update(total.With(n), notes.Append(name+" was here"), tags.Add(name, "all"))
			if name == "b" {
				cmd.Update(dream.With("of sheep"), tags.Remove("ghost"), doors.Put("front", "open"), doors.Put("back", "shut"))
			}
			return nil
		}, engine.Tier(int(n)/10))
	}
	w := newWorld(t, script(enginetest.Call("c1", "nothing", nil), enginetest.Say("done")),
		add("a", 1), add("b", 5), add("c", 12),
		hook("closer", phase.StepEnd, func(pc *phase.Context, cmd *phase.Command) error {
			if pc.Run().Step == 1 {
				cmd.Update(doors.Delete("front"), notes.Replace("start anew"))
			} else {
				cmd.Update(doors.Reset())
			}
			return nil
		}))
	w.run(engine.Prompt("merge"))
	golden(t,
		w.explain(recording.Query{Key: "total", Revision: 3}),
		w.explain(recording.Query{Key: "total"}),
		w.explain(recording.Query{Key: "notes", Revision: 3}),
		w.explain(recording.Query{Key: "notes", Revision: 4}),
		w.explain(recording.Query{Key: "notes", Revision: 11}),
		w.explain(recording.Query{Key: "tags", Entry: "all"}),
		w.explain(recording.Query{Key: "doors", Entry: "front"}),
		w.explain(recording.Query{Key: "doors", Entry: "back"}),
		w.explain(recording.Query{Key: "doors", Revision: 3}),
		w.explain(recording.Query{Key: "dream"}),
		w.explain(recording.Query{Key: "fixpoint.lifecycle", Revision: 1}),
	)
	checkState(t, w.rec, w.dumps)
}

// Capability B2. Actions write the same key in round after round; one fails, a gate
// cancels one and replaces another.
func TestActionsThatCascade(t *testing.T) {
	keeper := engine.NewPlugin("keeper", func(r *engine.Registrar) error {
		r.Action(tidy.Handle(func(_ context.Context, pc *phase.Context, what string) (cmd phase.Command, err error) {
			if what == "attic" {
				return cmd, errors.New("too dusty")
			}
			cmd.Update(board.With(what + " tidied"))
			if what == "hall" {
				cmd.Schedule(tidy.New("cellar"))
			}
			return cmd, nil
		}))
		r.Effect(mail.Handle(func(context.Context, *state.Snapshot, string) error { return errors.New("no stamps") }))
		return nil
	})
	guard := engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.ActionGate(gate.OnAction(tidy, func(_ context.Context, _ *phase.Context, what string) (gate.Ruling, error) {
			switch what {
			case "safe":
				return gate.Cancel("private"), nil
			case "yard":
				return gate.Replace("it rains", *(&phase.Command{}).Update(board.With("yard left"))), nil
			}
			return gate.Ruling{}, nil
		}))
		return nil
	})
	w := newWorld(t, nil, keeper, guard, hook("boss", phase.StepStart, func(_ *phase.Context, cmd *phase.Command) error {
		for _, what := range []string{"hall", "attic", "safe", "yard"} {
			cmd.Schedule(tidy.New(what))
		}
		cmd.Emit(mail.New("done"))
		return nil
	}))
	w.run(engine.Prompt("tidy"))
	x, err := w.rec.Explain(recording.Query{Key: "board"})
	require.NoError(t, err)
	texts := []string{x.String()}
	for rev := x.Revision - 1; rev > 3; rev-- {
		texts = append(texts, w.explain(recording.Query{Key: "board", Revision: rev}))
	}
	golden(t, append(texts, spans(w.rec, recording.KindRound, recording.KindAction, recording.KindEffect, recording.KindMark))...)
	checkState(t, w.rec, w.dumps)
}

// Capability B2. Of two tools that run at the same time and write the same entry, one
// loses: it cannot be called again, and its changes are refused.
func TestToolsThatFight(t *testing.T) {
	w := newWorld(t, func(c *engine.Config) {
		script(enginetest.Call("c1", "paint", nil).And(enginetest.Call("c2", "paint", nil)), enginetest.Say("done"))(c)
		c.Now = enginetest.Epoch // a clock that moves when it is read would tell who was first
	})
	in := engine.Prompt("paint")
	in.Tools = []engine.Tool{engine.NewTool(toolSpec("paint"), func(_ context.Context, pc *phase.Context, _ struct{}) (engine.Output, error) {
		out := engine.Text("painted")
		out.Command.Update(doors.Put("front", "by "+pc.Call().ID), total.With(1))
		return out, nil
	})}
	_, err := w.engine.Run(t.Context(), engine.AgentSpec{ID: "agent", ToolExecution: engine.ToolsParallel}, in)
	require.NoError(t, err)
	golden(t,
		w.explain(recording.Query{Key: "doors", Entry: "front"}),
		w.explain(recording.Query{Key: "total"}),
		w.why("c1"), w.why("c2"))
	checkState(t, w.rec, w.dumps)
}

// guardOf is a plugin with a gate.
func guardOf(name string, check func(inference.ToolCall) (gate.Decision, error), opts ...engine.GateOption) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) { return check(pc.Call()) }), opts...)
		return nil
	})
}

// The whole decision about a call is told: edits, blocks, clashes, faults, hooks.
func TestGatesThatDecide(t *testing.T) {
	w := newWorld(t,
		script(enginetest.Call("e", "edit", map[string]int{"n": 9}).And(enginetest.Call("u", "unknown", nil)).And(enginetest.Call("s", "sub", nil)).
			And(enginetest.Call("v", "look", inference.JSON(`{"bad":1}`))).And(enginetest.Call("j", "look", inference.JSON(`{"bad`))).
			And(enginetest.Call("f", "fault", nil)).And(enginetest.Call("w", "wipe", nil)).And(enginetest.Call("x", "look", nil))),
		guardOf("guard", func(c inference.ToolCall) (gate.Decision, error) {
			switch {
			case c.Name == "edit" && strings.Contains(string(c.Args), "9"):
				return gate.Edit(`{"n":3}`).Because("at most three"), nil
			case c.Name == "wipe":
				return gate.Block("never").EndRun(), nil
			case c.Name == "sub":
				return gate.SetResult(inference.ToolResult{Content: "from the cache"}), nil
			case c.Name == "fault":
				return gate.Abstain(), errors.New("no network")
			}
			return gate.Abstain(), nil
		}),
		guardOf("second", func(c inference.ToolCall) (gate.Decision, error) {
			switch c.Name {
			case "wipe":
				return gate.Block("not that either"), nil
			case "edit":
				return gate.Approve(), nil
			}
			return gate.Abstain(), nil
		}),
		guardOf("lax", func(inference.ToolCall) (gate.Decision, error) { return gate.Abstain(), errors.New("asleep") }, engine.FailOpen()),
		hook("before", phase.BeforeToolExecute, func(pc *phase.Context, cmd *phase.Command) error {
			cmd.Update(doors.Put(pc.Call().ID, "open"))
			return nil
		}),
		hook("broken", phase.AfterToolExecute, func(*phase.Context, *phase.Command) error { return errors.New("no luck") }, engine.OnError(engine.Skip)),
		hook("redact", phase.AfterToolExecute, func(pc *phase.Context, cmd *phase.Command) error {
			if pc.Call().Name == "edit" {
				cmd.EditContent(pc.Call().ID, "***").Schedule(tidy.New("x"))
			}
			return nil
		}), engine.NewPlugin("keeper", func(r *engine.Registrar) error {
			r.Action(tidy.Handle(func(context.Context, *phase.Context, string) (phase.Command, error) { return phase.Command{}, nil }))
			return nil
		}))
	look := engine.NewTool(inference.ToolSpec{Name: "look", Schema: `{"type":"object","additionalProperties":false}`},
		func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
			return engine.Text("seen"), nil
		})
	for _, name := range []string{"edit", "sub", "fault", "wipe"} {
		w.tools = append(w.tools, enginetest.StubTool(name, engine.Text("the result of "+name)))
	}
	w.tools = append(w.tools, look)
	w.run(engine.Prompt("decide"))
	var texts []string
	for _, id := range []string{"e", "u", "s", "v", "j", "f", "w", "x"} {
		texts = append(texts, w.why(id))
	}
	golden(t, texts...)
	checkState(t, w.rec, w.dumps)
}

// Questions to people and their answers are told, also of a tool that asks itself.
func TestQuestions(t *testing.T) {
	w := newWorld(t,
		script(enginetest.Call("p", "pay", map[string]int{"n": 9}).And(enginetest.Call("d", "deny", nil)).And(enginetest.Call("n", "nobody", nil)).And(enginetest.Call("t", "asks", nil)), enginetest.Say("done")),
		guardOf("guard", func(c inference.ToolCall) (gate.Decision, error) {
			switch c.Name {
			case "pay", "deny":
				return gate.Suspend(gate.Ticket{Message: "may it " + c.Name + "?"}), nil
			case "nobody":
				return gate.Ask(gate.Ticket{Message: "hello?", Default: gate.DefaultCancel, Lifetime: 1}), nil
			}
			return gate.Abstain(), nil
		}))
	for _, name := range []string{"pay", "deny", "nobody"} {
		w.tools = append(w.tools, enginetest.StubTool(name, engine.Text("the result of "+name)))
	}
	w.tools = append(w.tools, engine.NewTool(toolSpec("asks"), func(_ context.Context, pc *phase.Context, _ struct{}) (engine.Output, error) {
		if len(pc.Answers()) > 0 {
			return engine.Text("it was " + string(pc.Answers()[0].Value)), nil
		}
		return engine.Output{Ask: &gate.Ticket{Kind: gate.Text, Message: "which one?"}}, nil
	}))
	in := engine.Prompt("ask")
	in.Resolver = gate.ResolverFunc(func(_ context.Context, t gate.Ticket) (phase.Answer, error) {
		switch {
		case strings.Contains(t.Message, "deny"):
			return phase.Answer{Reason: "not today"}, nil
		case t.Kind == gate.Text:
			return phase.Answer{Approved: true, Value: `"red"`}, nil
		}
		return phase.Answer{Approved: true, Args: `{"n":3}`, Reason: "but less"}, nil
	})
	w.run(in)
	golden(t, w.why("p"), w.why("d"), w.why("n"), w.why("t"), spans(w.rec, recording.KindWait, recording.KindBody))
	checkState(t, w.rec, w.dumps)
}

// A run that delegates has the other run's id in the decision, and the other run is in
// the recording.
func TestDelegates(t *testing.T) {
	w := newWorld(t, func(c *engine.Config) {
		c.Model = enginetest.NewScript(enginetest.Call("c1", "delegate_to_helper", map[string]string{"input": "look"}), enginetest.Say("done"))
		c.Agents = []engine.AgentSpec{{ID: "helper", ModelID: "second"}}
		c.Models = map[string]inference.Model{"second": enginetest.NewScript(enginetest.Say("seen"))}
	}, hook("painter", phase.RunStart, func(pc *phase.Context, cmd *phase.Command) error {
		cmd.Update(board.With("of " + pc.Agent().ID))
		return nil
	}))
	_, err := w.engine.Run(t.Context(), engine.AgentSpec{ID: "agent", Delegates: []string{"helper"}}, engine.Prompt("go"))
	require.NoError(t, err)
	v := w.rec.View()
	require.Len(t, v.Runs, 2)
	require.Equal(t, v.Runs[0].ID, v.Runs[1].Parent)
	require.Equal(t, v.Calls[0].ID, v.Runs[1].ID)
	require.Empty(t, v.Notes)
	require.Zero(t, v.Dropped)
	_, err = w.rec.Explain(recording.Query{Key: "board"})
	require.ErrorIs(t, err, recording.ErrAmbiguous)
	golden(t, w.why("c1"), err.Error(),
		w.explain(recording.Query{Key: "board", Run: v.Runs[0].ID}), w.explain(recording.Query{Key: "board", Run: v.Runs[1].ID}))
	checkState(t, w.rec, w.dumps)
}

// spans lists those of the kinds, one a line.
func spans(rec *recording.Recording, kinds ...string) string {
	var out []string
	for _, s := range rec.View().Spans {
		for _, k := range kinds {
			if s.Kind == k {
				parts := []string{s.Kind, s.Name}
				if s.Plugin != "" {
					parts = append(parts, "of "+s.Plugin)
				}
				out = append(out, strings.TrimRight(strings.Join(append(parts, s.Status, s.Text), " "), " "))
			}
		}
	}
	return strings.Join(out, "\n")
}
