package trace

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// keyParts are the texts of a JSON value in which parts of a private key are.
type keyParts struct {
	at     map[int][][2]int // the parts, by where the string with them begins
	strewn bool             // the rest of a key may be anywhere
}

func (k keyParts) any() bool { return k.strewn || len(k.at) > 0 }

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`)
	// keyLine is a text that may be a line or a part of one, or what stands above them.
	keyLine = regexp.MustCompile(`^(?:\[hidden\]|[A-Za-z0-9+/=\s\\-])*$|^\s*(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash): `)
	// keyBody is one or more lines, of which the first is not short.
	keyBody = regexp.MustCompile(`[A-Za-z0-9+/]{32,}(?:(?:\s|\\+[nr])+[A-Za-z0-9+/]+)*={0,2}`)
)

// keyHints are what is left of the mark of a key that is cut, as redact.Suspect knows it.
var keyHints = [][]byte{[]byte("PRIVATE KEY"), []byte("--B"), []byte("-BEGIN"), []byte(`-----"`)}

// longestKey is how far the marks of a key may be from each other, in bytes.
const longestKey = 16 << 10

// keysIn finds the private keys in a JSON value that are spread over several strings: in
// a list, or in members of the same name, in the order in which they are, and cut anywhere.
// One whose mark is in a member of another name than the rest is strewn.
func keysIn(value []byte) (found keyParts) {
	if !slices.ContainsFunc(keyHints, func(hint []byte) bool { return bytes.Contains(value, hint) }) {
		return found
	}
	var order []string
	columns := map[string]*column{}
	eachText(value, func(name string, at int, text string) {
		c := columns[name]
		if c == nil {
			c = &column{}
			columns[name], order = c, append(order, name)
		}
		c.starts, c.places = append(c.starts, c.all.Len()), append(c.places, at)
		c.all.WriteString(text)
		begins := keyBegin.FindAllStringIndex(text, -1)
		found.strewn = found.strewn || len(begins) > 0 && !keyEnd.MatchString(text[begins[len(begins)-1][1]:])
	})
	for _, name := range order {
		columns[name].keys(&found)
	}
	return found
}

// column is the texts that stand one below the other.
type column struct {
	all    strings.Builder
	starts []int // of each text in all
	places []int // of each text in the value
}

// keys adds the parts of keys in more than one of the texts.
func (c *column) keys(found *keyParts) {
	all := c.all.String()
	for at := 0; ; {
		begin := keyBegin.FindStringIndex(all[at:])
		if begin == nil {
			return
		}
		from, to := at+begin[0], at+begin[1]
		if end := keyEnd.FindStringIndex(all[to:min(len(all), to+longestKey)]); end != nil {
			to += end[1]
		} else {
			to = c.lines(to)
		}
		at = to
		first, _ := slices.BinarySearch(c.starts, from+1)
		last, _ := slices.BinarySearch(c.starts, to)
		for i := first - 1; i < last && first < last; i++ {
			start := c.starts[i]
			part := [2]int{max(from-start, 0), min(to, c.end(i)) - start}
			if found.at == nil {
				found.at = map[int][][2]int{}
			}
			found.at[c.places[i]] = append(found.at[c.places[i]], part)
		}
	}
}

// end returns where a text ends in all.
func (c *column) end(i int) int {
	if i+1 < len(c.starts) {
		return c.starts[i+1]
	}
	return c.all.Len()
}

// lines returns where the lines of a key end that has no other end.
func (c *column) lines(at int) int {
	i, exact := slices.BinarySearch(c.starts, at)
	if !exact {
		i-- // it begins within this one
	}
	all := c.all.String()
	for ; i >= 0 && i < len(c.starts); i++ {
		start, end := max(at, c.starts[i]), c.end(i)
		if !keyLine.MatchString(all[start:end]) {
			break
		}
		at = max(at, end)
	}
	return at
}

// in returns the text of the string that begins at a place without the parts of keys.
func (k keyParts) in(at int, text string) string {
	if parts := k.at[at]; len(parts) > 0 {
		var out strings.Builder
		done := 0
		for _, part := range parts {
			if part[0] < part[1] {
				out.WriteString(text[done:part[0]] + Hidden)
				done = part[1]
			}
		}
		text = out.String() + text[done:]
	}
	return text
}

// body returns a text without the body of a key that is strewn.
func (k keyParts) body(text string) string {
	if k.strewn {
		text = keyBody.ReplaceAllStringFunc(text, func(body string) string {
			if strings.ToLower(body) == body || strings.ToUpper(body) == body {
				return body // a sum, perhaps
			}
			return Hidden
		})
	}
	return text
}

// eachText calls back with the strings in a JSON value that are no names: each with the
// name of the member that it is in or below, and where it begins.
func eachText(value []byte, each func(name string, at int, text string)) {
	p := pass{in: value}
	names := []string{""}
	for p.at < len(value) {
		last := len(names) - 1
		switch value[p.at] {
		case '"':
			at := p.at
			raw := p.token()
			if p.err != nil {
				return
			}
			text, _ := unquote(raw)
			end := skipSpace(value, p.at)
			if end < len(value) && value[end] == ':' {
				names[last] = text
			} else {
				each(names[last], at, text)
			}
			continue
		case '{', '[':
			names = append(names, names[last])
		case '}', ']':
			if last > 0 {
				names = names[:last]
			}
		}
		p.at++
	}
}
