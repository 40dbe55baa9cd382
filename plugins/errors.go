package plugins

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/ddd26017/fixpoint/engine"
)

// The kinds of faults that callers may want to tell apart.
var (
	// ErrUnknown: there is no entry of that name.
	ErrUnknown = errors.New("there is no such plugin")
	// ErrNotAllowed: the allowlist does not let the name through.
	ErrNotAllowed = errors.New("it is not on the allowlist")
	// ErrDuplicate: the name is there twice.
	ErrDuplicate = errors.New("the name is taken")
)

// EntryError says what is wrong with an entry, or why its plugin was not loaded. It
// wraps the cause; a constructor's panic is an *engine.PanicError.
type EntryError struct {
	Name    string
	Source  string // of the entry, as far as there is one
	Nearest string // the known name nearest to one that is not known, or ""
	Err     error
}

func (e *EntryError) Error() string {
	msg := fmt.Sprintf("plugins: plugin %q", e.Name)
	if e.Source != "" {
		msg += fmt.Sprintf(" (%s)", e.Source)
	}
	msg += ": " + e.Err.Error()
	if e.Nearest != "" {
		msg += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return msg
}

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// guarded calls code of a plugin and turns its panic into an error.
func guarded(plugin string, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &engine.PanicError{Plugin: plugin, Value: v, Stack: debug.Stack()}
		}
	}()
	return call()
}
