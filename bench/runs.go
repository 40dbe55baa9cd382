package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// runsRows are P11: how runs on one engine keep out of each other's way.
func runsRows() []Row {
	const n = 10_000
	return []Row{
		{
			ID: "P11", Case: "runs=10000", Name: "throughput of 10,000 runs on 2 cores",
			Baseline: "one run after another on 1 core", Impl: "serial", Measure: Throughput, Limit: 1.7,
			Work: ConcurrentRuns(n), Base: SerialRuns(n),
		},
		{
			ID: "P11", Case: "part=memory", Name: "of it: as much memory, and nothing else",
			Baseline: "the same, one after another on 1 core", Impl: "serial", Measure: Throughput,
			Work: onCores(2, allAtOnce(n), allocateRun), Base: onCores(1, oneByOne(n), allocateRun),
		},
		activeRow(),
	}
}

// ConcurrentRuns is the work of n runs of two steps on one engine, all started at the
// same time, with two cores.
func ConcurrentRuns(n int) Work { return runs(2, allAtOnce(n)) }

// SerialRuns is the work of the same runs one after another, with one core.
func SerialRuns(n int) Work { return runs(1, oneByOne(n)) }

// allAtOnce starts n of something at the same time and waits for them.
func allAtOnce(n int) func(one func() error) error {
	return func(one func() error) error {
		var g errgroup.Group
		for range n {
			g.Go(one)
		}
		return g.Wait()
	}
}

func oneByOne(n int) func(one func() error) error {
	return func(one func() error) error { return each(one)(n) }
}

// onCores does what all says with one. The number of cores is set for the step only.
func onCores(cores int, all func(one func() error) error, one func() error) Work {
	return plain(func(n int) error {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		return each(func() error { return all(one) })(n)
	})
}

// allocateRun allocates about what a run does, in as many objects, and lets go of it.
func allocateRun() error {
	type object struct {
		before *object
		text   [13]int64
	}
	var last *object
	for i := range 350 {
		last = &object{before: last}
		last.text[i%len(last.text)] = int64(i)
	}
	if last.before == nil {
		return errors.New("bench: the objects are gone")
	}
	return nil
}

// runs does what all says with runs of two steps: 8 hooks at StepStart, and in the first
// step 2 tool calls that 3 gates approve.
func runs(cores int, all func(one func() error) error) Work {
	return func(measure func(func(int) error) error) error {
		eng, err := NewEngine(CallingModel(2), nil, OwnKeys(8), Gates(3), NullTool())
		if err != nil {
			return err
		}
		one := func() error {
			res, err := eng.Run(context.Background(), Spec, engine.Prompt("go"))
			switch {
			case err != nil:
				return err
			case res.Err != nil:
				return res.Err
			case res.Steps != 2:
				return fmt.Errorf("bench: a run had %d steps, not 2", res.Steps)
			}
			return nil
		}
		return onCores(cores, all, one)(measure)
	}
}

// Gates is n gates that approve every call.
func Gates(n int) engine.Plugin {
	return engine.NewPlugin("gates", func(r *engine.Registrar) error {
		for range n {
			r.Gate(approve)
		}
		return nil
	})
}

var approve = gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Approve(), nil })

// NullTool is a tool that does nothing.
func NullTool() engine.Plugin {
	return engine.NewPlugin("null", func(r *engine.Registrar) error {
		r.Tool(nullTool())
		return nil
	})
}

func nullTool() engine.Tool {
	return engine.NewTool(inference.ToolSpec{Name: "null"},
		func(context.Context, *phase.Context, struct{}) (engine.Output, error) { return engine.Text("ok"), nil })
}

// CallingModel asks for the null tool calls times in its first answer and is done
// when it has the results.
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
