package headline

import (
	"context"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Outline returns a plugin that keeps the other fields of Line, and that tells
// the model the headline in front of each step. It holds nothing and is safe for
// concurrent use.
func Outline() engine.Plugin {
	return engine.NewPlugin(OutlineName, func(r *engine.Registrar) error {
		r.Hook(phase.StepEnd, phase.HookFunc(outline), engine.Writes(Key))
		r.Hook(phase.BeforeInference, phase.HookFunc(announce), engine.Writes())
		return nil
	})
}

func outline(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	line := Key.Get(pc.Snapshot())
	line.Step = pc.Run().Step
	for _, c := range stepCalls(pc.Snapshot()) {
		line.Calls++
		if c.Result.IsError {
			line.Failed++
		}
	}
	cmd.Update(Key.With(line))
	return cmd, nil
}

func announce(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	if text := Key.Get(pc.Snapshot()).String(); text != "" {
		cmd.Schedule(engine.AddContext.New(engine.ContextArgs{
			Message: inference.System("So far: " + text),
			Mode:    engine.OneShot,
		}))
	}
	return cmd, nil
}
