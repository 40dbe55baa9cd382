package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/phase"
)

var (
	// ErrConfig is the kind of every fault that New finds in its Config.
	ErrConfig = errors.New("engine: invalid configuration")

	// ErrRegistration is the kind of a plugin's mistakes in Register.
	ErrRegistration = errors.New("engine: plugin registration failed")

	// ErrSpec is the kind of *SpecError: an agent spec with a mistake.
	ErrSpec = errors.New("engine: invalid agent spec")

	// ErrInput is returned for a run input that cannot be used.
	ErrInput = errors.New("engine: invalid input")

	// ErrBusy is returned when a thread already has a run under way.
	ErrBusy = errors.New("engine: the thread has a run under way; wait for it or use another thread")

	// ErrWaiting is returned when a thread's last run waits for an answer.
	ErrWaiting = errors.New("engine: the thread waits for an answer to its tickets")

	// ErrClosed is returned by an engine that was closed.
	ErrClosed = errors.New("engine: closed")

	// ErrTimeout is the kind of *TimeoutError.
	ErrTimeout = errors.New("engine: deadline passed")

	// ErrGoexit is the fault of user code that ended its goroutine.
	ErrGoexit = errors.New("engine: user code ended its goroutine with runtime.Goexit")

	// ErrUnknownAgent is returned for a handoff or delegation to an agent that the
	// engine was not given.
	ErrUnknownAgent = errors.New("engine: unknown agent")

	// ErrNoDeadLetter is returned when a dead letter to requeue does not exist.
	ErrNoDeadLetter = errors.New("engine: no such dead letter")
)

// PanicError is a panic of user code, caught at the engine's boundary.
type PanicError struct {
	Plugin string
	Phase  phase.Phase // zero outside phases
	Value  any
	Stack  []byte
}

func (e *PanicError) Error() string {
	where := ""
	if e.Phase != 0 {
		where = " at " + e.Phase.String()
	}
	return fmt.Sprintf("engine: plugin %s panicked%s: %v", e.Plugin, where, e.Value)
}

// Unwrap returns the panic's value when it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// TimeoutError says that a call of user code missed its deadline.
type TimeoutError struct {
	Plugin string
	Phase  phase.Phase
	Limit  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("engine: plugin %s did not finish %s within %s; its late result is thrown away", e.Plugin, e.Phase, e.Limit)
}

// Is reports whether target is ErrTimeout.
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// HookError names the hook or action handler whose failure it wraps.
type HookError struct {
	Plugin string
	Hook   string // hook id or action name
	Phase  phase.Phase
	Err    error
}

func (e *HookError) Error() string {
	return fmt.Sprintf("engine: %s of plugin %s failed at %s: %v", e.Hook, e.Plugin, e.Phase, e.Err)
}

// Unwrap returns the cause.
func (e *HookError) Unwrap() error { return e.Err }

// PhaseError is a phase that failed. It joins the faults of all its hooks.
type PhaseError struct {
	Phase phase.Phase
	Errs  []error
}

func (e *PhaseError) Error() string {
	return fmt.Sprintf("engine: phase %s failed: %v", e.Phase, errors.Join(e.Errs...))
}

// Unwrap returns every cause.
func (e *PhaseError) Unwrap() []error { return e.Errs }

// UnknownActionError is a scheduled action that no plugin handles.
type UnknownActionError struct {
	Action  string
	Nearest string // nearest handled name, or ""
	Err     error  // why the handler of that name did not accept it, or nil
}

func (e *UnknownActionError) Error() string {
	if e.Err != nil {
		return "engine: command refused: " + e.Err.Error()
	}
	msg := fmt.Sprintf("engine: command refused: no handler for action %q; register one with Registrar.Action", e.Action)
	if e.Nearest != "" {
		msg += fmt.Sprintf(" (nearest known: %q)", e.Nearest)
	}
	return msg
}

// Is reports whether target is phase.ErrUnknownAction.
func (e *UnknownActionError) Is(target error) bool { return target == phase.ErrUnknownAction }

// Unwrap returns the handler's refusal.
func (e *UnknownActionError) Unwrap() error { return e.Err }
