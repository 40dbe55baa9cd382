package engine

import (
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// NodeKind is the form of a SpecNode.
type NodeKind uint8

// The kinds. The zero kind is invalid, so that a forgotten one is noticed.
const (
	NullNode   = NodeKind(jsonpos.Null)
	BoolNode   = NodeKind(jsonpos.Bool)
	NumberNode = NodeKind(jsonpos.Number)
	StringNode = NodeKind(jsonpos.String)
	ListNode   = NodeKind(jsonpos.List)
	ObjectNode = NodeKind(jsonpos.Object)
)

// String returns the kind as error messages word it: "a string".
func (k NodeKind) String() string { return jsonpos.Kind(k).String() }

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
func (n *SpecNode) JSON() inference.JSON { return inference.JSON(nodeTree{}.of(n, 0).JSON()) }

// nodeTree turns a tree that a program built, which may be shared or cyclic, into
// one of the same shape that jsonpos checks.
type nodeTree map[*SpecNode]*jsonpos.Node

func (done nodeTree) of(n *SpecNode, depth int) *jsonpos.Node {
	if out := done[n]; out != nil || n == nil || depth > jsonpos.MaxDepth {
		return out // too deep a tree is refused whatever is missing from it
	}
	out := &jsonpos.Node{Kind: jsonpos.Kind(n.Kind), Text: n.Text, Line: n.Line, Column: n.Column}
	done[n] = out
	for _, item := range n.Items {
		out.Items = append(out.Items, done.of(item, depth+1))
	}
	for _, m := range n.Members {
		out.Members = append(out.Members, jsonpos.Member{
			Name: m.Name, Line: m.Line, Column: m.Column, Value: done.of(m.Value, depth+1)})
	}
	return out
}
