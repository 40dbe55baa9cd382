package trace

import (
	"math/bits"
	"strconv"
	"strings"
)

// whole returns a text that stands by itself without what is hidden.
func (c *censor) whole(s string) string {
	if c.mayHave(s) {
		p := pass{censor: c, suspect: true}
		s = p.within(s)
	}
	return c.text(s)
}

// part is whole for one that may go on, of which what is left keeps its form.
func (c *censor) part(s string) string {
	if c.mayHave(s) {
		s = c.loosely(s)
	}
	return c.text(s)
}

// mayHave reports whether there may be members in the JSON that a text has in it.
func (c *censor) mayHave(s string) bool {
	return len(c.members) > 0 && (strings.Contains(s, `\u`) || strings.IndexByte(s, '"') >= 0 && c.mayHide([]byte(s)))
}

// within returns a text without the members that are hidden in whatever JSON it has in it:
// whole values first, of which more is known, and then what only looks like members.
func (p *pass) within(s string) string { return p.loosely(p.documents(s)) }

// loosely returns a text without what looks like members that are hidden.
func (c *censor) loosely(s string) string {
	plain := s
	for range 2 * mostNested { // the digits of a number may be numbers themselves
		plainer := unescaped(plain)
		if plainer == plain {
			break
		}
		plain = plainer
	}
	if plain != s {
		if clean := c.loose(plain); clean != plain {
			return clean
		}
	}
	return c.loose(s)
}

