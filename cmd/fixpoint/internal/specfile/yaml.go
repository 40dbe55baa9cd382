package specfile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/ddd26017/fixpoint/engine"
)

// ParseYAML reads agent specs from YAML: one, a list, or one in each document.
// The display name is for errors.
func ParseYAML(display string, data []byte) (specs []engine.AgentSpec, err error) {
	root, err := tree(data)
	if err != nil {
		var fault *engine.SpecError
		if errors.As(err, &fault) {
			fault.File = display
		}
		return nil, err
	}
	return engine.SpecsFromNode(display, root)
}

// tree parses YAML into the engine's form. The error is a *engine.SpecError.
func tree(data []byte) (n *engine.SpecNode, err error) {
	// The parser is not ours, and a spec file may hold anything.
	defer func() {
		if v := recover(); v != nil {
			n, err = nil, &engine.SpecError{Line: 1, Column: 1, Msg: fmt.Sprintf("the YAML cannot be parsed: %v", v)}
		}
	}()
	file, err := parser.ParseBytes(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), 0)
	if err != nil {
		return nil, syntaxFault(err)
	}
	list := &engine.SpecNode{Kind: engine.ListNode, Line: 1, Column: 1}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			if doc.Start == nil {
				continue
			}
			// Not passed over: the parser drops what comes behind such a document.
			return nil, &engine.SpecError{Line: doc.Start.Position.Line, Column: doc.Start.Position.Column,
				Msg: "the document that begins here is empty; leave it out"}
		}
		c := converter{anchors: map[string]*engine.SpecNode{}}
		item := c.node(doc.Body)
		if c.fault != nil {
			return nil, c.fault
		}
		list.Items = append(list.Items, item)
	}
	switch len(list.Items) {
	case 0:
		return nil, &engine.SpecError{Line: 1, Column: 1, Msg: "the file is empty"}
	case 1:
		return list.Items[0], nil
	}
	return list, nil
}

func syntaxFault(err error) *engine.SpecError {
	fault := &engine.SpecError{Line: 1, Column: 1, Msg: "not YAML: " + err.Error(), Err: err}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		fault.Msg = "not YAML: " + syntax.GetMessage()
		if t := syntax.GetToken(); t != nil && t.Position != nil {
			fault.Line, fault.Column = t.Position.Line, t.Position.Column
		}
	}
	return fault
}

// converter turns one document into a tree. Its first fault ends it.
type converter struct {
	anchors map[string]*engine.SpecNode
	depth   int
	fault   *engine.SpecError
}

// maxDepth bounds the nesting; it is above what the engine accepts, which has a
// better error for it.
const maxDepth = 200

func (c *converter) fail(n ast.Node, format string, args ...any) *engine.SpecNode {
	if c.fault == nil {
		out := at(n)
		c.fault = &engine.SpecError{Line: out.Line, Column: out.Column, Msg: fmt.Sprintf(format, args...)}
	}
	return nil
}

// at returns a node without a value at the place of n.
func at(n ast.Node) *engine.SpecNode {
	var t *token.Token
	switch n := n.(type) {
	case *ast.MappingNode:
		t = n.Start
		if len(n.Values) > 0 && !n.IsFlowStyle {
			t = n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		t = n.Key.GetToken()
	default:
		t = n.GetToken()
	}
	if t == nil || t.Position == nil {
		return &engine.SpecNode{}
	}
	return &engine.SpecNode{Line: t.Position.Line, Column: t.Position.Column}
}

func (c *converter) node(n ast.Node) *engine.SpecNode {
	if c.depth++; c.depth > maxDepth {
		return c.fail(n, "nested deeper than %d levels", maxDepth)
	}
	defer func() { c.depth-- }()
	if n == nil || c.fault != nil {
		return &engine.SpecNode{Kind: engine.NullNode}
	}
	out := at(n)
	switch n := n.(type) {
	case *ast.NullNode:
		out.Kind = engine.NullNode
	case *ast.BoolNode:
		out.Kind, out.Text = engine.BoolNode, strconv.FormatBool(n.Value)
	case *ast.IntegerNode:
		out.Kind, out.Text = engine.NumberNode, fmt.Sprint(n.Value)
	case *ast.InfinityNode, *ast.NanNode:
		return c.fail(n, "%s is no number as JSON has it", n.GetToken().Value)
	case *ast.FloatNode:
		if math.IsInf(n.Value, 0) {
			return c.fail(n, "%s is too large a number", n.Token.Value)
		}
		out.Kind, out.Text = engine.NumberNode, strconv.FormatFloat(n.Value, 'g', -1, 64)
	case *ast.StringNode:
		out.Kind, out.Text = engine.StringNode, n.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = engine.StringNode, n.Value.Value
	case *ast.SequenceNode:
		out.Kind = engine.ListNode
		for _, item := range n.Values {
			out.Items = append(out.Items, c.node(item))
		}
	case *ast.MappingNode:
		out.Kind = engine.ObjectNode
		for _, m := range n.Values {
			c.member(out, m)
		}
	case *ast.MappingValueNode:
		out.Kind = engine.ObjectNode
		c.member(out, n)
	case *ast.AnchorNode:
		// Known by its name only once it is complete, so that it cannot hold itself.
		value := c.node(n.Value)
		c.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		value, ok := c.anchors[name]
		if !ok {
			return c.fail(n, "no anchor &%s before this alias", name)
		}
		return value
	case *ast.TagNode:
		return c.fail(n, "the tag %s is not used in specs; leave it out", n.Start.Value)
	default:
		return c.fail(n, "%s is not used in specs", n.Type())
	}
	return out
}

func (c *converter) member(out *engine.SpecNode, m *ast.MappingValueNode) {
	place := at(m.Key)
	switch key := m.Key.(type) {
	case *ast.StringNode:
		out.Members = append(out.Members, engine.SpecMember{
			Name: key.Value, Line: place.Line, Column: place.Column, Value: c.node(m.Value)})
	case *ast.MergeKeyNode:
		c.fail(m.Key, "merge keys are not used in specs; write the fields out")
	default:
		c.fail(m.Key, "the name of a field is a text; put it in quotes")
	}
}
