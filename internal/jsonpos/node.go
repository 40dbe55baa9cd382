package jsonpos

import "encoding/json"

// Kind is the form of a Node.
type Kind uint8

// The kinds. The zero kind is invalid, so that a forgotten one is noticed.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	List
	Object
)

// String returns the kind as error messages word it: "a string".
func (k Kind) String() string {
	names := [...]string{"nothing", "null", "true or false", "a number", "a string", "a list", "an object"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Node is one value together with its place. Nodes that came out of Check.Tree are
// not changed any more, and safe for concurrent use.
type Node struct {
	Kind Kind
	// Text is the string, the number as JSON writes it, or "true" or "false".
	Text    string
	Items   []*Node  // of a list
	Members []Member // of an object, as written
	// Line and Column say where the value begins, counted from 1, columns in
	// characters. Zero means unknown.
	Line, Column int

	fault string // why the text could not be read; the node has no kind then
}

// Member is one named value of an object.
type Member struct {
	Name         string
	Line, Column int // where the name begins
	Value        *Node
}

// JSON returns the node as canonical JSON: compact, members sorted by name,
// numbers as written, <, > and & readable. The node must be sound, as Check.Tree
// makes it; a number that is none becomes null.
func (n *Node) JSON() string {
	var plain any
	switch n.Kind {
	case String:
		plain = n.Text
	case Bool, Number:
		plain = json.RawMessage(n.Text)
	case List:
		items := []json.RawMessage{}
		for _, item := range n.Items {
			items = append(items, json.RawMessage(item.JSON()))
		}
		plain = items
	case Object:
		members := map[string]json.RawMessage{}
		for _, m := range n.Members {
			members[m.Name] = json.RawMessage(m.Value.JSON())
		}
		plain = members
	}
	text, err := Encode(plain)
	if err != nil {
		return "null"
	}
	return text
}
