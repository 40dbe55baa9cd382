package effects

import (
	"errors"
	"fmt"
)

// The errors of this package. Test with [errors.Is]; structs with the particulars are read with [errors.As].
var (
	// ErrUnknownEffect: no handler is registered for an effect. See [UnknownEffectError].
	ErrUnknownEffect = errors.New("effects: unknown effect")
	// ErrDuplicateHandler: two handlers want the same effect. See [DuplicateHandlerError].
	ErrDuplicateHandler = errors.New("effects: duplicate handler")
	// ErrPayload: a payload cannot be carried, or sender and handler disagree about its type. See [PayloadError].
	ErrPayload = errors.New("effects: bad payload")
	// ErrBadHandler: a handler has no name or no function.
	ErrBadHandler = errors.New("effects: bad handler")
	// ErrBadConfig: a dispatcher's configuration makes no sense.
	ErrBadConfig = errors.New("effects: bad config")
	// ErrBadID: a text is not an effect id.
	ErrBadID = errors.New("effects: bad id")
	// ErrTimeout: a handler did not finish in time and was left behind.
	ErrTimeout = errors.New("effects: handler timed out; make it watch its context, or allow more with Timeout")
	// ErrOverflow: the queue was full and the effect was not delivered.
	ErrOverflow = errors.New("effects: queue is full; raise Config.Queue or make the handlers faster")
	// ErrClosed: the dispatcher was closed before the effect came.
	ErrClosed = errors.New("effects: dispatcher is closed")
	// ErrUndelivered: a drain ended before the effect was delivered. See [UndeliveredError].
	ErrUndelivered = errors.New("effects: not delivered before the drain ended")
	// ErrReentrant: a handler asked for the end of the queue it is itself part of.
	ErrReentrant = errors.New("effects: a handler cannot drain or close the dispatcher that called it")
)

// UnknownEffectError names an effect nobody handles. It matches [ErrUnknownEffect].
type UnknownEffectError struct {
	Name string
	// Nearest is a handled effect with a similar name, or empty.
	Nearest string
}

// Error implements error.
func (e *UnknownEffectError) Error() string {
	if e.Name == "" {
		return "effects: an effect without a name; make effects with Spec.New of a spec from NewSpec"
	}
	text := fmt.Sprintf("effects: no plugin handles effect %q; register Spec.Handle for it", e.Name)
	if e.Nearest != "" {
		text += fmt.Sprintf(" (did you mean %q?)", e.Nearest)
	}
	return text
}

// Is reports whether target is [ErrUnknownEffect].
func (e *UnknownEffectError) Is(target error) bool { return target == ErrUnknownEffect }

// DuplicateHandlerError names two plugins that handle the same effect. It matches [ErrDuplicateHandler].
type DuplicateHandlerError struct{ Effect, First, Second string }

// Error implements error.
func (e *DuplicateHandlerError) Error() string {
	return fmt.Sprintf("effects: plugins %q and %q both handle effect %q; keep one handler", e.First, e.Second, e.Effect)
}

// Is reports whether target is [ErrDuplicateHandler].
func (e *DuplicateHandlerError) Is(target error) bool { return target == ErrDuplicateHandler }

// PayloadError says why the payload of an effect cannot be used. It matches [ErrPayload].
type PayloadError struct {
	Effect string
	Err    error
}

// Error implements error.
func (e *PayloadError) Error() string {
	return fmt.Sprintf("effects: payload of effect %q: %v", e.Effect, e.Err)
}

// Is reports whether target is [ErrPayload].
func (e *PayloadError) Is(target error) bool { return target == ErrPayload }

// Unwrap returns the cause.
func (e *PayloadError) Unwrap() error { return e.Err }

// HandlerError carries what a handler returned, or [ErrTimeout].
type HandlerError struct {
	ID ID
	// Plugin is the one that handles the effect.
	Plugin string
	Effect string
	Err    error
}

// Error implements error.
func (e *HandlerError) Error() string {
	return fmt.Sprintf("effects: plugin %q failed to handle effect %q (%s): %v", e.Plugin, e.Effect, e.ID, e.Err)
}

// Unwrap returns the cause.
func (e *HandlerError) Unwrap() error { return e.Err }

// PanicError carries the panic of a handler, or tells that it ended its goroutine.
type PanicError struct {
	ID     ID
	Plugin string
	Effect string
	// Value is what the handler panicked with; it is nil if the handler called [runtime.Goexit].
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("effects: plugin %q ended its goroutine while handling effect %q (%s)", e.Plugin, e.Effect, e.ID)
	}
	return fmt.Sprintf("effects: plugin %q panicked on effect %q (%s): %v", e.Plugin, e.Effect, e.ID, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// UndeliveredError says how many effects a drain gave up. It matches [ErrUndelivered].
type UndeliveredError struct {
	Count int
	// Err is why the drain ended: its context's error.
	Err error
}

// Error implements error.
func (e *UndeliveredError) Error() string {
	return fmt.Sprintf("effects: %d not delivered before the drain ended (%v); allow more time or find the slow handler", e.Count, e.Err)
}

// Is reports whether target is [ErrUndelivered].
func (e *UndeliveredError) Is(target error) bool { return target == ErrUndelivered }

// Unwrap returns the cause.
func (e *UndeliveredError) Unwrap() error { return e.Err }
