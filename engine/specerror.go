package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// SpecError says what is wrong with an agent spec, and where. It matches
// ErrSpec. Functions that check a spec report all of its faults at once, joined
// in the order of their positions.
type SpecError struct {
	// File is the name given to the parser; "" for a spec made in Go.
	File string
	// Line and Column are counted from 1, columns in characters. Zero means
	// unknown, as in a spec made in Go.
	Line, Column int
	// Agent is the id of the spec, as far as it is known.
	Agent string
	// Path names the field: "stop_conditions[1].rounds". Empty means the whole spec.
	Path string
	// Msg says what is wrong and what would be right.
	Msg string
	// Nearest is the known name that was likely meant, or "".
	Nearest string
	// Err is the cause when plugin code reported the fault, such as a section's
	// Check; otherwise nil.
	Err error
}

// Error returns "engine: file:line:column: path: message". Without a position it
// names the agent instead.
func (e *SpecError) Error() string {
	where := "agent spec"
	if e.Agent != "" {
		where = fmt.Sprintf("agent %q", e.Agent)
	}
	place := strings.TrimPrefix(e.File+jsonpos.At(":", e.Line, e.Column), ":")
	text := "engine: " + cmp.Or(place, where) + ": "
	if e.Path != "" {
		text += e.Path + ": "
	}
	text += e.Msg
	if e.Nearest != "" {
		text += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return text
}

// Is reports whether target is ErrSpec.
func (e *SpecError) Is(target error) bool { return target == ErrSpec }

// Unwrap returns the cause, if plugin code reported the fault.
func (e *SpecError) Unwrap() error { return e.Err }

// specSource is the text that a spec was read from. It is never changed, so
// copies of a spec share it.
type specSource struct {
	file string
	root *jsonpos.Node // nil for a spec made in Go
}

// faults collects what is wrong with one spec.
type faults struct {
	jsonpos.Check
	file    string
	agent   string
	unnamed int // faults found before the agent's id was known
}

func newFaults(source specSource, agent string) *faults {
	return &faults{Check: jsonpos.Check{Root: source.root, Nearest: nearest}, file: source.file, agent: agent}
}

// name tells whose spec it is; faults found before stay without a name.
func (f *faults) name(agent string) { f.agent, f.unnamed = agent, len(f.Faults()) }

func (f *faults) errors() []*SpecError {
	var list []*SpecError
	for i, x := range f.Faults() {
		e := &SpecError{File: f.file, Line: x.Line, Column: x.Column, Path: x.Path, Msg: x.Msg, Nearest: x.Nearest, Err: x.Err}
		if i >= f.unnamed {
			e.Agent = f.agent
		}
		list = append(list, e)
	}
	return list
}

func (f *faults) err() error { return joined(f.errors()) }

// joined joins faults in the order of their positions; nil when there are none.
func joined(list []*SpecError) error {
	slices.SortStableFunc(list, func(a, b *SpecError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return errors.Join(each(list, func(e *SpecError) error { return e })...)
}

// nearest returns the known name that name was most likely meant to be, or "".
func nearest(name string, known []string) string { return jsonpos.Nearest(name, known) }
