package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/permission"
)

// Prompt is a gate.Resolver that asks the person at the terminal. A question is
// asked once the view has shown what led to it, and nothing else is written until
// it is answered. Without anybody to ask, at the end of the input, the answer is
// no. An answer that does not fit its question is asked for again.
type Prompt struct {
	p    *Printer
	view *View
	keys Keyboard
	in   *lineReader
	said string // the cue that the next line is read with, where Keyboard.Line shows it

	mu    sync.Mutex // one question at a time
	call  call       // that it is about
	known bool       // the view has seen the call
}

// Keyboard is where answers come from.
type Keyboard struct {
	In io.Reader
	// Echoes says that what is typed is on the screen already, as at a terminal.
	Echoes bool
	// Line, if set, reads lines instead of In: behind the cue, and beginning with a text
	// that can be changed. With it the arguments of a call can be edited.
	Line func(ctx context.Context, cue, text string) (string, error)
	// CheckArgs says what is wrong with edited arguments of a tool. Nil accepts all.
	CheckArgs func(tool string, args inference.JSON) error
	// Secret reads a line that must not be seen; nil means that it cannot be done,
	// and questions for secrets are declined.
	Secret func() (string, error)
	// Fits says what is wrong with the value of an answer, by the ticket's schema, so
	// that it can be asked for again. Nil accepts all; the run checks in any case.
	Fits func(schema, value inference.JSON) error
}

// NewPrompt returns a prompt that reads answers line by line.
func NewPrompt(p *Printer, v *View, k Keyboard) *Prompt {
	return &Prompt{p: p, view: v, keys: k, in: &lineReader{in: k.In}}
}

// Yes is a gate.Resolver that approves every confirmation, as --yes asks for.
// Questions of other kinds go to the prompt.
type Yes struct{ Prompt *Prompt }

// Resolve approves, and shows what if there is something to see.
func (y Yes) Resolve(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
	if t.Kind != gate.Confirm {
		return y.Prompt.Resolve(ctx, t)
	}
	if shown, ok := preview(t); ok && y.Prompt != nil && y.Prompt.view.level > Quiet {
		if err := y.Prompt.view.wait(ctx, t.ID); err != nil {
			return phase.Answer{}, err
		}
		back := y.Prompt.p.take()
		y.Prompt.p.preview(2, shown, pendingLines)
		back()
	}
	return phase.Answer{Approved: true, Reason: "by --yes"}, nil
}

// Resolve asks. At the end of the input nobody is there, and the default of the question
// counts; without one the answer is no.
func (q *Prompt) Resolve(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.view.wait(ctx, t.ID); err != nil {
		return phase.Answer{}, err
	}
	q.call, q.known = q.view.remembered(t.Call) // not later, when the view may wait for its turn
	// What else happens meanwhile waits, so that it does not end up in the answer.
	defer q.p.take()()
	q.show(t, previewLines)
	answer, err := q.ask(ctx, t)
	if errors.Is(err, io.EOF) {
		q.p.write("\n")
		return unattended(t), nil
	}
	return answer, err
}

// unattended is the answer to a question that nobody is there to answer.
func unattended(t gate.Ticket) phase.Answer {
	const why = "nobody is there to answer"
	switch {
	case t.Default == gate.DefaultYes:
		return phase.Answer{Approved: true, Value: t.Fallback, Reason: why + ", and the default counts"}
	case t.Default == gate.DefaultCancel:
		return phase.Answer{Cancel: true, Reason: why}
	case t.Kind == gate.Confirm:
		return phase.Answer{Reason: why + "; --yes approves"}
	default:
		return phase.Answer{Reason: why}
	}
}

// Ask asks a question that is not part of a run under way. At the end of the input it
// returns io.EOF.
func (q *Prompt) Ask(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.call, q.known = q.view.remembered(t.Call)
	defer q.p.take()()
	q.show(t, previewLines)
	answer, err := q.ask(ctx, t)
	if errors.Is(err, io.EOF) {
		q.p.write("\n")
	}
	return answer, err
}

// show writes what there is to decide about, and at most that many lines of each
// argument.
func (q *Prompt) show(t gate.Ticket, most int) {
	s := q.p.s
	line := func(parts ...string) { q.p.write(q.p.layout(s.plain, "", 2, parts...) + "\n") }
	if q.view.level == Quiet {
		q.p.write(q.p.layout(s.note, "question", 0, clean(t.Message), s.dim.Render("by "+clean(t.Plugin))) + "\n")
	}
	var shown permission.Preview
	if t.Params == "" {
		return
	}
	if shown, ok := preview(t); ok {
		q.p.preview(2, shown, max(most, pendingLines))
		return
	}
	if t.Params.Decode(&shown) != nil {
		line(s.dim.Render(clip(clean(string(t.Params)), 300)))
		return
	}
	if shown.Description != "" {
		line(s.dim.Render(clean(shown.Description)))
	}
	var args map[string]any
	if shown.Args.Decode(&args) != nil {
		line(clip(clean(string(shown.Args)), 300))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		text, ok := args[name].(string)
		if !ok {
			raw, _ := inference.ToJSON(args[name]) // it was decoded from JSON
			text = string(raw)
		}
		q.argument(name, text, most)
	}
}

