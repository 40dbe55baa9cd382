package gate

import (
	"context"

	"github.com/ddd26017/fixpoint/phase"
)

// Gate decides whether a tool call may run. It must be pure: it may be asked
// again about the same call, after other calls of the step committed or after
// the arguments were edited, and all gates are asked at the same time.
//
// Fail closed: an error, a panic, a missed deadline or an unknown kind of
// decision blocks the call, unless the gate was registered with FailOpen.
type Gate interface {
	Check(ctx context.Context, pc *phase.Context) (Decision, error)
}

// Func lets a function be a Gate.
type Func func(ctx context.Context, pc *phase.Context) (Decision, error)

// Check calls f.
func (f Func) Check(ctx context.Context, pc *phase.Context) (Decision, error) { return f(ctx, pc) }