// documents walks over the JSON objects and arrays in a text.
func (p *pass) documents(s string) string {
	room := p.room
	if room == nil {
		n := 4*len(s) + 1<<10
		room = &n
	}
	in := pass{censor: p.censor, suspect: p.suspect, inside: p.inside + 1, room: room}
	all := []byte(s)
	var out []byte
	done := 0
	for at := 0; *room > 0; {
		next := strings.IndexAny(s[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		in.again(all[at:], keyParts{})
		if in.err != nil {
			*room -= in.at + 1
			at++
			continue
		}
		end := at + in.at
		if p.suspect {
			if keys := keysIn(all[at:end]); keys.any() {
				in.again(all[at:end], keys)
			}
		}
		if in.changed {
			out = append(append(out, s[done:at]...), in.out...)
			done = end
		}
		at = end
	}
	if done == 0 {
		return s
	}
	return string(append(out, s[done:]...))
}

// again walks over another value.
func (p *pass) again(in []byte, keys keyParts) {
	p.in, p.at, p.out, p.keys, p.changed, p.err = in, 0, p.out[:0], keys, false, nil
	p.value(nil, 0)
}

// levelOf returns how often the quotation mark at a place is escaped: in JSON in a string
// of JSON once, in JSON in that twice.
func levelOf[T string | []byte](s T, at int) int {
	n := 0
	for n < at && s[at-n-1] == '\\' {
		n++
	}
	return bits.TrailingZeros(^uint(n)) // pairs are backslashes themselves
}

// escape returns how many backslashes escape a quotation mark so often.
func escape(level int) int { return 1<<level - 1 }

// skipSpace returns where white space ends, which may be escaped itself.
func skipSpace[T string | []byte](s T, at int) int {
	for at < len(s) {
		end := at
		for end < len(s) && s[end] == '\\' {
			end++
		}
		if end == len(s) {
			return at
		}
		switch s[end] {
		case ' ', '\t', '\r', '\n':
			if end > at {
				return at
			}
		case 't', 'r', 'n':
			if end == at {
				return at
			}
		default:
			return at
		}
		at = end + 1
	}
	return at
}

// longestName is how much of a name is looked at, from its end.
const longestName = 1 << 10

// loose hides the values behind names of members, wherever they are in a text, how deep
// they are escaped, and whether or not their JSON is whole.
func (c *censor) loose(s string) string {
	var out []byte
	done := 0
	for at := 0; ; {
		next := strings.IndexByte(s[at:], '"')
		if next < 0 {
			break
		}
		end := at + next
		at = end + 1
		colon := skipSpace(s, at)
		if colon == len(s) || s[colon] != ':' {
			continue
		}
		level := levelOf(s, end)
		if !c.hidesName(nameBefore(s, end, level), level) {
			continue
		}
		begin := skipSpace(s, colon+1)
		stop, told := looseValue(s, begin, level)
		if at = max(at, begin); !told {
			continue
		}
		mark := strings.Repeat(`\`, escape(level)) + `"`
		out = append(append(out, s[done:begin]...), mark+Hidden+mark...)
		done, at = stop, stop
	}
	if done == 0 {
		return s
	}
	return string(append(out, s[done:]...))
}

// nameBefore returns the name that ends with a quotation mark, as it is written.
func nameBefore(s string, end, level int) string {
	first := max(0, end-longestName)
	name := s[first:max(first, end-escape(level))]
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '"' && levelOf(s, first+i) <= level {
			return name[i+1:]
		}
	}
	return name
}

// hidesName is hidesMember for a name as it is written at some level.
func (c *censor) hidesName(name string, level int) bool {
	if c.hidesMember(name) {
		return true
	}
	for range level + 1 {
		if strings.IndexByte(name, '\\') < 0 {
			return false
		}
		plain, ok := unquote([]byte(`"` + name + `"`))
		if !ok {
			return false
		}
		if name = plain; c.hidesMember(name) {
			return true
		}
	}
	return false
}

// looseValue returns where the value ends that begins at a place, and whether it tells
// something. One that has no end goes as far as the text.
func looseValue(s string, begin, level int) (end int, told bool) {
	open := begin
	for open < len(s) && s[open] == '\\' {
		open++
	}
	switch {
	case open == len(s):
		return open, false
	case s[open] == '"':
		first := open + 1
		level := levelOf(s, open)
		for at := first; ; {
			next := strings.IndexByte(s[at:], '"')
			if next < 0 {
				return len(s), first < len(s) && s[first:] != Hidden
			}
			quote := at + next
			if found := levelOf(s, quote); found <= level {
				last := max(first, quote-escape(found))
				if end = quote + 1; found < level {
					end = last // of the text that it is in
				}
				return end, last > first && s[first:last] != Hidden
			}
			at = quote + 1
		}
	case open > begin:
		return begin, false
	case s[open] == '{' || s[open] == '[':
		return looseNest(s, begin, level)
	}
	for end = begin; end < len(s) && (s[end] >= '0' && s[end] <= '9' || end > begin && strings.IndexByte(".eE+-", s[end]) >= 0 || s[end] == '-'); {
		end++
	}
	return end, end > begin
}

// looseNest is looseValue for an object or array.
func looseNest(s string, begin, level int) (end int, told bool) {
	depth, within := 0, -1 // the level of the string that this is in
	for end = begin; end < len(s); end++ {
		switch b := s[end]; {
		case b == '"':
			found := levelOf(s, end)
			switch {
			case found < level:
				return max(begin, end-escape(found)), true // the text that it is in ends
			case within < 0:
				within = found
			case found <= within:
				within = -1
			}
		case within >= 0:
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth == 0 {
				end++
				return end, worthHiding([]byte(strings.ReplaceAll(s[begin:end], `\`, "")))
			}
		}
	}
	return end, true
}

// unescaped returns a text with those ASCII characters written plainly that are written
// as \u00.., at whatever level, so that JSON has its marks where they are looked for.
func unescaped(s string) string {
	if !strings.Contains(s, `\u00`) {
		return s
	}
	var out strings.Builder
	for {
		at := strings.Index(s, `\u00`)
		if at < 0 || len(s) < at+6 {
			break
		}
		value, err := strconv.ParseUint(s[at+4:at+6], 16, 7)
		if err != nil {
			out.WriteString(s[:at+4])
			s = s[at+4:]
			continue
		}
		n := 1 // backslashes before the u
		for n <= at && s[at-n] == '\\' {
			n++
		}
		out.WriteString(s[:at+1-n])
		b := byte(value)
		out.WriteString(strings.Repeat(`\`, plainEscape(n, b)))
		if b != '\\' {
			out.WriteByte(b)
		}
		s = s[at+6:]
	}
	out.WriteString(s)
	return out.String()
}

// plainEscape returns how many backslashes stand before a character, or for one that is a
// backslash, where n of them and its number stood.
func plainEscape(n int, b byte) int {
	own := 0
	if b == '"' {
		own = 1
	}
	switch {
	case n%2 == 0:
		return 2*plainEscape(n/2, b) + own
	case b == '\\':
		return n + 1
	}
	return n - 1 + own
}
