package engine

import (
	"encoding/json"
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
	text, err := inference.ToJSON(n.plain())
	if err != nil {
		return "null" // of a number that is none, which SpecFromNode refuses
	}
	return text
}

func (n *SpecNode) plain() any {
	switch n.Kind {
	case StringNode:
		return n.Text
	case NumberNode:
		return json.Number(n.Text)
	case BoolNode:
		return n.Text == "true"
	case ListNode:
		items := make([]any, len(n.Items))
		for i, item := range n.Items {
			items[i] = item.plain()
		}
		return items
	case ObjectNode:
		members := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			members[m.Name] = m.Value.plain()
		}
		return members
	default:
		return nil
	}
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

func (c *treeCopy) copy(n *SpecNode, at *specPath, depth int) *SpecNode {
	c.nodes++
	switch {
	case c.broken:
		return nil
	case n == nil:
		return c.fail(position{}, at, "no value")
	case depth > maxSpecDepth:
		return c.fail(n.position(), nil, "nested deeper than %d levels", maxSpecDepth)
	case c.nodes > maxSpecNodes:
		return c.fail(n.position(), nil, "more than %d values", maxSpecNodes)
	}
	out := &SpecNode{Kind: n.Kind, Text: n.Text, Line: n.Line, Column: n.Column}
	switch n.Kind {
	case NullNode, StringNode:
		out.Text = strings.ToValidUTF8(n.Text, "\uFFFD")
	case BoolNode:
		if n.Text != "true" && n.Text != "false" {
			return c.fail(n.position(), at, "%.40q is neither true nor false", n.Text)
		}
	case NumberNode:
		if !isNumber(n.Text) {
			return c.fail(n.position(), at, "%.40q is not a number as JSON writes it", n.Text)
		}
	case ListNode:
		for i, item := range n.Items {
			out.Items = append(out.Items, c.copy(item, at.item(i), depth+1))
		}
	case ObjectNode:
		first := make(map[string]SpecMember, len(n.Members))
		for _, m := range n.Members {
			m.Name = strings.ToValidUTF8(m.Name, "\uFFFD")
			if earlier, twice := first[m.Name]; twice {
				c.faults.at(position{m.Line, m.Column}, at.field(m.Name), "field %q appears twice%s; keep one",
					m.Name, position{earlier.Line, earlier.Column}.phrase(", first at "))
				continue
			}
			first[m.Name] = m
			m.Value = c.copy(m.Value, at.field(m.Name), depth+1)
			out.Members = append(out.Members, m)
		}
	default:
		return c.fail(n.position(), at, "a node of unknown kind %d", n.Kind)
	}
	return out
}

func (c *treeCopy) fail(pos position, at *specPath, format string, args ...any) *SpecNode {
	c.broken = true
	c.faults.at(pos, at, format, args...)
	return nil
}

func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text)) && strings.TrimSpace(text) == text
}
