package state

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

var (
	// ErrConflict is what a *ConflictError is.
	ErrConflict = errors.New("state: conflict")
	// ErrUnknownKey reports a key that the store was not built with.
	ErrUnknownKey = errors.New("state: unknown key")
	// ErrDuplicateKey reports two keys of one name, or one key given twice.
	ErrDuplicateKey = errors.New("state: duplicate key")
	// ErrStale reports a base that is not of this store, or a compare-and-set
	// that lost to another writer.
	ErrStale = errors.New("state: stale base")
	// ErrAliasable reports a type whose values share memory when copied.
	ErrAliasable = errors.New("state: aliasable type")
	// ErrInvalidKey reports a key that cannot be registered as it is, or an
	// entry that cannot be part of a sorted table.
	ErrInvalidKey = errors.New("state: invalid key")
	// ErrNewerVersion reports data written by a newer version of a key.
	ErrNewerVersion = errors.New("state: data is of a newer version")
	// ErrMutated is what a *MutationError is.
	ErrMutated = errors.New("state: shared value mutated")
	// ErrBusy reports a commit that gave up because the keys it touches
	// changed under it every time. A reducer that commits to the key it
	// reduces is the usual cause.
	ErrBusy = errors.New("state: the touched keys never stood still")
)

// ConflictError says why a batch was rejected: an exclusive touch of it, or a
// key it declared as read, overlaps a write that came first. Run the batch's
// author again on a newer snapshot.
type ConflictError struct {
	Key    string // name of the key
	Entry  string // text of the table entry; empty for the whole key
	Winner string // owner of the write that stands, when known
	Loser  string // owner of the rejected batch
}

// Error names the key and both owners.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("state: %q lost %s to %q; run it again on a newer snapshot",
		e.Loser, place(e.Key, e.Entry), e.Winner)
}

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// BatchError says which batch made a commit fail. Nothing of the commit was
// applied: drop or repair that batch and commit the others again.
type BatchError struct {
	Index int    // position among the batches of the call
	Owner string // owner of the batch
	Err   error  // the fault
}

// Error names the batch and the fault.
func (e *BatchError) Error() string {
	return fmt.Sprintf("state: batch %d of %q: %s; nothing was committed", e.Index, e.Owner, strip(e.Err))
}

// Unwrap returns the fault.
func (e *BatchError) Unwrap() error { return e.Err }

// ApplyError reports user code that failed while an update was applied: a
// reducer, check, clone or initial function that panicked, or a check that
// refused the new value.
type ApplyError struct {
	Key   string // name of the key
	Entry string // text of the table entry; empty for the whole key
	Value any    // what was passed to panic; nil when Err alone says it
	Err   error  // the refusal, or the panic value when it is an error
	Stack []byte // stack of the panic; nil when there was none
}

// Error names the key and the cause.
func (e *ApplyError) Error() string {
	if e.Value != nil {
		return fmt.Sprintf("state: %s: user code panicked: %v", place(e.Key, e.Entry), e.Value)
	}
	return fmt.Sprintf("state: %s: update refused: %s", place(e.Key, e.Entry), strip(e.Err))
}

// Unwrap returns the refusal, if there is one.
func (e *ApplyError) Unwrap() error { return e.Err }

// panicked is the fault of user code that panicked with v.
func panicked(v any) *ApplyError {
	cause, _ := v.(error)
	return &ApplyError{Value: v, Err: cause, Stack: debug.Stack()}
}

// guard calls user code of a key, and turns a panic into an *ApplyError.
func guard[T any](key string, user func() (T, error)) (result T, err error) {
	defer func() {
		if v := recover(); v != nil {
			fault := panicked(v)
			fault.Key, err = key, fault
		}
	}()
	return user()
}

// DecodeError reports saved data that cannot be read. Nothing was changed.
type DecodeError struct {
	Key     string // name of the key; empty when the dump itself is malformed
	Version int    // version of the data
	Offset  int64  // byte position in the dump, -1 when unknown
	Err     error  // the cause
}

// Error names the key, its version, the position and the cause.
func (e *DecodeError) Error() string {
	what, at := "the dump", ""
	if e.Key != "" {
		what = fmt.Sprintf("%q (version %d)", e.Key, e.Version)
	}
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("state: cannot decode %s%s: %s", what, at, strip(e.Err))
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// MutationError names the keys whose shared values were changed in place.
type MutationError struct {
	Keys []string // sorted by name
}

// Error names the keys.
func (e *MutationError) Error() string {
	return fmt.Sprintf("state: values of shared keys were changed in place: %s; write a changed copy with an update instead",
		strings.Join(e.Keys, ", "))
}

// Is reports whether target is ErrMutated.
func (e *MutationError) Is(target error) bool { return target == ErrMutated }

func place(key, entry string) string {
	if entry == "" {
		return fmt.Sprintf("key %q", key)
	}
	return fmt.Sprintf("entry %q of key %q", entry, key)
}

// strip keeps a nested text from repeating the package name.
func strip(err error) string {
	if err == nil {
		return "unknown fault"
	}
	return strings.TrimPrefix(err.Error(), "state: ")
}
