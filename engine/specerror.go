package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	place := strings.TrimPrefix(e.File+position{e.Line, e.Column}.phrase(":"), ":")
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

// oneOf reports that the value at p is none of the known names, unless it is.
func (f *faults) oneOf(p specPath, what, name string, known ...string) {
	if !slices.Contains(known, name) {
		f.value(p, "").unknown(what, name, known)
	}
}

// unknown says that name is none of the known ones.
func (e *SpecError) unknown(what, name string, known []string) {
	e.Msg = fmt.Sprintf("no %s %q", what, name)
	e.Nearest = nearest(name, known)
	switch {
	case e.Nearest != "":
	case len(known) == 0:
		e.Msg += "; none is known"
	default:
		e.Msg += "; known: " + listed(known)
	}
}

// specSource is the text that a spec was read from. It is never changed, so
// copies of a spec share it.
type specSource struct {
	file string
	root *SpecNode // nil for a spec made in Go
}

// faults collects what is wrong with one spec. Of several faults of one value
// the first counts: the others tend to follow from it.
type faults struct {
	source specSource
	agent  string
	list   []*SpecError
	seen   map[string]bool
}

// value reports a fault of the value at p, or of its absence. It returns the
// error so that details can be added; one that does not count is returned all
// the same.
func (f *faults) value(p specPath, format string, args ...any) *SpecError {
	n := f.find(p).Value
	return f.at(position{n.Line, n.Column}, p, format, args...)
}

// name reports a fault of the member's name at p, as value does.
func (f *faults) name(p specPath, format string, args ...any) *SpecError {
	m := f.find(p)
	return f.at(position{m.Line, m.Column}, p, format, args...)
}

func (f *faults) find(p specPath) SpecMember {
	m, _ := cmp.Or(f.source.root, &SpecNode{}).find(p)
	return m
}

func (f *faults) at(pos position, p specPath, format string, args ...any) *SpecError {
	e := &SpecError{
		File: f.source.file, Line: pos.line, Column: pos.column, Agent: f.agent,
		Path: p.String(), Msg: fmt.Sprintf(format, args...),
	}
	if !f.seen[e.Path] {
		f.list = append(f.list, e)
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[e.Path] = true
	return e
}

// err joins the faults in the order of their positions; nil when there are none.
func (f *faults) err() error {
	slices.SortStableFunc(f.list, func(a, b *SpecError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var errs []error
	for _, e := range f.list {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// listed joins names for a message, the first few of them if there are many.
func listed(names []string) string {
	const few = 10
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
