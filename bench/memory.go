package bench

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// memoryRows are P8 and the stated number of P11: what a run holds on to while nothing
// happens in it.
func memoryRows() []Row {
	return []Row{{
		ID: "P8", Case: "keys=16", Name: "waiting run with 16 keys, bytes kept",
		Baseline: "the 16 boxed values in a slice", Impl: "slice", Measure: Kept, Limit: 2048, NoThread: true,
		Work: WaitingRuns(16), Base: boxedValues(16),
	}}
}

// activeRow is the memory of a run in the middle of its model call.
func activeRow() Row {
	return Row{
		ID: "P11", Case: "state=active", Name: "run inside its model call, bytes kept",
		Baseline: "nothing", Impl: "none", Measure: Kept,
		Work: ActiveRuns(),
	}
}

// WaitingRuns is the work of running agents until each waits for an answer: a hook
// wrote the given number of registered keys, the model asked for a tool, and a gate
// suspended the call. Run has returned, and what is kept is the thread alone: its 16
// written values, the prompt and the model's answer in its transcript, the state of the
// call with its ticket, where the run stands, and the revisions that At can go back to.
// The engine is made before.
func WaitingRuns(keys int) Work {
	return func(measure func(func(int) error) error) error {
		eng, err := NewEngine(CallingModel(1), nil, writer(keys), NullTool(), suspender())
		if err != nil {
			return err
		}
		var kept []*engine.Thread
		err = measure(each(func() error {
			th, err := eng.NewThread("")
			if err != nil {
				return err
			}
			res, err := th.Run(context.Background(), Spec, engine.Prompt("go"))
			switch {
			case err != nil:
				return err
			case res.Status != phase.Waiting:
				return fmt.Errorf("bench: a run is %s and does not wait: %w", res.Status, res.Err)
			}
			kept = append(kept, th)
			return nil
		}))
		for _, th := range kept { // they are in use up to here
			if th.Agent() != Spec.ID {
				err = errors.Join(err, errors.New("bench: a waiting run lost its state"))
			}
		}
		return err
	}
}

// writer is one hook at StepStart that writes n keys.
func writer(n int) engine.Plugin {
	return engine.NewPlugin("writer", func(r *engine.Registrar) error {
		keys := make([]state.Cell[int], n)
		for i := range keys {
			keys[i] = state.NewCell[int](fmt.Sprintf("writer.%02d", i), state.Options[int]{})
			r.Key(keys[i])
		}
		r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			for i, k := range keys {
				cmd.Update(k.With(1000 + i))
			}
			return cmd, nil
		}))
		return nil
	})
}

// suspender is a gate that lets every call wait for an answer.
func suspender() engine.Plugin {
	return engine.NewPlugin("suspender", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
			return gate.Suspend(gate.Ticket{Message: "may it run?"}), nil
		}))
		return nil
	})
}

// boxedValues is the work of making as many values and keeping them in a slice.
func boxedValues(n int) Work {
	return func(measure func(func(int) error) error) error {
		var kept [][]any
		err := measure(each(func() error {
			values := make([]any, n)
			for i := range values {
				values[i] = 1000 + i
			}
			kept = append(kept, values)
			return nil
		}))
		for _, values := range kept { // they are in use up to here
			if values[0] != 1000 {
				err = errors.Join(err, errors.New("bench: a value was lost"))
			}
		}
		return err
	}
}

// ActiveRuns is the work of starting runs on one engine, each on a goroutine of its own,
// up to where all of them are inside their model call. They end when measure has returned.
func ActiveRuns() Work {
	return func(measure func(func(int) error) error) error {
		asked, answer := make(chan struct{}), make(chan struct{})
		eng, err := NewEngine(inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
			asked <- struct{}{}
			<-answer
			return inference.Response{Message: inference.Assistant("done")}, nil
		}), nil, OwnKeys(8), Gates(3), NullTool())
		if err != nil {
			return err
		}
		var runs errgroup.Group
		err = measure(func(n int) error {
			for range n {
				runs.Go(func() error {
					res, err := eng.Run(context.Background(), Spec, engine.Prompt("go"))
					if err == nil {
						err = res.Err
					}
					return err
				})
			}
			for range n {
				<-asked
			}
			return nil
		})
		close(answer)
		return errors.Join(err, runs.Wait())
	}
}
