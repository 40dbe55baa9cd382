package terminal

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// answer is what a model says, as it comes.
type answer struct {
	text    lines
	thought lines
	length  int // of the text so far, in bytes
	thinks  bool
	calls   int // that were shown as they began
}

// lines breaks a text that comes in pieces into lines. Empty ones at its ends are left out.
type lines struct {
	label string
	rest  string // of a line that is not complete
	empty int    // lines that wait for another one
	begun bool
}

// progress is what a model does besides saying something: it thinks, or begins a call.
type progress struct {
	after         int // bytes of text
	thought, call string
}

// Tell shows a line about a model or a tool server that is asked, at once if that is seen
// already and else with it. It is safe for concurrent use.
func (v *View) Tell(label, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notes = append(v.notes, note{label: label, text: clip(clean(text), 400)})
	if len(v.answers) > 0 || len(v.tools) > 0 {
		v.tellNotes()
	}
}

// tellNotes shows what was told and is of no effect.
func (v *View) tellNotes() {
	of := func(n note) bool { return n.effect == "" }
	if slices.ContainsFunc(v.notes, of) {
		v.breakOff()
		v.showNotes(of)
	}
}

// breakOff ends the lines of answers, before a line about something else.
func (v *View) breakOff() {
	for _, run := range slices.Sorted(maps.Keys(v.answers)) {
		a := v.answers[run]
		v.write(&a.thought, v.p.s.dim, "", true)
		v.write(&a.text, v.p.s.model, "", true)
	}
}

// Watch returns a model that works as m does, and of whose streams the view shows the
// thoughts, and calls as they begin.
func (v *View) Watch(m inference.Model) inference.Model {
	s, ok := m.(inference.Streamer)
	if !ok {
		return m
	}
	return watched{m, s, v}
}

type watched struct {
	inference.Model
	streamer inference.Streamer
	view     *View
}

func (w watched) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		said := 0
		for c, err := range w.streamer.Stream(ctx, r) {
			if p := (progress{said, c.Reasoning, c.ToolCall.Name}); p.thought != "" || p.call != "" {
				w.view.progress(p)
			}
			said += len(c.Text)
			if !yield(c, err) {
				return
			}
		}
	}
}

// progress shows what a model does once the text before it was shown.
func (v *View) progress(p progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.level == Quiet {
		return
	}
	v.going = append(v.going, p)
	v.showProgress(false)
}

// showProgress shows what is due, or everything.
func (v *View) showProgress(all bool) {
	for len(v.going) > 0 {
		a, p := v.answers[v.asked], v.going[0]
		if a == nil || !all && a.length < p.after {
			return
		}
		v.going = v.going[1:]
		s := v.p.s
		if p.thought != "" && v.verbose() {
			v.write(&a.thought, s.dim, p.thought, false)
		} else if p.thought != "" && !a.thinks {
			v.say(s.dim, "model", s.dim.Render("thinks"))
		}
		a.thinks = a.thinks || p.thought != ""
		if p.call != "" {
			v.breakOff()
			v.say(s.model, "model", "asks for", clean(p.call))
			a.calls++
		}
	}
}

// stream follows the answers of models.
func (v *View) stream(e engine.Event) {
	run := e.Head().Run
	switch e := e.(type) {
	case engine.InferenceStarted:
		v.answers[run] = &answer{text: lines{label: "model"}, thought: lines{label: "thought"}}
		v.asked = run
		v.showProgress(false)
		v.tellNotes()
	case engine.InferenceChunk:
		if a := v.answers[run]; a != nil {
			v.write(&a.thought, v.p.s.dim, "", true)
			v.write(&a.text, v.p.s.model, e.Text, false)
			a.length += len(e.Text)
			v.showProgress(false)
		}
	}
}

// write adds to a text and shows the lines that are complete, or all of it.
func (v *View) write(l *lines, look lipgloss.Style, text string, all bool) {
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if i > 0 {
			v.writeLine(l, look, l.rest)
			l.rest = ""
		}
		l.rest += strings.ReplaceAll(cleanLine(line), "\t", "    ")
	}
	if parts := v.p.broken(l.rest, v.indent()); len(parts) > 1 {
		for _, part := range parts[:len(parts)-1] {
			v.writeLine(l, look, part)
		}
		last := parts[len(parts)-1]
		if strings.HasSuffix(l.rest, " ") && !strings.HasSuffix(last, " ") {
			last += " "
		}
		l.rest = last
	}
	if all && strings.TrimSpace(l.rest) != "" {
		v.writeLine(l, look, l.rest)
		l.rest = ""
	}
}

func (v *View) writeLine(l *lines, look lipgloss.Style, line string) {
	if strings.TrimSpace(line) == "" {
		if l.begun {
			l.empty++
		}
		return
	}
	label := l.label
	if l.begun {
		label = ""
	}
	for ; l.empty > 0; l.empty-- {
		v.say(look, "")
	}
	v.say(look, label, look.Render(strings.TrimRight(line, " ")))
	l.begun = true
}

// finish shows the rest of an answer, and returns what was shown of it.
func (v *View) finish(e engine.InferenceFinished) (a answer) {
	run := e.Head().Run
	p := v.answers[run]
	if p == nil {
		return answer{}
	}
	v.asked = run
	if p.length > 0 && p.length < len(e.Text) { // pieces that were dropped on the way
		v.write(&p.text, v.p.s.model, e.Text[p.length:], false)
	}
	v.showProgress(true)
	v.breakOff()
	v.tellNotes()
	delete(v.answers, run)
	if p.length > 0 && e.Error == "" {
		v.p.remember(e.Text)
	}
	return *p
}
