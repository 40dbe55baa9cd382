package phase

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrUnknownPhase is returned for a phase that is not one of the declared ones.
	ErrUnknownPhase = errors.New("phase: unknown phase")

	// ErrUnknownAction is returned when a command schedules an action that no
	// plugin handles. The command is refused before anything of it commits.
	ErrUnknownAction = errors.New("phase: no handler for action")

	// ErrPayload is returned for an action whose payload cannot be frozen or read.
	ErrPayload = errors.New("phase: bad action payload")

	// ErrNotConverged is the kind of *ConvergenceError.
	ErrNotConverged = errors.New("phase: actions did not converge")
)

// ConvergenceError reports that a phase still had actions queued after its last
// permitted round. What the rounds committed stays; what was left is dead-lettered.
type ConvergenceError struct {
	Phase   Phase
	Rounds  int      // rounds that ran, the limit
	Pending []string // names of the actions that were left, in queue order
}

func (e *ConvergenceError) Error() string {
	return fmt.Sprintf("phase: %s did not converge in %d rounds; still pending: %s; look for an action that schedules itself, or raise Limits.PhaseRounds",
		e.Phase, e.Rounds, strings.Join(e.Pending, ", "))
}

// Is reports whether target is ErrNotConverged.
func (e *ConvergenceError) Is(target error) bool { return target == ErrNotConverged }
