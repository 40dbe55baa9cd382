package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Spec is the agent of all scenarios.
var Spec = engine.AgentSpec{ID: "bench"}

// NewThread builds an engine of the given plugins, without observers, and returns
// a thread on it.
func NewThread(plugins ...engine.Plugin) (*engine.Thread, error) {
	eng, err := engine.New(engine.Config{Plugins: plugins, Model: NullModel(), Agents: []engine.AgentSpec{Spec}})
	if err != nil {
		return nil, err
	}
	return eng.NewThread("bench")
}

// InRun calls fn in the middle of a run of an engine with the plugins, where the model
// is asked, so that phases which fn runs are phases of that run.
func InRun(fn func(ctx context.Context, th *engine.Thread) error, plugins ...engine.Plugin) error {
	var th *engine.Thread
	var failed error
	eng, err := engine.New(engine.Config{Plugins: plugins, Agents: []engine.AgentSpec{Spec},
		Model: inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
			failed = fn(ctx, th)
			return inference.Response{Message: inference.Assistant("done")}, nil
		})})
	if err != nil {
		return err
	}
	if th, err = eng.NewThread("bench"); err != nil {
		return err
	}
	res, err := th.Run(context.Background(), Spec, engine.Prompt("go"))
	return errors.Join(err, failed, res.Err)
}

// OwnKeys is n hooks at StepStart, each of which reads one key and writes it.
func OwnKeys(n int) engine.Plugin {
	return engine.NewPlugin("own", func(r *engine.Registrar) error {
		for i := range n {
			key := state.NewCell[int](fmt.Sprintf("own.%03d", i), state.Options[int]{})
			r.Key(key)
			r.Hook(phase.StepStart, increment(key))
		}
		return nil
	})
}

// Commutative is n hooks at StepStart that all add to one counter.
func Commutative(n int) engine.Plugin {
	return engine.NewPlugin("commutative", func(r *engine.Registrar) error {
		key := state.NewCounter("commutative", state.Options[int64]{})
		r.Key(key)
		for range n {
			r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				cmd.Update(key.With(1))
				return cmd, nil
			}))
		}
		return nil
	})
}

// Conflict is n hooks at StepStart that all increment one Exclusive key, so that
// n-1 of them run again.
func Conflict(n int) engine.Plugin {
	return engine.NewPlugin("conflict", func(r *engine.Registrar) error {
		key := state.NewCell[int]("conflict", state.Options[int]{})
		r.Key(key)
		for range n {
			r.Hook(phase.StepStart, increment(key))
		}
		return nil
	})
}

func increment(key state.Cell[int]) phase.Hook {
	return phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		cmd.Update(key.With(key.Get(pc.Snapshot()) + 1))
		return cmd, nil
	})
}

var cascade = phase.NewAction[int]("cascade", phase.StepStart)

// Cascade is one hook at StepStart whose action schedules the next, for the given
// number of rounds. Each round adds to a counter.
func Cascade(rounds int) engine.Plugin {
	return engine.NewPlugin("cascade", func(r *engine.Registrar) error {
		key := state.NewCell[int]("cascade", state.Options[int]{})
		r.Key(key)
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Schedule(cascade.New(rounds))
			return cmd, nil
		}))
		r.Action(cascade.Handle(func(_ context.Context, pc *phase.Context, left int) (cmd phase.Command, err error) {
			cmd.Update(key.With(key.Get(pc.Snapshot()) + 1))
			if left > 1 {
				cmd.Schedule(cascade.New(left - 1))
			}
			return cmd, nil
		}))
		return nil
	})
}

// Queue is one hook at StepStart that schedules n actions for the same phase.
func Queue(n int) engine.Plugin {
	return engine.NewPlugin("queue", func(r *engine.Registrar) error {
		work := phase.NewAction[int]("work", phase.StepStart)
		done := state.NewCounter("done", state.Options[int64]{})
		r.Key(done)
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			for i := range n {
				cmd.Schedule(work.New(i))
			}
			return cmd, nil
		}))
		r.Action(work.Handle(func(context.Context, *phase.Context, int) (cmd phase.Command, err error) {
			cmd.Update(done.With(1))
			return cmd, nil
		}))
		return nil
	})
}

// Gates is n gates that approve every call.
func Gates(n int) engine.Plugin {
	return engine.NewPlugin("gates", func(r *engine.Registrar) error {
		for range n {
			r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
				return gate.Approve(), nil
			}))
		}
		return nil
	})
}

// NullTool is a tool that does nothing.
func NullTool() engine.Plugin {
	return engine.NewPlugin("null", func(r *engine.Registrar) error {
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "null"},
			func(context.Context, *phase.Context, struct{}) (engine.Output, error) { return engine.Text("ok"), nil }))
		return nil
	})
}

// NullModel answers at once and asks for nothing.
func NullModel() inference.Model {
	return inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
		return inference.Response{Message: inference.Assistant("done")}, nil
	})
}

// CallingModel asks for the null tool calls times in its first answer and is done
// with the second.
func CallingModel(calls int) inference.Model {
	first := inference.Assistant("")
	for i := range calls {
		first.ToolCalls = append(first.ToolCalls, inference.ToolCall{ID: fmt.Sprintf("c%d", i), Name: "null", Args: "{}"})
	}
	return inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		if r.Messages[len(r.Messages)-1].Role == inference.RoleTool {
			return inference.Response{Message: inference.Assistant("done")}, nil
		}
		return inference.Response{Message: first}, nil
	})
}
