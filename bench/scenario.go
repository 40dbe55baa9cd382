package bench

import (
	"context"
	"errors"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Spec is the agent of all works.
var Spec = engine.AgentSpec{ID: "bench"}

// NewEngine builds an engine for Spec of the plugins, with that model and the observers.
func NewEngine(model inference.Model, observers []engine.Observer, plugins ...engine.Plugin) (*engine.Engine, error) {
	return engine.New(engine.Config{Agents: []engine.AgentSpec{Spec}, Model: model, Observers: observers, Plugins: plugins})
}

// InRun calls fn in the middle of a run of an engine with the plugins, where the model
// is asked, so that phases which fn runs are phases of that run.
func InRun(fn func(ctx context.Context, th *engine.Thread) error, plugins ...engine.Plugin) error {
	var th *engine.Thread
	var failed error
	eng, err := NewEngine(inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
		failed = fn(ctx, th)
		return inference.Response{Message: inference.Assistant("done")}, nil
	}), nil, plugins...)
	if err != nil {
		return err
	}
	if th, err = eng.NewThread("bench"); err != nil {
		return err
	}
	res, err := th.Run(context.Background(), Spec, engine.Prompt("go"))
	if err != nil {
		return err
	}
	return errors.Join(failed, res.Err)
}

// Phases is the work of running the given phases, one after another, inside a run of
// an engine with the plugins and without observers.
func Phases(phases []phase.Phase, plugins ...engine.Plugin) Work {
	return func(measure func(func(int) error) error) error {
		return InRun(func(ctx context.Context, th *engine.Thread) error {
			return measure(func(n int) error {
				for range n {
					for _, p := range phases {
						if _, err := th.RunPhase(ctx, Spec, p); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}, plugins...)
	}
}

// StepStart is the work of running the StepStart phase inside a run.
func StepStart(plugins ...engine.Plugin) Work {
	return Phases([]phase.Phase{phase.StepStart}, plugins...)
}

// plain is a work that needs nothing but its step.
func plain(step func(n int) error) Work {
	return func(measure func(func(int) error) error) error { return measure(step) }
}

// each is a step that does the same thing n times.
func each(once func() error) func(n int) error {
	return func(n int) error {
		for range n {
			if err := once(); err != nil {
				return err
			}
		}
		return nil
	}
}

func increment(key state.Cell[int]) phase.Hook {
	return phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		cmd.Update(key.With(key.Get(pc.Snapshot()) + 1))
		return cmd, nil
	})
}
