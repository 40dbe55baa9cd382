package gate

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknownKind is the fault of a gate that returned no known kind of decision.
	ErrUnknownKind = errors.New("gate: unknown kind of decision")

	// ErrLeftOpen is what a Resolver returns to leave a question open: nobody is there
	// now, and the run shall wait.
	ErrLeftOpen = errors.New("gate: the ticket is left open")

	// ErrFailed is the kind of *FailedError.
	ErrFailed = errors.New("gate: policy could not be checked")
)

// FailedError says that a gate did not decide, and that the call is blocked for
// that reason alone.
type FailedError struct {
	Plugin string
	Err    error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("gate: the policy of %s could not be checked: %v", e.Plugin, e.Err)
}

// Is reports whether target is ErrFailed.
func (e *FailedError) Is(target error) bool { return target == ErrFailed }

// Unwrap returns the gate's own error.
func (e *FailedError) Unwrap() error { return e.Err }
