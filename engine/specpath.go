package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// position is a place in a text; the zero position is unknown.
type position struct{ line, column int }

// phrase returns the position after a lead, or "" when it is unknown.
func (p position) phrase(lead string) string {
	if p.line == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d:%d", lead, p.line, p.column)
}

// specPath names a value inside a spec by the steps that lead to it: a string
// for a member, an int for an item. The empty path is the spec itself.
type specPath []any

// to returns the path of a part of the value at p.
func (p specPath) to(steps ...any) specPath { return append(slices.Clip(p), steps...) }

var plainWord = regexp.MustCompile(`^[\w-]+$`)

// String writes the path as in stop_conditions[1].rounds; names that are not
// plain words are quoted.
func (p specPath) String() string {
	var b strings.Builder
	for _, step := range p {
		switch name, named := step.(string); {
		case !named:
			fmt.Fprintf(&b, "[%d]", step)
		case !plainWord.MatchString(name):
			fmt.Fprintf(&b, "[%q]", name)
		case b.Len() > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// find returns the member at p and true, an item being a member without a name.
// When there is none it returns what it is missing from, and false.
func (n *SpecNode) find(p specPath) (SpecMember, bool) {
	at := n.unnamed()
	for _, step := range p {
		next, ok := at.Value.child(step)
		if !ok {
			return at.Value.unnamed(), false
		}
		at = next
	}
	return at, true
}

func (n *SpecNode) child(step any) (SpecMember, bool) {
	if i, ok := step.(int); ok && i < len(n.Items) {
		return n.Items[i].unnamed(), true
	}
	for _, m := range n.Members {
		if m.Name == step {
			return m, true
		}
	}
	return SpecMember{}, false
}

func (n *SpecNode) unnamed() SpecMember { return SpecMember{Line: n.Line, Column: n.Column, Value: n} }
