package drawing

import (
	"strings"
	"unicode"
)

// Outline is a text of heads with indented lines of facts below. The zero Outline
// is empty and ready. It must not be copied, and is not safe for concurrent use.
type Outline struct{ text strings.Builder }

// Head writes a line that is not indented.
func (o *Outline) Head(text string) { o.text.WriteString(oneLine(text) + "\n") }

// Line writes the facts that are not empty, indented and separated.
func (o *Outline) Line(facts ...string) {
	lead := "  "
	for _, fact := range facts {
		if fact != "" {
			o.text.WriteString(lead + oneLine(fact))
			lead = "; "
		}
	}
	o.text.WriteByte('\n')
}

// Lines writes a line for each of the names, after a lead.
func (o *Outline) Lines(lead string, names []string) {
	for _, name := range names {
		o.Line(lead + name)
	}
}

// String returns the text.
func (o *Outline) String() string { return o.text.String() }

// When returns the fact if it holds, else "".
func When(holds bool, fact string) string {
	if holds {
		return fact
	}
	return ""
}

// List returns the names after a lead, or "" when there are none.
func List(lead string, names ...string) string {
	list := strings.Join(names, ", ")
	return When(list != "", lead+list)
}

// oneLine replaces what would break a line or steer a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
