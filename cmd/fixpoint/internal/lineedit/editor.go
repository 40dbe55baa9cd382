package lineedit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// ErrInterrupt is returned for a line at which Ctrl-C was pressed.
var ErrInterrupt = errors.New("lineedit: interrupted")

// Config is what an Editor works with.
type Config struct {
	In  io.Reader // of a terminal in raw mode
	Out io.Writer
	// Size returns the columns and rows of the terminal, as they are now.
	Size func() (columns, rows int)
	// Interrupt is called for Ctrl-C while no line is read. It must not wait for the
	// editor.
	Interrupt func()
}

// Query says how a line is read.
type Query struct {
	Prompt string // its looks may be set by escape sequences
	Text   string // to begin with
	Hidden bool   // show nothing of it
	// Holds says that another line of the same matter may follow: the keys behind the end
	// of this one wait for it, until Release.
	Holds bool
	// History, if set, can be recalled. Lines are not added to it.
	History *History
	// Complete, if set, returns what the text in front of the cursor can go on with, and
	// from where on that takes its place.
	Complete func(text string) (from int, candidates []string)
}

// Editor reads lines from a terminal. It is safe for concurrent use: of several lines
// that are read, the one asked for last is edited, and the others wait as they are.
// It has the terminal until the program ends.
type Editor struct {
	c    Config
	once sync.Once // to begin to listen

	mu    sync.Mutex
	lines []*line // the last one is edited and on the screen
	ahead []key   // pressed while there was none, or it was held
	held  bool    // the line is not edited, since another one is about to come
	row   int     // of the cursor, in what is drawn
	err   error   // of the input
}

// maxAhead is how many keys are kept that nobody has asked for.
const maxAhead = 4096

// New returns an editor that has the terminal from its first line on.
func New(c Config) *Editor { return &Editor{c: c} }

// Close leaves the screen as it was. Lines that are read end with io.EOF.
func (e *Editor) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail(io.EOF)
	e.send("\x1b[?2004l")
}

// ReadLine reads a line. At its end, or that of the input, it is io.EOF. When ctx ends,
// what was typed until then is returned with the cause.
func (e *Editor) ReadLine(ctx context.Context, q Query) (string, error) {
	l := &line{Query: q, text: q.Text, at: len(q.Text), done: make(chan result, 1)}
	e.once.Do(func() {
		e.send("\x1b[?2004h") // mark pastes
		go e.listen()
	})
	e.mu.Lock()
	e.clear()
	early := e.held || len(e.lines) == 0
	e.lines, e.held = append(e.lines, l), false
	e.draw()
	if early {
		e.catchUp()
	}
	if e.err != nil {
		e.fail(e.err)
	}
	e.mu.Unlock()
	select {
	case r := <-l.done:
		return r.text, r.err
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case r := <-l.done: // just now, and it is gone from the screen
		return r.text, r.err
	default:
	}
	e.clear()
	e.lines = slices.DeleteFunc(e.lines, func(other *line) bool { return other == l })
	e.draw()
	return l.text, context.Cause(ctx)
}

// Release ends the wait for another line after one that holds, and goes on with the line
// that was edited before.
func (e *Editor) Release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.held {
		return
	}
	e.held = false
	e.draw()
	e.catchUp()
}

// catchUp applies the keys that were pressed ahead.
func (e *Editor) catchUp() {
	ahead := e.ahead
	e.ahead = nil
	for _, k := range ahead {
		e.press(k)
	}
	e.clear()
	e.draw()
}

// edited returns the line that is edited, or nil.
func (e *Editor) edited() *line {
	if len(e.lines) == 0 || e.held {
		return nil
	}
	return e.lines[len(e.lines)-1]
}

// Write writes whole lines above the one that is edited.
func (e *Editor) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clear()
	text := strings.ReplaceAll(string(p), "\n", "\r\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\r\n"
	}
	_, err := io.WriteString(e.c.Out, text)
	e.draw()
	return len(p), err
}

// listen takes the keys in until the input ends.
func (e *Editor) listen() {
	in := bufio.NewReader(e.c.In)
	for {
		k, err := readKey(in)
		e.mu.Lock()
		switch {
		case err != nil:
			e.fail(err)
			e.mu.Unlock()
			return
		case k.action == interrupt && e.edited() == nil:
			e.ahead = nil
			e.mu.Unlock()
			if e.c.Interrupt != nil {
				e.c.Interrupt()
			}
			continue
		case k.action == tab && e.edited() != nil:
			e.complete()
		default:
			e.press(k)
			// A burst is drawn once.
			if in.Buffered() == 0 {
				e.clear()
				e.draw()
			}
		}
		e.mu.Unlock()
	}
}

