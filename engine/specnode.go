package engine

import (
	"regexp"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// NodeKind is the form of a SpecNode.
type NodeKind uint8

// The kinds. The zero kind is invalid, so that a forgotten one is noticed.
const (
	NullNode NodeKind = iota + 1
	BoolNode
	NumberNode
	StringNode
	ListNode
	ObjectNode
)

// String returns the kind as error messages word it: "a string".
func (k NodeKind) String() string {
	names := [...]string{"nothing", "null", "true or false", "a number", "a string", "a list", "an object"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// SpecNode is one value of a spec's text together with its place. It is what the
// text forms of a spec have in common: ParseSpec makes it of JSON, and a program
// that reads another form, such as YAML, builds it itself and calls SpecFromNode.
type SpecNode struct {
	Kind NodeKind
	// Text is the string, the number as JSON writes it, or "true" or "false".
	Text    string
	Items   []*SpecNode  // of a list
	Members []SpecMember // of an object, as written; a repeated name is reported by SpecFromNode
	// Line and Column say where the value begins, counted from 1, columns in
	// characters. Zero means unknown.
	Line, Column int

	fault string // why the text could not be read; the node has no kind then
}

// SpecMember is one named value of an object.
type SpecMember struct {
	Name         string
	Line, Column int // where the name begins
	Value        *SpecNode
}

// JSON returns the node as canonical JSON: compact, members sorted by name,
// numbers as written. It must be a tree that SpecFromNode would accept.
func (n *SpecNode) JSON() inference.JSON {
	var plain any
	switch n.Kind {
	case StringNode:
		plain = n.Text
	case BoolNode, NumberNode:
		plain = inference.JSON(n.Text)
	case ListNode:
		items := []inference.JSON{}
		for _, item := range n.Items {
			items = append(items, item.JSON())
		}
		plain = items
	case ObjectNode:
		members := map[string]inference.JSON{}
		for _, m := range n.Members {
			members[m.Name] = m.Value.JSON()
		}
		plain = members
	}
	text, err := inference.ToJSON(plain)
	if err != nil {
		return "null" // of a number that is none, which SpecFromNode refuses
	}
	return text
}

// Bounds of a spec's text. They are far above any real spec and keep a hostile
// or cyclic tree from taking the process down.
const (
	maxSpecDepth = 100
	maxSpecNodes = 100_000
)

// treeCopy copies a tree that may be malformed, shared or cyclic into one that
// is none of this and that nobody else holds.
type treeCopy struct {
	faults *faults
	nodes  int
	broken bool // the tree as a whole is unusable
}

func (c *treeCopy) copy(n *SpecNode, at specPath) *SpecNode {
	if n == nil {
		n = &SpecNode{fault: "no value"}
	}
	fail := func(at specPath, format string, args ...any) {
		c.broken = true
		c.faults.at(position{n.Line, n.Column}, at, format, args...)
	}
	c.nodes++
	switch {
	case c.broken:
	case n.fault != "":
		fail(at, "%s", n.fault)
	case c.nodes > maxSpecNodes:
		fail(nil, "more than %d values", maxSpecNodes)
	case len(at) == maxSpecDepth && n.Kind >= ListNode:
		fail(nil, "nested deeper than %d levels", maxSpecDepth)
	case n.Kind < NullNode || n.Kind > ObjectNode:
		fail(at, "a node of unknown kind %d", n.Kind)
	case n.Kind == BoolNode && n.Text != "true" && n.Text != "false":
		fail(at, "%.40q is neither true nor false", n.Text)
	case n.Kind == NumberNode && !numberText.MatchString(n.Text):
		fail(at, "%.40q is not a number as JSON writes it", n.Text)
	}
	if c.broken {
		return nil
	}
	out := &SpecNode{Kind: n.Kind, Text: strings.ToValidUTF8(n.Text, "\uFFFD"), Line: n.Line, Column: n.Column}
	switch n.Kind {
	case ListNode:
		for i, item := range n.Items {
			out.Items = append(out.Items, c.copy(item, at.to(i)))
		}
	case ObjectNode:
		first := map[string]position{}
		for _, m := range n.Members {
			m.Name = strings.ToValidUTF8(m.Name, "\uFFFD")
			here := position{m.Line, m.Column}
			if earlier, twice := first[m.Name]; twice {
				c.faults.at(here, at.to(m.Name), "field %q appears twice%s; keep one", m.Name, earlier.phrase(", first at "))
				continue
			}
			first[m.Name] = here
			m.Value = c.copy(m.Value, at.to(m.Name))
			out.Members = append(out.Members, m)
		}
	}
	return out
}

var numberText = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)
