package exechook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds how deep a settings file may be nested.
const maxDepth = 64

// node is a JSON value and where it begins.
type node struct {
	kind    string // as errors word it: "a string"
	text    string // of a string, a number or a bool
	items   []node
	members []member
	offset  int
}

type member struct {
	name   string
	offset int
	value  node
}

// get returns the member of that name.
func (n node) get(name string) (node, bool) {
	for _, m := range n.members {
		if m.name == name {
			return m.value, true
		}
	}
	return node{}, false
}

// source is a text with a name, which turns offsets into lines and columns.
type source struct {
	file string
	data []byte
}

// place returns line and column of an offset, counted from 1, columns in characters.
func (s source) place(offset int) (line, column int) {
	before := s.data[:min(offset, len(s.data))]
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

func (s source) errorf(offset int, format string, args ...any) *SettingsError {
	e := &SettingsError{File: s.file, Msg: fmt.Sprintf(format, args...)}
	e.Line, e.Column = s.place(offset)
	return e
}

// reader builds nodes from JSON.
type reader struct {
	source
	dec *json.Decoder
}

// read returns the one value that the text holds.
func (s source) read() (node, error) {
	r := reader{s, json.NewDecoder(bytes.NewReader(s.data))}
	r.dec.UseNumber()
	n, err := r.value(0)
	if err != nil {
		return n, err
	}
	rest := r.next()
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return n, s.errorf(rest, "there is something after the settings; want one JSON object")
	}
	return n, nil
}

// next returns where the next token begins.
func (r *reader) next() int {
	at := int(r.dec.InputOffset())
	for at < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[at]) >= 0 {
		at++
	}
	return at
}

func (r *reader) token() (json.Token, int, error) {
	at := r.next()
	tok, err := r.dec.Token()
	if err == nil {
		return tok, at, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, at, r.errorf(len(r.data), "the file ends too early")
	}
	return nil, at, r.errorf(at, "not JSON: %v", err)
}

func (r *reader) value(depth int) (n node, err error) {
	tok, at, err := r.token()
	if err != nil {
		return n, err
	}
	if depth > maxDepth {
		return n, r.errorf(at, "nested deeper than %d levels", maxDepth)
	}
	n.offset = at
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return n, r.object(&n, depth)
		}
		return n, r.list(&n, depth)
	case string:
		n.kind, n.text = "a string", tok
	case json.Number:
		n.kind, n.text = "a number", tok.String()
	case bool:
		n.kind, n.text = "a bool", fmt.Sprint(tok)
	default:
		n.kind = "null"
	}
	return n, nil
}

func (r *reader) list(n *node, depth int) error {
	n.kind = "a list"
	for r.dec.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, _, err := r.token()
	return err
}

func (r *reader) object(n *node, depth int) error {
	n.kind = "an object"
	seen := map[string]bool{}
	for r.dec.More() {
		tok, at, err := r.token()
		if err != nil {
			return err
		}
		name, _ := tok.(string)
		if seen[name] {
			return r.errorf(at, "%q is there twice", name)
		}
		seen[name] = true
		value, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, at, value})
	}
	_, _, err := r.token()
	return err
}
