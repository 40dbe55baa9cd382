package terminal

import (
	"context"
	"strings"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Pause is a gate.Resolver for when nobody is at the terminal and the run can wait:
// it approves confirmations if All says so, and leaves other questions open.
type Pause struct{ All bool }

// Resolve approves or leaves the question open.
func (p Pause) Resolve(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
	if !p.All || t.Kind != gate.Confirm {
		return phase.Answer{}, gate.ErrLeftOpen
	}
	return Yes{}.Resolve(ctx, t)
}

// Question is an open question with the call that it is about and the command that
// answers it.
type Question struct {
	Ticket  gate.Ticket
	Call    inference.ToolCall
	Command string
}

// Waiting writes the questions that a run waits for. Ids and commands are never
// cut, so that they can be copied.
func (p *Printer) Waiting(all []Question) {
	for _, q := range all {
		p.gap()
		p.Question(q)
	}
}

// Question writes one open question, with the start of its call's arguments.
func (p *Printer) Question(q Question) {
	p.line(p.s.note, "waiting", 0, p.s.bold.Render(clean(q.Call.Name))+":", clean(q.Ticket.Message))
	if q.Call.Args != "" {
		p.line(p.s.dim, "args", 0, p.s.dim.Render(clip(clean(string(q.Call.Args)), 100)))
	}
	p.whole("ticket", q.Ticket.ID)
	p.whole("continue", q.Command)
}

// whole writes a line that is not cut.
func (p *Printer) whole(label, text string) {
	defer p.take()()
	p.write(strings.Repeat(" ", max(0, labelWidth-len(label))) + p.s.bold.Render(label) + "  " + cleanLine(text) + "\n")
}
