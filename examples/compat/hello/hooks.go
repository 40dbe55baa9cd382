package main

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

// said is a line about what a hook saw.
var said = effects.NewSpec[string]("hello.said")

// note is what the model is shown in each call, and what is in no history.
const note = "Answer in one sentence."

// hooks is a plugin with the six hooks of the chapter. What they have to tell goes to say.
func hooks(say func(string)) engine.Plugin {
	return engine.NewPlugin("hello", func(r *engine.Registrar) error {
		r.Effect(said.Handle(func(_ context.Context, _ *state.Snapshot, text string) error {
			say(text)
			return nil
		}))
		skip := engine.OnError(engine.Skip) // who only watches must not end a run
		r.Hook(phase.RunStart, phase.HookFunc(beforeRun), skip)
		r.Hook(phase.BeforeInference, phase.HookFunc(beforeModel), skip)
		r.Hook(phase.AfterInference, phase.HookFunc(afterModel), skip)
		r.Hook(phase.BeforeToolExecute, phase.HookFunc(beforeTool), skip)
		r.Hook(phase.AfterToolExecute, phase.HookFunc(afterTool), skip)
		r.Hook(phase.RunEnd, phase.HookFunc(afterRun), skip)
		return nil
	})
}

func beforeRun(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	asked := pc.Messages().At(pc.Messages().Len() - 1)
	cmd.Emit(said.New("before run:   " + asked.Text))
	return cmd, nil
}

// beforeModel adds a note to this one call.
func beforeModel(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: inference.System(note), Mode: engine.OneShot}))
	cmd.Emit(said.New(fmt.Sprintf("before model: messages in the history: %d, and a note for this call", pc.Messages().Len())))
	return cmd, nil
}

func afterModel(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if pc.Err() != nil {
		cmd.Emit(said.New("after model:  it failed"))
		return cmd, nil
	}
	answer, _ := pc.Response()
	cmd.Emit(said.New(fmt.Sprintf("after model:  tool calls it asks for: %d", len(answer.Message.ToolCalls))))
	return cmd, nil
}

func beforeTool(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	cmd.Emit(said.New(fmt.Sprintf("before tool:  %s %s", pc.Call().Name, pc.Call().Args)))
	return cmd, nil
}

func afterTool(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	cmd.Emit(said.New(fmt.Sprintf("after tool:   %s, %s", pc.Result().Outcome, pc.Result().Content)))
	return cmd, nil
}

func afterRun(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	cmd.Emit(said.New(fmt.Sprintf("after run:    %s", phase.RunLifecycle.Get(pc.Snapshot()).Reason)))
	return cmd, nil
}

// guard is a plugin that refuses every tool call, which hooks cannot.
func guard() engine.Plugin {
	return engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
			return gate.Block("no arithmetic today"), nil
		}))
		return nil
	})
}

// broken is a plugin whose hook comes before all others and panics.
func broken() engine.Plugin {
	return engine.NewPlugin("broken", func(r *engine.Registrar) error {
		r.Hook(phase.BeforeInference, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
			panic("a mistake")
		}), engine.Tier(-1), engine.OnError(engine.Skip))
		return nil
	})
}
