package lineedit

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// line is a line that is being edited.
type line struct {
	Query
	text  string
	at    int // of the cursor, in bytes, between clusters
	past  int // 0 for the line itself, n for the nth newest of the history
	draft string
	done  chan result // has room for the one result
}

type result struct {
	text string
	err  error
}

// clusters returns where the grapheme clusters of a text end.
func clusters(text string) []int {
	var ends []int
	for at, state := 0, -1; at < len(text); {
		var cluster string
		cluster, _, _, state = ansi.FirstGraphemeCluster(text[at:], state)
		at += len(cluster)
		ends = append(ends, at)
	}
	return ends
}

// before returns where the cluster in front of the cursor begins.
func (l *line) before() int {
	place := 0
	for _, e := range clusters(l.text) {
		if e >= l.at {
			break
		}
		place = e
	}
	return place
}

// after returns where the cluster behind the cursor ends.
func (l *line) after() int {
	for _, e := range clusters(l.text) {
		if e > l.at {
			return e
		}
	}
	return len(l.text)
}

// wordBefore returns where the word in front of the cursor begins.
func (l *line) wordBefore() int {
	front := strings.TrimRightFunc(l.text[:l.at], unicode.IsSpace)
	return strings.LastIndexFunc(front, unicode.IsSpace) + 1
}

// wordAfter returns where the word behind the cursor ends.
func (l *line) wordAfter() int {
	back := strings.TrimLeftFunc(l.text[l.at:], unicode.IsSpace)
	n := strings.IndexFunc(back, unicode.IsSpace)
	if n < 0 {
		return len(l.text)
	}
	return len(l.text) - len(back) + n
}

// replace puts a text in the place of another part of the line, with the cursor behind
// it.
func (l *line) replace(from, to int, text string) {
	l.text = l.text[:from] + text + l.text[to:]
	l.at = from + len(text)
	// It may have become one cluster with its neighbours.
	if ends := clusters(l.text); l.at > 0 && !slices.Contains(ends, l.at) {
		l.at = l.after()
	}
}

// press applies a key that changes the line or moves the cursor.
func (l *line) press(k key) {
	switch k.action {
	case insert:
		l.replace(l.at, l.at, k.text)
	case left:
		l.at = l.before()
	case right:
		l.at = l.after()
	case wordLeft:
		l.at = l.wordBefore()
	case wordRight:
		l.at = l.wordAfter()
	case home:
		l.at = 0
	case end:
		l.at = len(l.text)
	case older:
		l.recall(l.past + 1)
	case newer:
		l.recall(l.past - 1)
	case eraseBack:
		l.replace(l.before(), l.at, "")
	case erase:
		l.replace(l.at, l.after(), "")
	case eraseWord:
		l.replace(l.wordBefore(), l.at, "")
	case eraseToStart:
		l.replace(0, l.at, "")
	case eraseToEnd:
		l.replace(l.at, len(l.text), "")
	}
}

// recall shows the nth newest line of the history; the 0th is what was typed.
func (l *line) recall(n int) {
	if l.History == nil || n < 0 || n > l.History.Len() {
		return
	}
	if l.past == 0 {
		l.draft = l.text
	}
	l.past, l.text = n, l.draft
	if n > 0 {
		l.text = l.History.At(n - 1)
	}
	l.at = len(l.text)
}

// rows lays the line out in that many columns, and says where the cursor is.
func (l *line) rows(width int) (rows []string, row, column int) {
	width = max(width, 4)
	var b strings.Builder
	b.WriteString(ansi.Truncate(l.Prompt, width-2, "…"))
	used := ansi.StringWidth(b.String())
	put := func(shown string, columns int) {
		if used+columns > width {
			rows = append(rows, b.String())
			b.Reset()
			used = 0
		}
		b.WriteString(shown)
		used += columns
	}
	mark := func() {
		if used >= width { // it stands in front of what comes next
			rows = append(rows, b.String())
			b.Reset()
			used = 0
		}
		row, column = len(rows), used
	}
	text, at := l.text, l.at
	if l.Hidden {
		text, at = "", 0
	}
	begin := 0
	for _, e := range clusters(text) {
		if begin == at {
			mark()
		}
		switch shown := text[begin:e]; shown {
		case "\n", "\r\n":
			put("⏎", 1)
		case "\t":
			put(" ", 1)
		default:
			put(shown, ansi.StringWidth(shown))
		}
		begin = e
	}
	if begin == at {
		mark()
	}
	return append(rows, b.String()), row, column
}
