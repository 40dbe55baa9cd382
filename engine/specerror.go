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
	var b strings.Builder
	b.WriteString("engine: ")
	at := e.File + position{e.Line, e.Column}.phrase(":")
	if e.File == "" {
		at = position{e.Line, e.Column}.phrase("")
	}
	switch {
	case at != "":
		b.WriteString(at + ": ")
	case e.Agent != "":
		fmt.Fprintf(&b, "agent %q: ", e.Agent)
	default:
		b.WriteString("agent spec: ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Msg)
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Nearest)
	}
	return b.String()
}

// Is reports whether target is ErrSpec.
func (e *SpecError) Is(target error) bool { return target == ErrSpec }

// Unwrap returns the cause, if plugin code reported the fault.
func (e *SpecError) Unwrap() error { return e.Err }

// specSource is the text that a spec was read from. It is never changed, so
// copies of a spec share it.
type specSource struct {
	file string
	root *SpecNode
}

// faults collects what is wrong with one spec. Of several faults of one value
// the first counts: the others tend to follow from it.
type faults struct {
	source *specSource // nil for a spec made in Go
	agent  string
	list   []*SpecError
	seen   map[string]bool
}

// value reports a fault of the value at p.
func (f *faults) value(p *specPath, format string, args ...any) *SpecError {
	_, pos := f.locate(p)
	return f.at(pos, p, format, args...)
}

// name reports a fault of the member's name at p.
func (f *faults) name(p *specPath, format string, args ...any) *SpecError {
	pos, _ := f.locate(p)
	return f.at(pos, p, format, args...)
}

// unknownValue reports that the value at p is not one of the known names.
func (f *faults) unknownValue(p *specPath, what, name string, known []string) {
	f.value(p, "").unknown(what, name, known)
}

// unknownName reports that the member at p has a name that is not known.
func (f *faults) unknownName(p *specPath, what string, known []string) {
	f.name(p, "").unknown(what, p.name, known)
}

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

func (f *faults) locate(p *specPath) (name, value position) {
	if f.source == nil {
		return position{}, position{}
	}
	return f.source.root.locate(p)
}

// at reports a fault at pos. It returns the error so that details can be added;
// one that is not counted is returned all the same.
func (f *faults) at(pos position, p *specPath, format string, args ...any) *SpecError {
	e := &SpecError{Line: pos.line, Column: pos.column, Agent: f.agent, Path: p.String(), Msg: fmt.Sprintf(format, args...)}
	if f.source != nil {
		e.File = f.source.file
	}
	if f.seen[e.Path] {
		return e
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[e.Path] = true
	f.list = append(f.list, e)
	return e
}

// err joins the faults in the order of their positions; nil when there are none.
func (f *faults) err() error {
	slices.SortStableFunc(f.list, func(a, b *SpecError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	errs := make([]error, len(f.list))
	for i, e := range f.list {
		errs[i] = e
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
