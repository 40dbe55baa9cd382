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
	n, err := parseNode(file, data)
	if err != nil {
		return AgentSpec{}, err
	}
	return SpecFromNode(file, n)
}

// ParseSpecs reads one agent spec or a list of them, as ParseSpec does. Two
// specs with one id are an error. One faulty spec fails them all.
func ParseSpecs(file string, data []byte) ([]AgentSpec, error) {
	n, err := parseNode(file, data)
	if err != nil {
		return nil, err
	}
	return SpecsFromNode(file, n)
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

// readSpec returns what could be read of a spec, and its faults.
func readSpec(file string, n *SpecNode) (AgentSpec, *faults) {
	f := &faults{source: &specSource{file: file}}
	c := treeCopy{faults: f}
	root := c.copy(n, nil, 0)
	if c.broken {
		return AgentSpec{}, f
	}
	f.source.root = root
	s := AgentSpec{source: f.source}
	if root.Kind == ListNode {
		f.value(nil, "want an object, got a list; read several specs with ParseSpecs")
		return s, f
	}
	form := reflect.TypeFor[specText]()
	shapeCheck{faults: f}.fit(form, root, nil)
	_, known := jsonFields(form)
	for _, m := range root.Members {
		if known[m.Name] == nil { // encoding/json would also take it in another case
			continue
		}
		// What does not fit was reported; the rest is read in spite of it, so that
		// its faults are reported too.
		one := &SpecNode{Kind: ObjectNode, Members: []SpecMember{m}}
		_ = json.Unmarshal([]byte(one.JSON()), (*specText)(&s))
	}
	for i, c := range s.StopConditions {
		at := (*specPath)(nil).field("stop_conditions").item(i)
		if n, _ := root.find(at); n != nil {
			for _, m := range n.Members {
				f.foreign(c.Type, m.Name, at)
			}
		}
	}
	f.agent = s.ID
	s.rules(f)
	return s, f
}

// SpecsFromNode reads one agent spec or a list of them from a tree, as
// ParseSpecs does from JSON. The tree is only read.
func SpecsFromNode(file string, n *SpecNode) ([]AgentSpec, error) {
	items := []*SpecNode{n}
	if n != nil && n.Kind == ListNode {
		items = n.Items
	}
	specs := make([]AgentSpec, len(items))
	all := &faults{}
	first := map[string]AgentSpec{}
	for i, item := range items {
		s, f := readSpec(file, item)
		if earlier, twice := first[s.ID]; twice && s.ID != "" {
			_, pos := earlier.source.root.locate(idPath)
			f.value(idPath, "a second agent with the id %q; the first is at %s%s", s.ID, file, pos.phrase(":"))
		} else {
			first[s.ID] = s
		}
		specs[i] = s
		all.list = append(all.list, f.list...)
	}
	if err := all.err(); err != nil {
		return nil, err
	}
	return specs, nil
}

var idPath = (*specPath)(nil).field("id")

// parseNode makes a tree of one JSON value.
func parseNode(file string, data []byte) (*SpecNode, *SpecError) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // the mark that some editors put in front
	p := &jsonText{data: data, line: 1, column: 1}
	fail := func(offset int, msg string) *SpecError {
		pos := p.at(offset)
		return &SpecError{File: file, Line: pos.line, Column: pos.column, Msg: msg}
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, fail(i, "the text is not UTF-8; save it as UTF-8")
		}
		i += size
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		offset := len(data)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && !strings.HasPrefix(syntax.Error(), "unexpected end") {
			offset = max(0, int(syntax.Offset)-1)
		}
		return nil, fail(offset, fmt.Sprintf("not JSON: %v", err))
	}
	p.dec = json.NewDecoder(bytes.NewReader(data))
	p.dec.UseNumber()
	n, deep := p.value(0)
	if deep {
		return nil, fail(p.offset, fmt.Sprintf("nested deeper than %d levels", maxSpecDepth))
	}
	return n, nil
}

// jsonText walks through a text that is known to be JSON and counts lines.
type jsonText struct {
	dec          *json.Decoder
	data         []byte
	offset       int // of the place that line and column stand for
	line, column int
}

// at returns the position of offset, which never decreases.
func (p *jsonText) at(offset int) position {
	for p.offset < min(offset, len(p.data)) {
		r, size := utf8.DecodeRune(p.data[p.offset:])
		p.offset += size
		p.column++
		if r == '\n' {
			p.line, p.column = p.line+1, 1
		}
	}
	return position{p.line, p.column}
}

func (p *jsonText) token() (json.Token, position) {
	start := int(p.dec.InputOffset())
	token, _ := p.dec.Token() // the text was found to be valid
	for start < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[start]) >= 0 {
		start++
	}
	return token, p.at(start)
}

func (p *jsonText) value(depth int) (n *SpecNode, tooDeep bool) {
	token, pos := p.token()
	n = &SpecNode{Line: pos.line, Column: pos.column}
	switch v := token.(type) {
	case string:
		n.Kind, n.Text = StringNode, v
	case json.Number:
		n.Kind, n.Text = NumberNode, v.String()
	case bool:
		n.Kind, n.Text = BoolNode, strconv.FormatBool(v)
	case json.Delim:
		if depth == maxSpecDepth {
			return nil, true
		}
		n.Kind = ListNode
		if v == '{' {
			n.Kind = ObjectNode
		}
		for p.dec.More() {
			var m SpecMember
			if n.Kind == ObjectNode {
				name, at := p.token()
				m.Name, m.Line, m.Column = name.(string), at.line, at.column
			}
			if m.Value, tooDeep = p.value(depth + 1); tooDeep {
				return nil, true
			}
			if n.Kind == ObjectNode {
				n.Members = append(n.Members, m)
			} else {
				n.Items = append(n.Items, m.Value)
			}
		}
		p.token()
	default:
		n.Kind = NullNode
	}
	return n, false
}
