package bench

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// stepRows is P10: what the engine adds to the parts that a step is made of.
func stepRows() []Row {
	return []Row{{
		ID: "P10", Case: "hooks=8/calls=2/gates=3", Name: "a step: 8 hooks, 2 calls, 3 gates, observed",
		Baseline: "its parts, each alone", Impl: "parts", Limit: 1.3,
		Work: WholeStep(), Base: StepParts(),
	}, {
		ID: "P10", Case: "trace=on", Name: "the same step with a trace of it written",
		Baseline: "the same step, its events counted", Impl: "counted", Limit: 1.5,
		Work: TracedStep(), Base: WholeStep(),
	}}
}

const stepCalls = 2

// stepPhases are the phases of such a step that have hooks, in order. Those of the tools
// come once for each call.
var stepPhases = []phase.Phase{
	phase.StepStart, phase.BeforeInference, phase.AfterInference,
	phase.BeforeToolExecute, phase.AfterToolExecute, phase.BeforeToolExecute, phase.AfterToolExecute,
	phase.StepEnd,
}

// stepPlugins are 8 plugins with one hook each, which reads a key and writes it. The
// first also has the tool and cuts the history back to the prompt, so that each step of
// a run is as much work as the one before. Three have a gate.
func stepPlugins() []engine.Plugin {
	at := []phase.Phase{
		phase.StepStart, phase.StepStart, phase.BeforeInference, phase.BeforeInference,
		phase.AfterInference, phase.BeforeToolExecute, phase.AfterToolExecute, phase.StepEnd,
	}
	plugins := make([]engine.Plugin, len(at))
	for i, p := range at {
		plugins[i] = engine.NewPlugin(fmt.Sprintf("step.%d", i), func(r *engine.Registrar) error {
			key := state.NewCell[int](fmt.Sprintf("step.%d", i), state.Options[int]{})
			r.Key(key)
			hook := increment(key)
			if i == 0 {
				hook = cutHistory(key)
				r.Tool(nullTool())
			}
			r.Hook(p, hook)
			if i >= len(at)-3 {
				r.Gate(approve)
			}
			return nil
		})
	}
	return plugins
}

func cutHistory(key state.Cell[int]) phase.Hook {
	return phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		cmd.Update(key.With(key.Get(pc.Snapshot())+1), engine.Transcript.Reset(), engine.Transcript.Append(inference.User("go")))
		return cmd, nil
	})
}

// counter is an observer that counts.
type counter struct{ seen atomic.Int64 }

func (c *counter) Observe(engine.Event) { c.seen.Add(1) }

// WholeStep is the work of a step of a run: a model that answers at once with two tool
// calls, tools that do nothing, the plugins of stepPlugins, and an observer that counts
// the events. n steps are one run, so that its start and its end are an n-th of a step.
func WholeStep() Work { return observedStep(func() engine.Observer { return &counter{} }) }

// TracedStep is the work of WholeStep with a trace that writes its lines to nowhere. Its
// encoding is beside the run, on another processor if there is one: what is measured is
// what it takes from the run. A run of this kind is faster than any encoding, so that
// events are dropped when too many wait.
func TracedStep() Work {
	return observedStep(func() engine.Observer { return trace.New(trace.Options{Lines: io.Discard}) })
}

// observedStep is the work of WholeStep with an observer.
func observedStep(observer func() engine.Observer) Work {
	return func(measure func(func(int) error) error) error {
		eng, err := NewEngine(CallingModel(stepCalls), []engine.Observer{observer()}, stepPlugins()...)
		if err != nil {
			return err
		}
		return measure(func(n int) error {
			spec := Spec
			spec.MaxRounds = n
			res, err := eng.Run(context.Background(), spec, engine.Prompt("go"))
			switch {
			case err != nil:
				return err
			case res.Err != nil:
				return res.Err
			case res.Steps != n || res.Stats.ToolCalls != stepCalls*n:
				return fmt.Errorf("bench: a run had %d steps with %d calls, not %d with %d each",
					res.Steps, res.Stats.ToolCalls, n, stepCalls)
			}
			return nil
		})
	}
}
