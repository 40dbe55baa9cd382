package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// debugOnly is the kind of the part that marks a message for people who look for mistakes.
const debugOnly = "debug_only"

func isDebug(m inference.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p inference.Part) bool { return p.Kind == debugOnly })
}

// debugger is a plugin that writes a message for debugging into the history before each model
// call.
func debugger() engine.Plugin {
	return engine.NewPlugin("debugger", func(r *engine.Registrar) error {
		r.Hook(phase.BeforeInference, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			m := inference.System(fmt.Sprintf("debug: messages so far: %d", pc.Messages().Len()))
			m.Parts = []inference.Part{{Kind: debugOnly}}
			cmd.Schedule(engine.AddContext.New(engine.ContextArgs{Message: m}))
			return cmd, nil
		}))
		return nil
	})
}

// quiet is a plugin that takes such messages out of the request of each model call. The
// history is out of its reach.
func quiet() engine.Plugin {
	return engine.NewPlugin("quiet", func(r *engine.Registrar) error {
		r.Transform(inference.TransformFunc(func(_ context.Context, req inference.Request) (inference.Request, error) {
			req.Messages = slices.DeleteFunc(req.Messages, isDebug)
			return req, nil
		}))
		return nil
	})
}

// talk has two runs on one thread, the second without quiet. It returns the history after
// the first and after the second, and what the model was asked in each.
func talk(ctx context.Context) (histories [2][]inference.Message, requests []inference.Request, err error) {
	model := enginetest.NewScript(enginetest.Say("Hello."), enginetest.Say("Nothing, and you?"))
	eng, err := engine.New(config(model, debugger(), quiet()))
	if err != nil {
		return histories, nil, err
	}
	th, err := eng.NewThread("")
	if err != nil {
		return histories, nil, err
	}
	for i, turn := range []struct {
		text   string
		active []string
	}{{"Hi.", nil}, {"What is wrong?", []string{"debugger"}}} {
		res, err := th.Run(ctx, engine.AgentSpec{ID: "musepi", ActiveHookFilter: turn.active}, engine.Prompt(turn.text))
		if err != nil {
			return histories, nil, err
		}
		if res.Err != nil {
			return histories, nil, res.Err
		}
		histories[i] = engine.Transcript.Get(th.Snapshot()).Slice()
	}
	return histories, model.Requests(), eng.Close(ctx)
}
