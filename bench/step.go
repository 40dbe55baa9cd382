package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

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
		ID: "P10", Case: "trace=on", Name: "the same step, traced, until all is written",
		Baseline: "the same step, its events counted", Impl: "counted", Limit: 1.5,
		Work: TracedStep(0, true), Base: CountedStep(0),
	}, {
		ID: "P10", Case: "trace=on/values=off", Name: "of it: the same without what was written and changed",
		Baseline: "the same step, its events counted", Impl: "counted",
		Work: TracedStep(0, false), Base: CountedStep(0),
	}, {
		ID: "P10", Case: "trace=on/model=1ms", Name: "such steps with a model of 1 ms, until all is written",
		Baseline: "the same steps, their events counted", Impl: "counted",
		Work: TracedStep(time.Millisecond, true), Base: CountedStep(time.Millisecond),
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
func WholeStep() Work { return CountedStep(0) }

// CountedStep is WholeStep with a model that takes so long to answer.
func CountedStep(model time.Duration) Work {
	return observedStep(model, func() (engine.Observer, func() error) {
		return &counter{}, func() error { return nil }
	})
}

// TracedStep is the work of CountedStep with a trace in the place of the counter, which
// writes its lines to nowhere. The work is over when the last line is written, and fails
// if one is missing: what is measured is all that a trace costs, wherever it is paid. The
// trace may be behind as far as it likes, since a run of this kind is faster than it, and
// one that drops events would be measured for less than it does. Without values the trace
// is told who wrote which keys, and not what.
func TracedStep(model time.Duration, values bool) Work {
	return observedStep(model, func() (engine.Observer, func() error) {
		lines := &lineCounter{}
		t := trace.New(trace.Options{Lines: lines, Events: math.MaxInt, Buffer: math.MaxInt})
		seen := &counter{}
		both := engine.ObserverFunc(func(e engine.Event) {
			seen.Observe(e)
			if c, ok := e.(engine.Committed); ok && !values {
				e = withoutValues(c)
			}
			t.Observe(e)
		})
		return both, func() error {
			err := t.Close(context.Background())
			if want := seen.seen.Load() + 1; err == nil && lines.n != want {
				err = fmt.Errorf("bench: %d lines were written, not %d", lines.n, want)
			}
			return err
		}
	})
}

// withoutValues is a commit, which belongs to the caller, without its states and arguments.
func withoutValues(c engine.Committed) engine.Event {
	c.Before, c.After = nil, nil
	for i := range c.Writes {
		c.Writes[i].Update = state.Update{}
	}
	return c
}

// lineCounter is a writer to nowhere and counts what it gets.
type lineCounter struct{ n int64 }

func (l *lineCounter) Write(p []byte) (int, error) {
	l.n += int64(bytes.Count(p, []byte{'\n'}))
	return len(p), nil
}

// observedStep is the work of WholeStep with another observer for each run, and with what
// has to be done behind the run.
func observedStep(model time.Duration, open func() (engine.Observer, func() error)) Work {
	return func(measure func(func(int) error) error) error {
		var now engine.Observer
		observer := engine.ObserverFunc(func(e engine.Event) { now.Observe(e) })
		eng, err := NewEngine(slowed(CallingModel(stepCalls), model), []engine.Observer{observer}, stepPlugins()...)
		if err != nil {
			return err
		}
		return measure(func(n int) error {
			spec := Spec
			spec.MaxRounds = n
			var written func() error
			now, written = open()
			res, err := eng.Run(context.Background(), spec, engine.Prompt("go"))
			if err := errors.Join(err, written()); err != nil {
				return err
			}
			switch {
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

// slowed is a model that takes so long to answer.
func slowed(m inference.Model, by time.Duration) inference.Model {
	if by == 0 {
		return m
	}
	return inference.ModelFunc(func(ctx context.Context, req inference.Request) (inference.Response, error) {
		time.Sleep(by)
		return m.Generate(ctx, req)
	})
}
