package trace

import (
	"slices"
	"strings"
)

// hideFrom hides the value that the output ends with, if it tells something.
func (p *pass) hideFrom(begin int) {
	if worthHiding(p.out[begin:]) {
		p.out, p.changed = append(p.out[:begin], hiddenValue...), true
	}
}

// namesSecret reports whether a value is a text that hidden members are called by.
func (p *pass) namesSecret(value []byte) bool {
	if len(value) < 2 || value[0] != '"' {
		return false
	}
	name, ok := unquote(value)
	return ok && p.hidesMember(name)
}

// namedValue is an object that has a name and a value as members.
type namedValue struct {
	secret bool // the name is one of those that are hidden
	begin  int  // of the value in the output, 0 if there was none yet
	end    int
}

// member takes in a member that was written from begin on.
func (n *namedValue) member(p *pass, name []byte, begin int) {
	switch strings.ToLower(string(name)) {
	case `"name"`, `"key"`:
		if n.secret = n.secret || p.namesSecret(p.out[begin:]); n.secret && n.begin > 0 {
			if worthHiding(p.out[n.begin:n.end]) {
				p.out, p.changed = slices.Replace(p.out, n.begin, n.end, []byte(hiddenValue)...), true
			}
			n.begin = 0
		}
	case `"value"`:
		if n.secret {
			p.hideFrom(begin)
		} else if n.begin == 0 {
			n.begin, n.end = begin, len(p.out)
		}
	}
}

// worthHiding reports whether a value tells something.
func worthHiding(value []byte) bool {
	switch string(value) {
	case "null", "true", "false", `""`, "{}", "[]", hiddenValue:
		return false
	}
	return true
}
