package trace

import (
	"bytes"
	"unicode/utf8"
)

// disguised reports whether the quotation mark at a place ends the name of a member with
// escapes or letters of which others may be meant.
func (c *censor) disguised(line []byte, at int) bool {
	next := at + 1
	for next < len(line) && bytes.IndexByte([]byte(" \t\r\n"), line[next]) >= 0 {
		next++
	}
	if next == len(line) || line[next] != ':' {
		return false
	}
	for at > 0 && line[at-1] == '\\' {
		at-- // in a text the mark itself is escaped
	}
	for i := at - 1; i >= 0 && line[i] != '"'; i-- {
		if line[i] == '\\' || line[i] >= utf8.RuneSelf {
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
