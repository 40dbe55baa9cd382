// Command embed shows a small agent on Fixpoint: one tool, one gate, one hook.
package main

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var calls = state.NewCounter("demo.calls", state.Options[int64]{})

func register(r *engine.Registrar) error {
	r.Key(calls)
	r.Tool(engine.NewTool(inference.ToolSpec{Name: "add"}, func(_ context.Context, _ *phase.Context, in struct{ A, B int }) (engine.Output, error) {
		return engine.Text(fmt.Sprint(in.A + in.B)), nil
	}))
	r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		return gate.Approve().Because("adding is harmless"), nil
	}))
	r.Hook(phase.AfterToolExecute, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		fmt.Println(pc.Call().Args, "is", pc.Result().Content)
		cmd.Update(calls.With(1))
		return cmd, nil
	}))
	return nil
}

func main() {
	model := enginetest.NewScript(enginetest.Call("c1", "add", map[string]int{"A": 2, "B": 3}), enginetest.Say("done")) // stands in for a real one
	eng, err := engine.New(engine.Config{Model: model, Plugins: []engine.Plugin{engine.NewPlugin("demo", register)}})
	if err != nil {
		panic(err)
	}
	thread, _ := eng.NewThread("")
	result, err := thread.Run(context.Background(), engine.AgentSpec{ID: "demo"}, engine.Prompt("what is 2 + 3?"))
	fmt.Println(result.Text, result.Reason, calls.Get(thread.Snapshot()), err)
}
