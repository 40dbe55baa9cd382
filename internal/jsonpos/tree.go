package jsonpos

import (
	"fmt"
	"regexp"
	"strings"
)

// Bounds of a tree. They are far above anything that people write and keep a
// hostile or cyclic tree from taking the process down.
const (
	MaxDepth = 100 // of lists and objects in each other
	MaxNodes = 100_000
)

// Tree makes Root a copy of n that nobody else holds, and reports what is wrong
// with n by itself: a text that could not be read, a value that is none, a name
// that appears twice, of which the first is kept. It returns false, and sets no
// Root, when the tree as a whole is unusable. It only reads n, which may be nil,
// malformed, shared or cyclic.
func (c *Check) Tree(n *Node) bool {
	t := treeCopy{check: c}
	root := t.copy(n, nil)
	if t.broken {
		return false
	}
	c.Root = root
	return true
}

type treeCopy struct {
	check  *Check
	nodes  int
	broken bool // the tree as a whole is unusable
}

func (t *treeCopy) copy(n *Node, at Path) *Node {
	if n == nil {
		n = &Node{fault: "no value"}
	}
	fail := func(at Path, format string, args ...any) {
		t.broken = true
		t.check.at(n.Line, n.Column, at, fmt.Sprintf(format, args...))
	}
	t.nodes++
	switch {
	case t.broken:
	case n.fault != "":
		fail(at, "%s", n.fault)
	case t.nodes > MaxNodes:
		fail(nil, "more than %d values", MaxNodes)
	case len(at) == MaxDepth && n.Kind >= List:
		fail(nil, "nested deeper than %d levels", MaxDepth)
	case n.Kind < Null || n.Kind > Object:
		fail(at, "a node of unknown kind %d", n.Kind)
	case n.Kind == Bool && n.Text != "true" && n.Text != "false":
		fail(at, "%.40q is neither true nor false", n.Text)
	case n.Kind == Number && !numberText.MatchString(n.Text):
		fail(at, "%.40q is not a number as JSON writes it", n.Text)
	}
	if t.broken {
		return nil
	}
	out := &Node{Kind: n.Kind, Text: strings.ToValidUTF8(n.Text, "\uFFFD"), Line: n.Line, Column: n.Column}
	switch n.Kind {
	case List:
		for i, item := range n.Items {
			out.Items = append(out.Items, t.copy(item, at.To(i)))
		}
	case Object:
		t.members(out, n, at)
	}
	return out
}

func (t *treeCopy) members(out, n *Node, at Path) {
	first := map[string]Member{}
	for _, m := range n.Members {
		m.Name = strings.ToValidUTF8(m.Name, "\uFFFD")
		if earlier, twice := first[m.Name]; twice {
			t.check.at(m.Line, m.Column, at.To(m.Name),
				fmt.Sprintf("field %q appears twice%s; keep one", m.Name, At(", first at ", earlier.Line, earlier.Column)))
			continue
		}
		first[m.Name] = m
		m.Value = t.copy(m.Value, at.To(m.Name))
		out.Members = append(out.Members, m)
	}
}

var numberText = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)