// press applies a key to the line that is edited. It does not draw it.
func (e *Editor) press(k key) {
	l := e.edited()
	switch {
	case l == nil:
		if k.action != nothing && len(e.ahead) < maxAhead {
			e.ahead = append(e.ahead, k)
		}
	case k.action == enter:
		e.finish(result{text: l.text}, "")
	case k.action == interrupt:
		e.finish(result{err: ErrInterrupt}, "^C")
	case k.action == endOfInput && l.text == "":
		e.finish(result{err: io.EOF}, "")
	case k.action == endOfInput:
		l.press(key{action: erase})
	case k.action == redraw:
		e.send("\x1b[2J\x1b[H")
		e.row = 0
		e.draw()
	default:
		l.press(k)
	}
}

// finish ends the line that is edited, and leaves it on the screen.
func (e *Editor) finish(r result, mark string) {
	l := e.lines[len(e.lines)-1]
	e.clear()
	columns, _ := e.size()
	l.at = len(l.text)
	rows, _, _ := l.rows(columns - 1)
	e.send(strings.Join(rows, "\r\n") + mark + "\r\n")
	e.row = 0
	e.lines = e.lines[:len(e.lines)-1]
	e.held = l.Holds && r.err == nil && len(e.lines) > 0
	l.done <- r
	e.draw()
}

// fail ends all lines.
func (e *Editor) fail(err error) {
	e.err = err
	e.clear()
	for _, l := range e.lines {
		l.done <- result{err: err}
	}
	e.lines, e.held = nil, false
}

// complete completes what is in front of the cursor, or shows what it could be.
func (e *Editor) complete() {
	l := e.edited()
	if l.Complete == nil {
		return
	}
	text, at := l.text, l.at
	e.mu.Unlock() // it may look at files
	from, candidates := l.Complete(text[:at])
	e.mu.Lock()
	if e.edited() != l || from < 0 || from > at {
		return
	}
	e.clear()
	defer e.draw()
	candidates = slices.DeleteFunc(candidates, func(c string) bool { return tidy(c) != c || strings.ContainsAny(c, "\n\t") })
	switch common := commonPrefix(candidates); {
	case len(candidates) == 1:
		if !strings.HasSuffix(common, "/") && !strings.HasSuffix(common, "=") {
			common += " "
		}
		l.replace(from, at, common)
	case len(common) > at-from && strings.HasPrefix(common, text[from:at]):
		l.replace(from, at, common)
	case len(candidates) > 1:
		e.send(list(candidates) + "\r\n")
	}
}

// shownCandidates is how many candidates are shown.
const shownCandidates = 60

func list(candidates []string) string {
	more := ""
	if n := len(candidates) - shownCandidates; n > 0 {
		candidates, more = candidates[:shownCandidates], fmt.Sprintf("  … %d more", n)
	}
	return strings.Join(candidates, "  ") + more
}

func commonPrefix(all []string) string {
	if len(all) == 0 {
		return ""
	}
	n := 0
	for _, e := range clusters(all[0]) {
		for _, other := range all[1:] {
			if len(other) < e || other[:e] != all[0][:e] {
				return all[0][:n]
			}
		}
		n = e
	}
	return all[0]
}

func (e *Editor) size() (columns, rows int) {
	if e.c.Size != nil {
		columns, rows = e.c.Size()
	}
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return columns, rows
}

// clear takes the line off the screen, with the cursor where it began.
func (e *Editor) clear() {
	if e.edited() == nil {
		return
	}
	up := ""
	if e.row > 0 {
		up = fmt.Sprintf("\x1b[%dA", e.row)
	}
	e.send(up + "\r\x1b[J")
	e.row = 0
}

// draw puts the line on the screen, from where the cursor is, which is where a screen
// line begins. Of one that is higher than the screen the part around the cursor is seen.
func (e *Editor) draw() {
	l := e.edited()
	if l == nil {
		return
	}
	columns, height := e.size()
	// The last column stays free: terminals differ in where they go on behind it.
	rows, row, column := l.rows(columns - 1)
	if most := max(1, height-1); len(rows) > most {
		first := min(max(0, row-most/2), len(rows)-most)
		rows, row = rows[first:first+most], row-first
	}
	move := "\r"
	if up := len(rows) - 1 - row; up > 0 {
		move = fmt.Sprintf("\x1b[%dA\r", up)
	}
	if column > 0 {
		move += fmt.Sprintf("\x1b[%dC", column)
	}
	e.send(strings.Join(rows, "\r\n") + move)
	e.row = row
}

// send writes to the screen. A screen that is gone is noticed at the next Write.
func (e *Editor) send(text string) { _, _ = io.WriteString(e.c.Out, text) }