// previewLines is how many lines of an argument a question shows at first.
const previewLines = 8

func (q *Prompt) argument(name, text string, most int) {
	s := q.p.s
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) == 1 {
		q.p.write(q.p.layout(s.plain, "", 2, s.bold.Render(clean(name)+":"), clip(clean(text), 200)) + "\n")
		return
	}
	q.p.write(q.p.layout(s.plain, "", 2, s.bold.Render(clean(name)+":"), s.dim.Render(count(len(lines), "line"))) + "\n")
	for i, line := range lines {
		if i == most {
			q.p.write(q.p.layout(s.plain, "", 2, s.dim.Render(fmt.Sprintf("│ … %d more", len(lines)-i))) + "\n")
			break
		}
		q.p.write(q.p.layout(s.plain, "", 2, s.dim.Render("│"), clip(cleanLine(line), 120)) + "\n")
	}
}

func (q *Prompt) confirm(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
	// Only a gate that knows the value offers to remember it.
	always := strings.Contains(string(t.Choices), string(permission.Always))
	choices := "[y]es, [n]o"
	if always {
		choices += ", [a]lways in this run"
	}
	if t.Params != "" {
		choices += ", [v]iew all"
	}
	present, edits := q.editable(t)
	if edits {
		choices += ", [e]dit"
	}
	for {
		q.cue(choices)
		text, err := q.line(ctx)
		if err != nil {
			return phase.Answer{}, err
		}
		word, reason, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			return once(t), nil
		case "e", "edit":
			if !edits {
				continue
			}
			args, err := q.edit(ctx, present)
			if err != nil {
				return phase.Answer{}, err
			}
			if args != "" {
				answer := once(t)
				answer.Args, answer.Reason = args, "at the terminal, with other arguments"
				return answer, nil
			}
		case "n", "no", "":
			answer := phase.Answer{Reason: "at the terminal"}
			if reason = strings.TrimSpace(reason); reason != "" {
				answer.Reason = reason
			}
			return answer, nil
		case "v", "view":
			q.show(t, math.MaxInt)
		case "a", "always":
			if always {
				return phase.Answer{Approved: true, Reason: "at the terminal, for the whole run", Value: permission.Always}, nil
			}
		}
	}
}

// once is the yes to a call that says nothing about later ones.
func once(t gate.Ticket) phase.Answer {
	answer := phase.Answer{Approved: true, Reason: "at the terminal"}
	if list := Choices(t); len(list) == 0 || slices.Contains(list, "once") {
		answer.Value = `"once"`
	}
	return answer
}

// line reads a line and, unless the terminal did, shows it.
func (q *Prompt) line(ctx context.Context) (string, error) {
	if q.keys.Line != nil {
		return q.keys.Line(ctx, q.said, "")
	}
	text, err := q.in.line(ctx)
	if err == nil && !q.keys.Echoes {
		q.p.write(cleanLine(text) + "\n")
	}
	return text, err
}

// cue writes what can be typed and stays on the line, or keeps it for Keyboard.Line.
func (q *Prompt) cue(choices string) {
	s := q.p.s
	if q.keys.Line == nil {
		q.p.write(q.p.layout(s.note, "your turn", 2, s.dim.Render(choices)) + " " + s.note.Render("›") + " ")
		return
	}
	label, lines := "your turn", []string(nil)
	for _, part := range q.p.broken(choices, 2) {
		lines = append(lines, q.p.layout(s.note, label, 2, s.dim.Render(part)))
		label = ""
	}
	q.said = strings.Join(lines, "\n")
}

// lineReader reads lines in a goroutine of its own, so that a wait for one can be
// given up. A line that comes later is kept for the next question.
type lineReader struct {
	in    io.Reader
	lines chan lineOrError
}

type lineOrError struct {
	text string
	err  error
}

func (r *lineReader) line(ctx context.Context) (string, error) {
	if r.lines == nil {
		r.lines = make(chan lineOrError)
		go r.read()
	}
	select {
	case l, ok := <-r.lines:
		if !ok {
			return "", io.EOF
		}
		return l.text, l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (r *lineReader) read() {
	defer close(r.lines)
	scan := bufio.NewScanner(r.in)
	for scan.Scan() {
		r.lines <- lineOrError{text: scan.Text()}
	}
	if err := scan.Err(); err != nil {
		r.lines <- lineOrError{err: err}
	}
}
