package main

import (
	"errors"
	"fmt"
	"io"
)

// figures prints what was measured, one line each, and remembers which bounds were
// not met.
type figures struct {
	out    io.Writer
	check  string // and its seed
	missed []error
}

func (f *figures) tell(name string, got int) { f.print(name, got, "") }

func (f *figures) exactly(name string, got, want int) {
	f.bound(name, got, fmt.Sprintf("want %d", want), got == want)
}

func (f *figures) atLeast(name string, got, want int) {
	f.bound(name, got, fmt.Sprintf("want at least %d", want), got >= want)
}

func (f *figures) bound(name string, got int, want string, met bool) {
	f.print(name, got, " ("+want+")")
	if !met {
		f.missed = append(f.missed, fmt.Errorf("%s: %s: %d; %s", f.check, name, got, want))
	}
}

func (f *figures) print(name string, got int, note string) {
	// A reader that went away is no reason to stop the check.
	_, _ = fmt.Fprintf(f.out, "%s: %s: %d%s\n", f.check, name, got, note)
}

func (f *figures) err() error { return errors.Join(f.missed...) }
