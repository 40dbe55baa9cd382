package picture

import (
	"strings"
	"unicode"
)

// outline is a text of heads with indented lines of facts below. The zero outline
// is empty and ready.
type outline struct{ text strings.Builder }

// head writes a line that is not indented.
func (o *outline) head(text string) { o.text.WriteString(oneLine(text) + "\n") }

// line writes the facts that are not empty, indented and separated.
func (o *outline) line(facts ...string) { o.write("  ", facts) }

// more writes facts about the line before.
func (o *outline) more(facts ...string) { o.write("    ", facts) }

func (o *outline) write(lead string, facts []string) {
	for _, fact := range facts {
		if fact != "" {
			o.text.WriteString(lead + oneLine(fact))
			lead = "; "
		}
	}
	o.text.WriteByte('\n')
}

// lines writes a line for each of the names, after a lead.
func (o *outline) lines(lead string, names []string) {
	for _, name := range names {
		o.line(lead + name)
	}
}

// String returns the text.
func (o *outline) String() string { return o.text.String() }

// when returns the fact if it holds, else "".
func when(holds bool, fact string) string {
	if holds {
		return fact
	}
	return ""
}

// list returns the names after a lead, or "" when there are none.
func list(lead string, names ...string) string {
	all := strings.Join(names, ", ")
	return when(all != "", lead+all)
}

// oneLine replaces what would break a line, steer a terminal or be no character.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
