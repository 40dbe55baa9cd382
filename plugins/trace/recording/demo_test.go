package recording_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
	"github.com/ddd26017/fixpoint/state"
)

var (
	board = state.NewCell("board", state.Options[string]{})
	total = state.NewCounter("total", state.Options[int64]{Scope: state.ScopeThread})
	doors = state.NewTable[string]("doors", state.Options[int]{Scope: state.ScopeThread})
	tags  = state.NewSet[string]("tags", state.Options[string]{Scope: state.ScopeThread})
)

func hook(p phase.Phase, name string, fn func(pc *phase.Context, cmd *phase.Command) error) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			err = fn(pc, &cmd)
			return cmd, err
		}))
		return nil
	})
}

func TestDemo(t *testing.T) {
	rec := recording.New("demo")
	var ps []engine.Plugin
	ps = append(ps, engine.NewPlugin("keys", func(r *engine.Registrar) error { r.Key(board, total, doors, tags); return nil }))
	for _, n := range []string{"a", "b", "c"} {
		ps = append(ps, hook(phase.StepStart, n, func(pc *phase.Context, cmd *phase.Command) error {
			old := board.Get(pc.Snapshot())
			cmd.Update(board.With(old+n), total.With(1), doors.Put(n, pc.Run().Step), tags.Add(n, "x"))
			return nil
		}))
	}
	ps = append(ps, engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			switch pc.Call().Name {
			case "pay":
				return gate.Ask(gate.Ticket{Message: "pay the bill?"}), nil
			case "wipe":
				return gate.Block("never"), nil
			}
			return gate.Abstain(), nil
		}))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			return gate.Abstain(), errors.New("no net")
		}), engine.FailOpen())
		return nil
	}))
	ps = append(ps, hook(phase.AfterToolExecute, "redact", func(pc *phase.Context, cmd *phase.Command) error {
		cmd.EditContent(pc.Call().ID, "***")
		return nil
	}))
	c, _ := enginetest.Config(t, ps...)
	c.Observers = append(c.Observers, rec)
	c.Model = enginetest.NewScript(enginetest.Call("c1", "pay", map[string]int{"n": 3}).And(enginetest.Call("c2", "wipe", nil)), enginetest.Say("ok"))
	eng := enginetest.Engine(t, c)
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{enginetest.StubTool("pay", engine.Text("paid")), enginetest.StubTool("wipe", engine.Text("wiped"))}
	in.Resolver = gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
		return phase.Answer{Approved: true, Reason: "fine"}, nil
	})
	_, err := eng.Run(t.Context(), engine.AgentSpec{ID: "x"}, in)
	require.NoError(t, err)
	v := rec.View()
	js, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	_ = js
	for _, s := range v.Spans {
		one, _ := json.Marshal(s)
		fmt.Println(string(one))
	}
	for _, c := range v.Commits[:8] {
		one, _ := json.Marshal(c)
		fmt.Println(string(one))
	}
	for rev := uint64(1); rev < 8; rev++ {
		x, err := rec.Explain(recording.Query{Key: "board", Revision: rev})
		fmt.Println(x, err)
	}
	for _, q := range []recording.Query{{Key: "total"}, {Key: "doors", Entry: "b"}, {Key: "tags", Entry: "x"}, {Key: "fixpoint.transcript"}, {Key: "fixpoint.tool_calls", Entry: "c1"}, {Key: "tootal"}, {Key: "doors", Entry: "z"}, {Key: "doors"}} {
		x, err := rec.Explain(q)
		fmt.Println(x, err)
	}
	for _, id := range []string{"c1", "c2"} {
		ds, err := rec.Why(id)
		require.NoError(t, err)
		fmt.Println(ds[0])
	}
}
