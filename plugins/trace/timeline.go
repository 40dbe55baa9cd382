package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// longest is how many characters of a text from outside are shown.
const longest = 160

// say writes a line about a span.
func (t *Trace) say(c *course, s *span, at time.Time, format string, args ...any) {
	if t.text != nil && t.opts.Show != SummaryOnly {
		t.line(c, s.parent, s.depth, at, sayf(format, args...))
	}
}

func sayf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// line writes a line below a span, whose own line comes first if that has not been
// shown.
func (t *Trace) line(c *course, below *span, depth int, at time.Time, text string) {
	if t.text == nil || t.opts.Show == SummaryOnly {
		return
	}
	if below != nil && !below.shown {
		below.shown = true
		own := below.name
		for _, f := range below.facts {
			if f.name == "hooks" || f.name == "gates" {
				own += ": " + count(f.value.(int), strings.TrimSuffix(f.name, "s"))
			}
		}
		t.line(c, below.parent, below.depth, below.start, own)
	}
	whose := ""
	if t.roots > 1 {
		whose = "[" + clip(c.root.id) + "] "
	}
	t.text.put(fmt.Appendf(nil, "%s%10.4f %s%s\n", whose, at.Sub(c.root.run.start).Seconds(), strings.Repeat("  ", depth), oneLine(text)))
}

// oneLine makes one line of a text that may come from anywhere, without what could
// steer a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// clip returns the beginning of a text, on one line.
func clip(text string) string {
	runes := 0
	for i := range text {
		if runes++; runes > longest {
			return oneLine(text[:i]) + "…"
		}
	}
	return oneLine(text)
}

// then returns the text behind a lead, or nothing if there is no text.
func then(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + clip(text)
}

func number(n int) string { return strconv.Itoa(n) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ry") {
		what = strings.TrimSuffix(what, "y") + "ie"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// counted is count behind a lead, or nothing for 0.
func counted(n int, lead, what string) string {
	if n == 0 {
		return ""
	}
	return lead + count(n, what)
}

// took is how long the span was, and how much of it was waiting for people.
func took(s *span) string {
	text := length(s.end.Sub(s.start))
	if waited := s.waits.length(); waited > 0 {
		text += " (" + length(waited) + " of it waiting for people)"
	}
	return text
}

// length writes a duration with as many digits as are of use.
func length(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 10*unit {
			return d.Round(unit / 10).String()
		}
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}
