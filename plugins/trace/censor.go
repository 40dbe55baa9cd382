package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/ddd26017/fixpoint/internal/redact"
)

// line returns an event's line as the rules will have it, and whether it is another one.
func (c *censor) line(typ string, line []byte) ([]byte, bool, error) {
	suspect := c.suspects(line)
	// A byte that is no UTF-8 counts as the three of what stands for it.
	if !suspect && c.bounds.allow(len(line)) && !c.mayHide(line) && utf8.Valid(line) {
		return line, false, nil // as most are
	}
	return c.walk(typ, line, suspect)
}

// walk is line for one in which there may be something to hide or to cut.
func (c *censor) walk(typ string, line []byte, suspect bool) ([]byte, bool, error) {
	in, changed := line, false
	var keys keyParts
	if suspect && !c.bare {
		keys = keysIn(line)
	}
	for b := c.bounds; ; b = b.narrower() {
		p := pass{censor: c, in: in, bounds: b, suspect: suspect, keys: keys}
		p.value(shapes()[typ], 0)
		if p.err != nil {
			return nil, true, p.err
		}
		if changed = changed || p.changed; p.changed {
			line = p.out
		}
		if b.event <= 0 || len(line) <= b.event {
			return line, changed, nil
		}
		if b.value > 0 && b.value < narrowest {
			return nil, true, errTooLong
		}
	}
}

// allow reports whether nothing in a line of n bytes is too long.
func (b bounds) allow(n int) bool {
	within := func(limit int) bool { return limit <= 0 || n <= limit }
	return within(b.value) && within(b.element) && within(b.event)
}

// mayHide reports whether a line may have a member that is hidden: one of their names
// before a quotation mark, or one that is not written plainly.
func (c *censor) mayHide(line []byte) bool {
	if len(c.members) == 0 {
		return false
	}
	for at := 0; ; at++ {
		next := bytes.IndexByte(line[at:], '"')
		if next < 0 {
			return false
		}
		at += next
		end := at
		if c.disguised(line, at) {
			return true
		}
		for end > 0 && line[end-1] != '"' && plainByte(line[end-1]) == 0 {
			end--
		}
		if end > 0 && c.last[line[end-1]] {
			for _, name := range c.members {
				if endsWith(line[:end], name) {
					return true
				}
			}
		}
	}
}

// narrowest is how short the bounds may become to make an event fit.
const narrowest = 64

// narrower are bounds for an event that is too long with these.
func (b bounds) narrower() bounds {
	if b.value <= 0 {
		b.value = b.event
	}
	if b.element <= 0 {
		b.element = b.event
	}
	b.value, b.element = b.value/4, min(b.element, b.value/4)/2
	return b
}

// suspects reports whether there is anything to look for in the texts of a line.
func (c *censor) suspects(line []byte) bool {
	return len(c.secrets) > 0 || len(c.texts) > 0 || !c.bare && redact.Suspect(line) ||
		(!c.bare || len(c.members) > 0) && bytes.Contains(line, []byte(`\u`))
}

// deepest is how deep values may lie in one another. encoding/json goes as far.
const deepest = 10_000

// pass is one walk over a JSON text, which is sound, to a copy of it.
type pass struct {
	*censor
	in      []byte
	at      int
	out     []byte
	bounds  bounds
	suspect bool
	keys    keyParts
	inside  int  // how many texts with JSON in them this is in
	room    *int // bytes that may be walked over in vain, where there only may be JSON
	changed bool
	err     error
}

var errNotJSON = errors.New("trace: not JSON")

