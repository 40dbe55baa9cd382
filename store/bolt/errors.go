package bolt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/store"
)

// ErrLocked is returned by Open and Verify when the file is open elsewhere, in this
// process or another.
var ErrLocked = errors.New("bolt: the store is open elsewhere; close it there or raise Options.Timeout")

// CorruptError says what is damaged and where. It is of the kind store.ErrCorrupt.
type CorruptError struct {
	Path     string
	Bucket   string // part of the store, such as "records"; "" if the file itself is meant
	Thread   string // "" where no thread is concerned or known
	Revision uint64 // 0 where none is concerned or known
	Offset   int64  // in the file; -1 where it is not known, as for values in calls other than Open and Verify
	Reason   string
}

// Error implements error.
func (e *CorruptError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bolt: %s is damaged", e.Path)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at byte %d", e.Offset)
	}
	if e.Bucket != "" {
		fmt.Fprintf(&b, ", in %s", e.Bucket)
	}
	if e.Thread != "" {
		fmt.Fprintf(&b, ", thread %q", e.Thread)
	}
	if e.Revision > 0 {
		fmt.Fprintf(&b, ", revision %d", e.Revision)
	}
	fmt.Fprintf(&b, ": %s; restore the file from a copy", e.Reason)
	return b.String()
}

// Is reports whether target is store.ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == store.ErrCorrupt }

func errClosed() error {
	return fmt.Errorf("bolt: the store was closed: %w", store.ErrClosed)
}

func errFenced(thread string, epoch, have uint64) error {
	return fmt.Errorf("bolt: thread %s is at epoch %d, not at %d; acquire its lease again: %w", thread, have, epoch, store.ErrFenced)
}
