package phase_test

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var visits = state.NewCounter("visits", state.Options[int64]{})

// A hook reads a frozen snapshot and returns what it wants to have done.
func ExampleHookFunc() {
	hook := phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		if visits.Get(pc.Snapshot()) < 3 {
			cmd.Update(visits.With(1))
		}
		return cmd, nil
	})
	cmd, err := hook.Run(context.Background(), phase.NewContext(phase.Frame{Phase: phase.StepStart}))
	fmt.Println(cmd.Updates(), err)
	// Output: [visits.apply(1)] <nil>
}

// An action names the phase it runs in. Its handler is registered, and commands
// schedule it.
func ExampleNewAction() {
	greet := phase.NewAction[string]("greet", phase.StepEnd)
	handler := greet.Handle(func(_ context.Context, _ *phase.Context, name string) (phase.Command, error) {
		fmt.Println("hello,", name)
		return phase.Command{}, nil
	})

	var cmd phase.Command
	cmd.Schedule(greet.New("Ada"))
	for _, a := range cmd.Actions() {
		fmt.Println(a.Name(), "at", a.Phase())
		_, _ = handler.Handle(context.Background(), phase.NewContext(phase.Frame{}), a)
	}
	// Output:
	// greet at step_end
	// hello, Ada
}

// The phases, in the order in which a run passes through them.
func ExampleAll() {
	for p := range phase.All() {
		fmt.Println(p)
	}
	// Output:
	// run_start
	// step_start
	// before_inference
	// after_inference
	// tool_gate
	// before_tool_execute
	// after_tool_execute
	// step_end
	// run_end
}