// peek returns the next byte that is no white space, 0 at the end.
func (p *pass) peek() byte {
	for ; p.at < len(p.in); p.at++ {
		switch b := p.in[p.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	if p.err == nil {
		p.err = errNotJSON
	}
	return 0
}

// value walks over a value. One that is free, and stands where it is not, is bounded as
// a whole.
func (p *pass) value(s *shape, depth int) {
	if depth > deepest {
		p.err = errNotJSON
		return
	}
	b := p.peek()
	switch {
	case p.err != nil:
	case b == '{':
		p.members(s, depth)
	case b == '[':
		p.elements(s, depth)
	case b == '"':
		p.text(s.of())
	default:
		p.literal(s.of())
	}
}

// root is value for one of a member or element, which is bounded where JSON that
// somebody made begins.
func (p *pass) root(parent, s *shape, depth int) {
	begin := len(p.out)
	p.value(s, depth)
	if p.err == nil && s.is(free) && parent != nil {
		p.bound(begin)
	}
}

// member returns the shape of a member. What an object has that its type does not is free.
func (s *shape) member(name []byte) *shape {
	if s == nil {
		return nil
	}
	return s.members[string(name)]
}

func (p *pass) members(s *shape, depth int) {
	p.put(1)
	var pair namedValue
	for first := true; ; first = false {
		switch p.peek() {
		case '}':
			p.put(1)
			return
		case ',':
			p.put(1)
			if p.peek() != '"' {
				p.err = errNotJSON
				return
			}
		default:
			if !first || p.peek() != '"' {
				p.err = errNotJSON
				return
			}
		}
		raw := p.token()
		if p.err != nil {
			return
		}
		hide := false
		if s.is(free) {
			name, ok := unquote(raw)
			if hide = ok && p.hidesMember(name); ok && p.suspect {
				if clean := p.censor.text(name); clean != name {
					raw, p.changed = quote(clean), true
				}
			}
		}
		p.out = append(p.out, raw...)
		if p.peek() != ':' {
			p.err = errNotJSON
			return
		}
		p.put(1)
		begin := len(p.out)
		p.root(s, s.member(raw[1:len(raw)-1]), depth+1)
		if p.err != nil {
			return
		}
		if hide {
			p.hideFrom(begin)
		} else if s.is(free) {
			pair.member(p, raw, begin)
		}
	}
}

func (p *pass) elements(s *shape, depth int) {
	p.put(1)
	begin, n, named, flag := 0, 0, false, false // of the last element
	for first := true; ; first = false {
		switch b := p.peek(); {
		case p.err != nil:
			return
		case b == ']':
			if n == 2 && named {
				p.hideFrom(begin) // a pair of a name and a value
			}
			p.put(1)
			return
		case b == ',' && !first:
			p.put(1)
		case !first:
			p.err = errNotJSON
			return
		}
		var element *shape
		if s != nil {
			element = s.element
		}
		begin = len(p.out)
		if p.root(s, element, depth+1); p.err != nil {
			return
		}
		if n++; !s.is(free) {
			continue
		}
		if flag {
			p.hideFrom(begin) // what a flag of a command is set to
		}
		value := p.out[begin:]
		secret := p.namesSecret(value)
		if flag = secret && bytes.HasPrefix(value, []byte(`"-`)) && bytes.IndexByte(value, '=') < 0; n == 1 {
			named = secret
		}
	}
}

// put copies the next bytes.
func (p *pass) put(n int) {
	p.out = append(p.out, p.in[p.at:p.at+n]...)
	p.at += n
}

// token takes the next string, with its quotes.
func (p *pass) token() []byte {
	for i := p.at + 1; i < len(p.in); i++ {
		switch p.in[i] {
		case '\\':
			i++
		case '"':
			raw := p.in[p.at : i+1]
			p.at = i + 1
			return raw
		}
	}
	p.err = errNotJSON
	return nil
}

// text walks over a string.
func (p *pass) text(f form) {
	at := p.at
	raw := p.token()
	if p.err != nil {
		return
	}
	limit := p.bounds.value
	if f == free {
		limit = p.bounds.element
	}
	long := limit > 0 && (len(raw)-2 > limit || 3*len(raw) > limit && !utf8.Valid(raw))
	if f == fixed || !long && !p.suspect && !p.nested(raw) {
		p.out = append(p.out, raw...)
		return
	}
	s, ok := unquote(raw)
	if !ok {
		p.err = errNotJSON
		return
	}
	clean := s
	clean = p.keys.in(at, clean)
	if p.nested(raw) {
		clean = p.within(clean)
	}
	if p.suspect {
		clean = p.censor.text(p.keys.body(clean))
	}
	switch {
	case limit > 0 && len(clean) > limit && f == free:
		p.out, p.changed = append(p.out, cut(clean, len(clean), limit)...), true
	case limit > 0 && len(clean) > limit && !strings.HasSuffix(clean, cutEnd):
		p.out, p.changed = append(p.out, quote(start(clean, limit)+cutText(len(clean)))...), true
	case clean != s:
		p.out, p.changed = append(p.out, quote(clean)...), true
	default:
		p.out = append(p.out, raw...)
	}
}

// mostNested is how often JSON may be a text in JSON to be looked into.
const mostNested = 4

// nested reports whether there may be members in the JSON that a string has in it.
func (p *pass) nested(raw []byte) bool {
	if len(p.censor.members) == 0 || p.inside >= mostNested || bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	return p.mayHide(raw) || bytes.Contains(raw, []byte(`\u`)) || p.suspect && bytes.Contains(raw, []byte(`\"`))
}

// literal walks over a number or null, true, false.
func (p *pass) literal(f form) {
	end := p.at
	for end < len(p.in) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(p.in[end])) {
		end++
	}
	if end == p.at {
		p.err = errNotJSON
		return
	}
	raw := p.in[p.at:end]
	p.at = end
	if f == free && len(p.secrets) > 0 {
		if clean := p.hide.In(string(raw)); clean != string(raw) {
			raw, p.changed = quote(clean), true
		}
	}
	p.out = append(p.out, raw...)
}

// unquote returns the text of a JSON string.
func unquote(raw []byte) (s string, ok bool) {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), true
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// quote returns a text as a JSON string, with <, > and & left readable.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return []byte(`""`) // a text can always be written
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
