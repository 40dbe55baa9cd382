package engine

import (
	"strconv"
	"strings"
)

// position is a place in a text; the zero position is unknown.
type position struct{ line, column int }

func (n *SpecNode) position() position { return position{n.Line, n.Column} }

// phrase returns the position after a lead, or "" when it is unknown.
func (p position) phrase(lead string) string {
	if p.line == 0 {
		return ""
	}
	return lead + strconv.Itoa(p.line) + ":" + strconv.Itoa(p.column)
}

// specPath names a value inside a spec; nil is the spec itself. Paths are built
// for every value that is looked at, so they are linked and written out only for
// an error.
type specPath struct {
	up    *specPath
	name  string
	index int // of a list's item; -1 for a member
}

func (p *specPath) field(name string) *specPath { return &specPath{p, name, -1} }
func (p *specPath) item(i int) *specPath        { return &specPath{p, "", i} }

// String writes the path as in stop_conditions[1].rounds; names that are not
// plain words are quoted.
func (p *specPath) String() string {
	if p == nil {
		return ""
	}
	up := p.up.String()
	switch {
	case p.index >= 0:
		return up + "[" + strconv.Itoa(p.index) + "]"
	case !isWord(p.name):
		return up + "[" + strconv.Quote(p.name) + "]"
	case up == "":
		return p.name
	}
	return up + "." + p.name
}

func isWord(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// locate returns where the value at p is written, and where its name is. For a
// value that is missing both are the place of what it is missing from.
func (n *SpecNode) locate(p *specPath) (name, value position) {
	node, name := n.find(p)
	if node == nil {
		return name, name
	}
	return name, node.position()
}

// find returns the node at p and where its name, or the node itself if it has
// none, is written. Without such a node it returns nil and the nearest place.
func (n *SpecNode) find(p *specPath) (*SpecNode, position) {
	if n == nil {
		return nil, position{}
	}
	if p == nil {
		return n, n.position()
	}
	parent, at := n.find(p.up)
	if parent == nil {
		return nil, at
	}
	if p.index >= 0 && p.index < len(parent.Items) {
		item := parent.Items[p.index]
		return item, item.position()
	}
	for _, m := range parent.Members {
		if p.index < 0 && m.Name == p.name {
			return m.Value, position{m.Line, m.Column}
		}
	}
	return nil, parent.position()
}
