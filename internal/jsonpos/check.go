package jsonpos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Check collects what is wrong with one tree. Of several faults of one value the
// first counts: the others tend to follow from it. The zero Check is ready, also
// for a value that never had a text: its faults have no places then. A Check is
// not safe for concurrent use.
type Check struct {
	// Root is the tree that places are looked up in, or nil. Check.Tree sets it.
	Root *Node
	// Nearest returns the known name that a wrong one was likely meant to be, or
	// "". Nil means that no suggestions are made.
	Nearest func(name string, known []string) string

	faults []*Fault
	seen   map[string]bool
}

// Fault is one thing that is wrong with a tree.
type Fault struct {
	Line, Column int    // counted from 1, columns in characters; 0 means unknown
	Path         string // names the value; "" for the whole tree
	Msg          string // what is wrong, and what would be right
	Nearest      string // the known name that was likely meant, or ""
	Err          error  // the cause, when other code reported the fault
}

// Faults returns what was reported so far, in the order of the reports.
func (c *Check) Faults() []*Fault { return c.faults }

// Find returns the member at p, or what it is missing from.
func (c *Check) Find(p Path) Member {
	m, _ := cmp.Or(c.Root, &Node{}).Find(p)
	return m
}

// Value reports a fault of the value at p, or of its absence. It returns the fault
// so that details can be added; one that does not count is returned all the same.
func (c *Check) Value(p Path, format string, args ...any) *Fault {
	n := c.Find(p).Value
	return c.at(n.Line, n.Column, p, fmt.Sprintf(format, args...))
}

// Name reports a fault of the member's name at p, as Value does.
func (c *Check) Name(p Path, format string, args ...any) *Fault {
	m := c.Find(p)
	return c.at(m.Line, m.Column, p, fmt.Sprintf(format, args...))
}

// OneOf reports the value at p as none of the known names, unless name is one.
// The message calls it a what.
func (c *Check) OneOf(p Path, what, name string, known ...string) {
	if !slices.Contains(known, name) {
		c.unknown(c.Value(p, ""), what, name, known)
	}
}

// NoSuch reports the member's name at p as none of the known ones, as OneOf does.
func (c *Check) NoSuch(p Path, what, name string, known []string) {
	c.unknown(c.Name(p, ""), what, name, known)
}

func (c *Check) unknown(f *Fault, what, name string, known []string) {
	f.Msg = fmt.Sprintf("no %s %q", what, name)
	if c.Nearest != nil {
		f.Nearest = c.Nearest(name, known)
	}
	switch {
	case f.Nearest != "":
	case len(known) == 0:
		f.Msg += "; none is known"
	default:
		f.Msg += "; known: " + Listed(known)
	}
}

func (c *Check) at(line, column int, p Path, msg string) *Fault {
	f := &Fault{Line: line, Column: column, Path: p.String(), Msg: msg}
	if !c.seen[f.Path] {
		c.faults = append(c.faults, f)
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[f.Path] = true
	return f
}

// Listed joins names for a message, the first few of them if there are many.
func Listed(names []string) string {
	const few = 10
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
