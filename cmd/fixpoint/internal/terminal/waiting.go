package terminal

import (
	"context"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Pause is a gate.Resolver for when nobody is at the terminal and the run can wait:
// it approves confirmations if All says so, and leaves other questions open.
type Pause struct {
	All    bool
	Prompt *Prompt // shows what is approved
}

// Resolve approves or leaves the question open.
func (p Pause) Resolve(ctx context.Context, t gate.Ticket) (phase.Answer, error) {
	if !p.All || t.Kind != gate.Confirm {
		return phase.Answer{}, gate.ErrLeftOpen
	}
	return Yes{p.Prompt}.Resolve(ctx, t)
}

// Question is an open question with the call that it is about and the command that
// answers it.
type Question struct {
	Ticket  gate.Ticket
	Call    inference.ToolCall
	Command string
	// Other, if set, is another one, for answers that say more.
	Other string
	Now   time.Time // that the question is shown at
}

// Waiting writes the questions that a run waits for. Ids and commands are never
// cut, so that they can be copied.
func (p *Printer) Waiting(all []Question) {
	for _, q := range all {
		p.gap()
		p.Question(q)
	}
}

// Question writes one open question, with the start of its call's arguments and what
// its answer has to be like.
func (p *Printer) Question(q Question) {
	t := q.Ticket
	p.line(p.s.note, "waiting", 0, p.s.bold.Render(clean(q.Call.Name))+":", clean(t.Message))
	if shown, ok := preview(t); ok {
		back := p.take()
		p.preview(0, shown, pendingLines)
		back()
	} else if q.Call.Args != "" {
		p.line(p.s.dim, "args", 0, p.s.dim.Render(clip(clean(string(q.Call.Args)), 100)))
	}
	p.line(p.s.dim, "kind", 0, strings.ReplaceAll(clean(string(t.Kind)), "_", " "))
	if choices := Choices(t); len(choices) > 0 {
		p.line(p.s.dim, "choices", 0, clip(clean(strings.Join(choices, ", ")), 300))
	}
	shown, approval := preview(t)
	if approval {
		p.line(p.s.dim, "answers", 0, Offers(shown))
	}
	if t.Schema != "" && !approval {
		p.line(p.s.dim, "schema", 0, p.s.dim.Render(clip(clean(string(t.Schema)), 300)))
	}
	if !t.Until.IsZero() {
		p.line(p.s.dim, "default", 0, defaultText(t))
		p.line(p.s.dim, "until", 0, t.Until.Local().Format("2006-01-02 15:04:05 MST"), p.s.dim.Render(untilText(t.Until, q.Now)))
	}
	p.whole("ticket", t.ID)
	p.whole("continue", q.Command)
	if q.Other != "" {
		p.whole("or", q.Other)
	}
}

// defaultText says what counts when nobody answers.
func defaultText(t gate.Ticket) string {
	switch t.Default {
	case gate.DefaultYes:
		if t.Fallback != "" {
			return "yes: " + clip(clean(string(t.Fallback)), 100)
		}
		return "yes"
	case gate.DefaultNo:
		return "no"
	default:
		return "the call is called off"
	}
}

// untilText says how long a question still stands.
func untilText(until, now time.Time) string {
	left := until.Sub(now)
	if left <= 0 {
		return "(its time is over, the default counts: resume the thread)"
	}
	return "(" + round(left).String() + " left)"
}

// whole writes a line that is not cut.
func (p *Printer) whole(label, text string) {
	defer p.take()()
	p.write(strings.Repeat(" ", max(0, labelWidth-len(label))) + p.s.bold.Render(label) + "  " + cleanLine(text) + "\n")
}
