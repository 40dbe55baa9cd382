package terminal

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Level says how much of a run is shown.
type Level int

// The levels.
const (
	Quiet   Level = iota - 1 // nothing but questions and the summary
	Normal                   // what was decided, changed, retried and sent
	Verbose                  // every event but the chunks of an answer
)

// View is an engine.Observer that shows the events of runs as they happen. It
// gets them from one goroutine of each run.
type View struct {
	p     *Printer
	level Level

	mu      sync.Mutex
	opened  map[string]chan struct{} // by ticket: closed once the question was shown
	phase   *engine.PhaseStarted     // that has not been shown
	call    string                   // tool call whose lines come now
	calls   map[string]call
	actions []engine.ActionFinished
	writes  []string           // keys that the round wrote
	notes   []note             // that wait for the event of their effect
	answers map[string]*answer // by run: of models that are asked
	asked   string             // the run that asked last
	tools   map[string]bool    // calls that run
	going   []progress         // of models, that waits for the text before it
	// answered says that the gates are asked again because a question was answered.
	answered bool
}

// call is what the model asked for.
type call struct{ name, args string }

// NewView returns a view that writes to p.
func NewView(p *Printer, l Level) *View {
	return &View{p: p, level: l, opened: map[string]chan struct{}{}, calls: map[string]call{}, answers: map[string]*answer{}, tools: map[string]bool{}}
}

// Observe shows an event.
func (v *View) Observe(e engine.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := e.(type) {
	case engine.TicketOpened:
		defer v.release(e.Ticket.ID)
	case engine.CallEdited:
		v.calls[e.Call] = call{v.calls[e.Call].name, string(e.After)}
	case engine.InferenceFinished:
		for _, c := range e.ToolCalls {
			v.calls[c.ID] = call{c.Name, string(c.Args)}
		}
	}
	if v.level > Quiet {
		v.show(e)
	}
	switch e := e.(type) {
	case engine.ToolStarted:
		v.tools[e.Call.ID] = true
		v.tellNotes()
	case engine.ToolFinished:
		delete(v.tools, e.Call.ID)
	case engine.EffectFinished:
		v.showNotes(func(n note) bool { return n.effect == e.Effect })
	case engine.StepFinished, engine.RunFinished, engine.RunSuspended:
		v.showNotes(func(note) bool { return true })
	}
}

// note is a line that the handler of an effect has to show.
type note struct{ effect, label, text string }

// Note keeps a line of the handler of an effect until the event that tells of the
// effect is shown, so that it has its place among the lines.
func (v *View) Note(effect, label, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notes = append(v.notes, note{effect, label, text})
}

func (v *View) showNotes(due func(note) bool) {
	for _, n := range v.notes {
		if due(n) && v.level > Quiet {
			v.say(v.p.s.note, n.label, clean(n.text))
		}
	}
	v.notes = slices.DeleteFunc(v.notes, due)
}

// Remember tells the view of calls that the model asked for in another process.
func (v *View) Remember(calls ...inference.ToolCall) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range calls {
		v.calls[c.ID] = call{c.Name, string(c.Args)}
	}
}

// remembered returns a call that the view was told of or has seen the model ask for.
func (v *View) remembered(id string) (call, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c, ok := v.calls[id]
	return c, ok
}

// wait waits until the ticket has been shown, together with everything that happened
// before.
func (v *View) wait(ctx context.Context, ticket string) error {
	v.mu.Lock()
	shown := v.channel(ticket)
	v.mu.Unlock()
	select {
	case <-shown:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (v *View) channel(ticket string) chan struct{} {
	c, ok := v.opened[ticket]
	if !ok {
		c = make(chan struct{})
		v.opened[ticket] = c
	}
	return c
}

func (v *View) release(ticket string) { close(v.channel(ticket)) }

func (v *View) verbose() bool { return v.level >= Verbose }

// say writes a line inside the current phase, after the phase's own if that has
// not been shown.
func (v *View) say(look lipgloss.Style, label string, parts ...string) {
	v.announce()
	v.p.line(look, label, v.indent(), parts...)
}

// indent is how far the lines of a phase are moved to the right.
func (v *View) indent() int {
	if v.call != "" {
		return 2
	}
	return 1
}

// announce writes the line of a phase in which something happens.
func (v *View) announce() {
	e := v.phase
	if e == nil {
		return
	}
	v.phase = nil
	s := v.p.s
	indent := 0
	if e.Call != "" {
		indent = 1
	}
	what := "hook"
	if e.Head().Phase == phase.ToolGate {
		what = "gate"
	}
	detail := "no " + what + "s"
	if e.Hooks > 0 {
		detail = count(e.Hooks, what)
	}
	v.p.line(s.phase, "phase", indent, s.phase.Render(e.Head().Phase.String()), s.dim.Render("("+detail+")"))
}

// took writes a duration, but only when it is long enough to be of interest.
func (v *View) took(d time.Duration) string {
	if !v.verbose() && d < 100*time.Millisecond {
		return ""
	}
	return v.p.s.dim.Render("(" + round(d).String() + ")")
}

func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	default:
		return d.Round(time.Microsecond)
	}
}

// beginCall writes the line of a tool call when the lines to come are of another
// call than those before.
func (v *View) beginCall(id string) {
	if id == v.call {
		return
	}
	v.call = id
	if id == "" {
		return
	}
	c := v.calls[id]
	name := c.name
	if name == "" {
		name = id
	}
	s := v.p.s
	v.p.line(s.tool, "call", 0, s.tool.Render(clean(name)), s.dim.Render(clip(clean(strings.TrimSpace(c.args)), 100)))
}
