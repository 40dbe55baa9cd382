package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseSpec reads an agent spec from JSON. The name of the file is for errors
// only. It is strict: unknown and repeated fields, wrong types and values that
// no engine could accept are errors, each a *SpecError with its position, all
// joined; the spec is then zero. Whether plugins, tools, sections, models and
// agents exist is checked by the engine that the spec is given to.
func ParseSpec(file string, data []byte) (AgentSpec, error) {
	return SpecFromNode(file, parseNode(data))
}

// ParseSpecs reads one agent spec or a list of them, as ParseSpec does. Two
// specs with one id are an error. One faulty spec fails them all.
func ParseSpecs(file string, data []byte) ([]AgentSpec, error) {
	return SpecsFromNode(file, parseNode(data))
}

// SpecFromNode reads an agent spec from a tree, as ParseSpec does from JSON. The
// tree is only read.
func SpecFromNode(file string, n *SpecNode) (AgentSpec, error) {
	s, f := readSpec(file, n)
	if err := f.err(); err != nil {
		return AgentSpec{}, err
	}
	return s, nil
}

// SpecsFromNode reads one agent spec or a list of them from a tree, as
// ParseSpecs does from JSON. The tree is only read.
func SpecsFromNode(file string, n *SpecNode) ([]AgentSpec, error) {
	items := []*SpecNode{n}
	if n != nil && n.Kind == ListNode {
		items = n.Items
	}
	var specs []AgentSpec
	all := &faults{}
	first := map[string]position{}
	for _, item := range items {
		s, f := readSpec(file, item)
		id := f.find(specPath{"id"}).Value
		if earlier, twice := first[s.ID]; twice && s.ID != "" {
			f.value(specPath{"id"}, "a second agent with the id %q; the first is at %s%s", s.ID, file, earlier.phrase(":"))
		} else {
			first[s.ID] = position{id.Line, id.Column}
		}
		specs = append(specs, s)
		all.list = append(all.list, f.list...)
	}
	if err := all.err(); err != nil {
		return nil, err
	}
	return specs, nil
}

// readSpec returns what could be read of a spec, and its faults.
func readSpec(file string, n *SpecNode) (AgentSpec, *faults) {
	f := &faults{source: specSource{file: file}}
	c := treeCopy{faults: f}
	root := c.copy(n, nil)
	if c.broken {
		return AgentSpec{}, f
	}
	f.source.root = root
	s := AgentSpec{source: f.source}
	if root.Kind == ListNode {
		f.value(nil, "want an object, got a list; read several specs with ParseSpecs")
		return s, f
	}
	shapeCheck{faults: f}.fit(reflect.TypeFor[specText](), root, nil)
	for _, m := range root.Members {
		// What does not fit was reported; the rest is read in spite of it, so that
		// its faults are reported too.
		one := &SpecNode{Kind: ObjectNode, Members: []SpecMember{m}}
		_ = json.Unmarshal([]byte(one.JSON()), (*specText)(&s))
	}
	for i, c := range s.StopConditions {
		at := specPath{"stop_conditions", i}
		if given, ok := root.find(at); ok {
			for _, m := range given.Value.Members {
				f.foreign(c.Type, m.Name, at)
			}
		}
	}
	f.agent = s.ID
	s.rules(f)
	return s, f
}

// parseNode makes a tree of one JSON value. A text that cannot be read becomes a
// node that says why.
func parseNode(data []byte) *SpecNode {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // the mark that some editors put in front
	p := &jsonText{data: data, line: 1, column: 1, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	for i, r := range string(data) {
		if r == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\uFFFD")) {
			return p.node(i, "the text is not UTF-8; save it as UTF-8")
		}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		offset := len(data)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && !strings.HasPrefix(syntax.Error(), "unexpected end") {
			offset = int(syntax.Offset) - 1
		}
		return p.node(offset, fmt.Sprintf("not JSON: %v", err))
	}
	return p.value()
}

// jsonText walks through a text that is known to be JSON and counts lines.
type jsonText struct {
	dec          *json.Decoder
	data         []byte
	offset       int // of the place that line and column stand for
	line, column int
}

// node returns a node without a value yet, at offset, which never decreases.
func (p *jsonText) node(offset int, fault string) *SpecNode {
	passed := p.data[p.offset:offset]
	p.offset = offset
	if lines := bytes.Count(passed, []byte("\n")); lines > 0 {
		p.line, p.column = p.line+lines, 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	p.column += utf8.RuneCount(passed)
	return &SpecNode{Line: p.line, Column: p.column, fault: fault}
}

func (p *jsonText) token() (json.Token, *SpecNode) {
	rest := bytes.TrimLeft(p.data[p.dec.InputOffset():], " \t\r\n,:")
	token, _ := p.dec.Token() // the text was found to be valid
	return token, p.node(len(p.data)-len(rest), "")
}

func (p *jsonText) value() *SpecNode {
	token, n := p.token()
	switch v := token.(type) {
	case nil:
		n.Kind = NullNode
	case bool:
		n.Kind, n.Text = BoolNode, strconv.FormatBool(v)
	case json.Number:
		n.Kind, n.Text = NumberNode, v.String()
	case string:
		n.Kind, n.Text = StringNode, v
	case json.Delim:
		n.Kind = ListNode
		if v == '{' {
			n.Kind = ObjectNode
		}
		for p.dec.More() {
			if n.Kind == ListNode {
				n.Items = append(n.Items, p.value())
				continue
			}
			name, at := p.token()
			n.Members = append(n.Members, SpecMember{name.(string), at.Line, at.Column, p.value()})
		}
		p.token()
	}
	return n
}
