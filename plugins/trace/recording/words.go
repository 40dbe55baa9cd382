package recording

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ddd26017/fixpoint/inference"
)

// Lengths, in characters, that texts from outside are cut to in sentences.
const (
	longText  = 240
	shortText = 80
)

// oneLine makes one line of a text that may come from anywhere, without what could
// steer a terminal.
func oneLine(text string) string {
	plain := true
	for i := 0; i < len(text) && plain; i++ {
		plain = text[i] >= ' ' && text[i] < 0x7f
	}
	if plain {
		return text
	}
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
func clip(text string, most int) string {
	if len(text) <= most {
		return oneLine(text)
	}
	runes := 0
	for i := range text {
		if runes++; runes > most {
			return oneLine(text[:i]) + "…"
		}
	}
	return oneLine(text)
}

// quoted is a text from outside within a sentence.
func quoted(text string, most int) string { return "“" + clip(text, most) + "”" }

// then returns the text behind a lead, or nothing if there is no text.
func then(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + clip(text, longText)
}

// cause is the text of an error of a hook or handler, without what is told beside it: who
// failed, and in which phase.
func cause(err, phase string) string {
	if !strings.HasPrefix(err, "engine: ") {
		return err
	}
	if _, rest, ok := strings.Cut(err, " failed at "+phase+": "); ok && phase != "" {
		return rest
	}
	return err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ry") {
		what = strings.TrimSuffix(what, "y") + "ie"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// listed joins parts as a sentence does.
func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// sentence makes the first letter of a text a capital one and ends it.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = upper(text)
	switch text[len(text)-1] {
	case '.', '!', '?':
		return text
	}
	return text + "."
}

func upper(text string) string {
	if text != "" && text[0] >= 'a' && text[0] <= 'z' {
		return string(text[0]-'a'+'A') + text[1:]
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

// revisions writes a range of revisions, both included.
func revisions(from, to uint64) string {
	if from == to {
		return "revision " + strconv.FormatUint(from, 10)
	}
	return "revisions " + strconv.FormatUint(from, 10) + " to " + strconv.FormatUint(to, 10)
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// jsonText is a JSON value within a sentence.
func jsonText(j inference.JSON) string {
	if j == "" {
		return "null"
	}
	return clip(string(j), shortText)
}
