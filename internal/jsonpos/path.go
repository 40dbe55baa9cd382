package jsonpos

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Path names a value inside a tree by the steps that lead to it: a string for a
// member, an int for an item. The empty path is the root.
type Path []any

// To returns the path of a part of the value at p. It leaves p as it is.
func (p Path) To(steps ...any) Path { return append(slices.Clip(p), steps...) }

var plainWord = regexp.MustCompile(`^[\w-]+$`)

// String writes the path as in stop_conditions[1].rounds; names that are not
// plain words are quoted.
func (p Path) String() string {
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

// At returns a line and column after a lead, or "" when they are unknown.
func At(lead string, line, column int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d:%d", lead, line, column)
}

// Find returns the member at p and true, an item being a member without a name.
// When there is none it returns what it is missing from, and false.
func (n *Node) Find(p Path) (Member, bool) {
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

func (n *Node) child(step any) (Member, bool) {
	if i, ok := step.(int); ok && i < len(n.Items) {
		return n.Items[i].unnamed(), true
	}
	for _, m := range n.Members {
		if m.Name == step {
			return m, true
		}
	}
	return Member{}, false
}

func (n *Node) unnamed() Member { return Member{Line: n.Line, Column: n.Column, Value: n} }
