package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
)

// labelWidth is the width of the column of labels.
const labelWidth = 9

// Printer writes whole lines to a screen or file. It is safe for concurrent use.
type Printer struct {
	turn  chan struct{} // holds a token; who has taken it writes
	out   io.Writer
	width int // columns that a line may take; 0 for no limit
	s     styles
	err   error  // the first failure to write
	shown string // the newest answer, if it was shown as it came
}

// take waits for the printer's turn and returns what gives it back. A question
// keeps the turn until it is answered.
func (p *Printer) take() (back func()) {
	<-p.turn
	return func() { p.turn <- struct{}{} }
}

// Screen describes where a Printer writes to.
type Screen struct {
	Out io.Writer
	// Width is the number of columns; 0 means that lines are not cut.
	Width int
	// Color allows colours and other looks.
	Color bool
}

// NewPrinter returns a printer for the screen.
func NewPrinter(s Screen) *Printer {
	p := &Printer{turn: make(chan struct{}, 1), out: s.Out, width: s.Width, s: newStyles(s.Out, s.Color)}
	p.turn <- struct{}{}
	return p
}

// Err returns the first failure to write, if any.
func (p *Printer) Err() error {
	defer p.take()()
	return p.err
}

// Line writes a line: a label and what there is to say, clean of control
// characters.
func (p *Printer) Line(label, text string) {
	p.line(p.s.bold, label, 0, p.s.plain.Render(clean(text)))
}

// line writes a line whose parts have their looks already.
func (p *Printer) line(look lipgloss.Style, label string, indent int, parts ...string) {
	defer p.take()()
	p.write(p.layout(look, label, indent, parts...) + "\n")
}

func (p *Printer) layout(look lipgloss.Style, label string, indent int, parts ...string) string {
	text := strings.Repeat(" ", max(0, labelWidth-utf8.RuneCountInString(label))) + look.Render(label) +
		strings.Repeat(" ", 2+2*indent) + strings.Join(nonEmpty(parts), " ")
	text = strings.TrimRight(text, " ")
	if p.width > 0 {
		text = ansi.Truncate(text, p.width, "…")
	}
	return text
}

// broken breaks a line into parts that the screen has room for behind a label.
func (p *Printer) broken(line string, indent int) []string {
	if p.width <= 0 {
		return []string{line}
	}
	line = strings.ReplaceAll(line, "\t", "    ")
	return strings.Split(ansi.Wrap(line, max(10, p.width-labelWidth-2-2*indent), " "), "\n")
}

// gap writes an empty line.
func (p *Printer) gap() {
	defer p.take()()
	p.write("\n")
}

// write is called by who has the turn.
func (p *Printer) write(text string) {
	if _, err := io.WriteString(p.out, text); err != nil && p.err == nil {
		p.err = err
	}
}

func nonEmpty(parts []string) []string {
	out := make([]string, 0, len(parts))
	for _, part := range parts {
		if part != "" {
			out = append(out, part)
		}
	}
	return out
}

// clean makes one line of a text that may come from anywhere, without what could
// steer a terminal.
func clean(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)), " ")
}

// Clean makes one line of a text that may come from anywhere, of at most n characters,
// without what could steer a terminal.
func Clean(text string, n int) string { return clip(clean(text), n) }

// cleanLine is clean for a line whose spaces count.
func cleanLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
}

// clip cuts a text to n characters.
func clip(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n-1]) + "…"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", thousands(int64(n)), what)
}

// thousands writes a number with its digits in groups.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	if n < 0 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
