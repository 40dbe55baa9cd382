package trace

import "unicode/utf8"

// disguised reports whether the quotation mark at a place ends the name of a member with
// escapes or letters of which others may be meant.
func (c *censor) disguised(line []byte, at int) bool {
	next := at + 1
	if next < len(line) && (line[next] <= ' ' || line[next] == '\\') {
		next = skipSpace(line, next)
	}
	if next == len(line) || line[next] != ':' {
		return false
	}
	level := levelOf(line, at)
	for at > 0 && line[at-1] == '\\' {
		at-- // in a text the mark itself is escaped
	}
	for i := at - 1; i >= 0; i-- {
		switch b := line[i]; {
		case b == '"':
			return levelOf(line, i) > level // one in the name
		case b == '\\' || b >= utf8.RuneSelf:
			return true
		}
	}
	return false
}

// endsWith reports whether a text ends with a plain name.
func endsWith(text []byte, name string) bool {
	i := len(name)
	for at := len(text) - 1; at >= 0 && i > 0; at-- {
		b := plainByte(text[at])
		if b == 0 {
			if text[at] == '"' {
				return false
			}
			continue
		}
		if i--; b != name[i] {
			return false
		}
	}
	return i == 0
}
