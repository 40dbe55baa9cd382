package engine_test

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// A model that greets, standing in for a real one.
var greeter = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
	last := r.Messages[len(r.Messages)-1].Text
	return inference.Response{Message: inference.Assistant("You said: " + last)}, nil
})

func ExampleNew() {
	eng, err := engine.New(engine.Config{Model: greeter})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := eng.Run(context.Background(), engine.AgentSpec{ID: "greeter"}, engine.Prompt("hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text)
	fmt.Println(res.Reason, res.Steps)
	// Output:
	// You said: hello
	// natural 1
}

var (
	turns = state.NewCounter("example.turns", state.Options[int64]{})
	title = state.NewCell("example.title", state.Options[string]{})
	shout = effects.NewSpec[string]("example.shout")
)

// Two hooks write one Exclusive key: the second runs again and sees the first's
// value.
func ExampleRegistrar_Hook() {
	titles := engine.NewPlugin("titles", func(r *engine.Registrar) error {
		r.Key(turns, title)
		for _, word := range []string{"hello", "world"} {
			r.Hook(phase.StepStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				cmd.Update(turns.With(1), title.With(title.Get(pc.Snapshot())+word+" "))
				return cmd, nil
			}))
		}
		return nil
	})
	eng, err := engine.New(engine.Config{Model: greeter, Plugins: []engine.Plugin{titles}})
	if err != nil {
		fmt.Println(err)
		return
	}
	th, err := eng.NewThread("")
	if err != nil {
		fmt.Println(err)
		return
	}
	rep, err := th.RunPhase(context.Background(), engine.AgentSpec{ID: "a"}, phase.StepStart)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q after %d retry\n", title.Get(th.Snapshot()), rep.Retries)
	fmt.Println(turns.Get(th.Snapshot()), "turns")
	// Output:
	// "hello world " after 1 retry
	// 2 turns
}

// An effect is delivered after the commit that carries it.
func ExampleRegistrar_Effect() {
	loud := engine.NewPlugin("loud", func(r *engine.Registrar) error {
		r.Key(turns)
		r.Hook(phase.RunStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(turns.With(1)).Emit(shout.New("hey"))
			return cmd, nil
		}))
		r.Effect(shout.Handle(func(_ context.Context, snap *state.Snapshot, text string) error {
			fmt.Println(text, turns.Get(snap))
			return nil
		}))
		return nil
	})
	eng, err := engine.New(engine.Config{Model: greeter, Plugins: []engine.Plugin{loud}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "a"}, engine.Prompt("hello")); err != nil {
		fmt.Println(err)
	}
	// Output: hey 1
}

// A gate blocks a tool call, and the model is told why.
func ExampleRegistrar_Gate() {
	guard := engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "wipe"},
			func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
				fmt.Println("wiped")
				return engine.Text("done"), nil
			}))
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
			return gate.Block("not today"), nil
		}))
		return nil
	})
	model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == inference.RoleTool {
			return inference.Response{Message: inference.Assistant("the tool said: " + last.Result.Content)}, nil
		}
		return inference.Response{Message: inference.Assistant("", inference.ToolCall{ID: "c1", Name: "wipe", Args: "{}"})}, nil
	})
	eng, err := engine.New(engine.Config{Model: model, Plugins: []engine.Plugin{guard}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := eng.Run(context.Background(), engine.AgentSpec{ID: "a"}, engine.Prompt("wipe it"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text)
	// Output: the tool said: blocked: not today
}

// Events yields what happens in a run while it happens.
func ExampleEngine_Events() {
	eng, err := engine.New(engine.Config{Model: greeter})
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range eng.Events(context.Background(), engine.AgentSpec{ID: "a"}, engine.Prompt("hello")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch ev := ev.(type) {
		case engine.InferenceFinished:
			fmt.Println(ev.Text)
		case engine.RunFinished:
			fmt.Println(ev.Reason)
		}
	}
	// Output:
	// You said: hello
	// natural
}
