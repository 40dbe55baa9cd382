package jsonpos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse makes a tree of one JSON value, which may start with a byte order mark.
// A text that cannot be read becomes a node that says why, for Check.Tree to
// report. Repeated names are kept, for the same reason. It does not keep data.
func Parse(data []byte) *Node {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // the mark that some editors put in front
	p := &parser{data: data, line: 1, column: 1, dec: json.NewDecoder(bytes.NewReader(data))}
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

// parser walks through a text that is known to be JSON and counts lines.
type parser struct {
	dec          *json.Decoder
	data         []byte
	offset       int // of the place that line and column stand for
	line, column int
}

// node returns a node without a value yet, at offset, which never decreases.
func (p *parser) node(offset int, fault string) *Node {
	passed := p.data[p.offset:offset]
	p.offset = offset
	if lines := bytes.Count(passed, []byte("\n")); lines > 0 {
		p.line, p.column = p.line+lines, 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	p.column += utf8.RuneCount(passed)
	return &Node{Line: p.line, Column: p.column, fault: fault}
}

func (p *parser) token() (json.Token, *Node) {
	rest := bytes.TrimLeft(p.data[p.dec.InputOffset():], " \t\r\n,:")
	token, _ := p.dec.Token() // the text was found to be valid
	return token, p.node(len(p.data)-len(rest), "")
}

func (p *parser) value() *Node {
	token, n := p.token()
	switch v := token.(type) {
	case nil:
		n.Kind = Null
	case bool:
		n.Kind, n.Text = Bool, strconv.FormatBool(v)
	case json.Number:
		n.Kind, n.Text = Number, v.String()
	case string:
		n.Kind, n.Text = String, v
	case json.Delim:
		n.Kind = List
		if v == '{' {
			n.Kind = Object
		}
		for p.dec.More() {
			if n.Kind == List {
				n.Items = append(n.Items, p.value())
				continue
			}
			name, at := p.token()
			n.Members = append(n.Members, Member{name.(string), at.Line, at.Column, p.value()})
		}
		p.token()
	}
	return n
}
