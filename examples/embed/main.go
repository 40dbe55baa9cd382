// Command embed shows the smallest agent on Fixpoint: one tool, one gate, one hook.
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var calls = state.NewCounter("demo.calls", state.Options[int64]{})

func register(r *engine.Registrar) error {
	r.Key(calls)
	r.Tool(engine.NewTool(inference.ToolSpec{Name: "shout", Kind: "read"},
		func(_ context.Context, _ *phase.Context, in struct{ Text string }) (engine.Output, error) {
			return engine.Text(strings.ToUpper(in.Text)), nil
		}))
	r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		if strings.Contains(string(pc.Call().Args), "secret") {
			return gate.Block("no secrets"), nil
		}
		return gate.Approve(), nil
	}))
	r.Hook(phase.AfterToolExecute, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		cmd.Update(calls.With(1))
		return cmd, nil
	}))
	return nil
}

func main() {
	eng, err := engine.New(engine.Config{Model: model, Plugins: []engine.Plugin{engine.NewPlugin("demo", register)}})
	if err != nil {
		panic(err)
	}
	thread, _ := eng.NewThread("")
	result, err := thread.Run(context.Background(), engine.AgentSpec{ID: "demo"}, engine.Prompt("hello"))
	fmt.Println(result.Text, result.Reason, calls.Get(thread.Snapshot()), err)
}

// model stands in for a real one: it shouts what it was told, then reports.
var model = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == inference.RoleTool {
		return inference.Response{Message: inference.Assistant("it said " + last.Result.Content)}, nil
	}
	args, err := inference.ToJSON(map[string]string{"Text": last.Text})
	return inference.Response{Message: inference.Assistant("", inference.ToolCall{ID: "c1", Name: "shout", Args: args})}, err
})
