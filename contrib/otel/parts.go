package otel

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
)

// parts takes in the events about what plugins and people did.
func (o *Observer) parts(c *course, h engine.Header, e engine.Event) bool {
	switch e := e.(type) {
	case engine.HookFinished:
		s := o.tries(c, c.here(""), "hook "+e.Hook, e.Hook, effort{h.Time, e.Began, e.Duration, e.Retries},
			attribute.String("fixpoint.plugin", o.clean(e.Plugin)), attribute.String("fixpoint.hook", o.clean(e.Hook)), attribute.Int("fixpoint.hook.tier", e.Tier))
		s.know(attribute.String("fixpoint.hook.status", o.clean(string(e.Status))))
		if e.Slow {
			s.know(attribute.Bool("fixpoint.hook.slow", true))
		}
		if e.Error != "" {
			s.fail("hook_error", e.Error)
		}
		s.end(s.ended)
		c.quiet = h.Time
		o.meters.hook(e.Plugin, e.Hook, h.Phase, string(e.Status), e.Duration, len(e.Retries))
	case engine.ActionFinished:
		parent := c.here("")
		if e.Round > 0 && c.phase != nil {
			parent = o.round(c, e.Round)
		}
		s := o.tries(c, parent, "action "+e.Action, e.Action, effort{h.Time, e.Began, e.Duration, e.Retries},
			attribute.String("fixpoint.plugin", o.clean(e.Plugin)), attribute.String("fixpoint.action", o.clean(e.Action)))
		s.know(attribute.String("fixpoint.action.status", o.clean(string(e.Status))))
		s.know(o.stated("fixpoint.gate.plugin", e.By, "fixpoint.gate.reason", e.Reason)...)
		if e.Error != "" {
			s.fail("action_error", e.Error)
		}
		s.end(s.ended)
		o.meters.retried(e.Plugin, h.Phase, len(e.Retries))
	case engine.RoundFinished:
		s := c.round
		if s == nil && c.phase != nil {
			s = o.round(c, e.Round)
		}
		if s != nil {
			s.know(attribute.Int("fixpoint.round.actions", e.Actions))
			s.open()
			s.end(h.Time)
		}
		c.round, c.quiet = nil, h.Time
	case engine.GateVoted:
		c.call(e.Call, e.Tool, h.Time)
		s := o.tries(c, c.here(e.Call), "gate "+e.Gate, "", effort{h.Time, e.Began, e.Duration, nil},
			attribute.String("fixpoint.plugin", o.clean(e.Plugin)), attribute.String("fixpoint.gate", o.clean(e.Gate)),
			attribute.String("fixpoint.gate.decision", e.Decision.String()))
		s.know(o.stated("fixpoint.gate.reason", e.Reason)...)
		if e.Edits {
			s.know(attribute.Bool("fixpoint.gate.edits", true))
		}
		if e.Error != "" {
			s.fail("gate_error", e.Error)
		}
		s.end(s.ended)
	case engine.EffectFinished:
		s := o.tries(c, c.here(""), "effect "+e.Effect, "", effort{h.Time, e.Began, e.Duration, nil},
			attribute.String("fixpoint.effect", o.clean(e.Effect)), attribute.String("fixpoint.plugin", o.clean(e.Plugin)))
		s.know(o.stated("fixpoint.effect.handler", e.Handler, "fixpoint.effect.id", e.ID.String())...)
		outcome := "ok"
		if e.Error != "" {
			outcome = "error"
			s.fail("effect_error", e.Error)
		}
		s.know(attribute.String("fixpoint.outcome", outcome))
		s.end(s.ended)
		c.quiet = h.Time
		o.meters.effect(e.Effect, outcome)
	case engine.TicketOpened:
		o.asks(c, h, e.Ticket)
	case engine.TicketAnswered:
		o.answered(c, h, e)
	default:
		return false
	}
	return true
}

// round returns the span of the action round that goes on.
func (o *Observer) round(c *course, n int) *span {
	if c.round == nil || c.turn != n {
		c.round = c.round.breakOff(c.quiet)
		c.turn = n
		c.round = c.phase.child("round", c.quiet)
		c.round.know(attribute.Int("fixpoint.round", n))
	}
	return c.round
}

// effort is when somebody was called, and when that was told.
type effort struct {
	told, began time.Time
	took        time.Duration
	again       []engine.Retry
}

// try is a call of somebody that is over.
type try struct {
	*span
	ended time.Time
}

// tries makes a span of each call of somebody and returns that of the last, which is to
// be ended. A retry has a link to the call before it, which tells of the conflict that
// was lost.
func (o *Observer) tries(c *course, parent *span, name, loser string, e effort, attrs ...attribute.KeyValue) try {
	first := max(0, e.took)
	for _, r := range e.again {
		first = max(0, first-r.Duration)
	}
	began, known := e.began, !e.began.IsZero()
	if !known {
		began = later(e.told.Add(-first), parent.start)
	}
	t := try{parent.child(name, began), began.Add(first)}
	t.know(attrs...)
	if !known && e.took > 0 {
		t.know(attribute.Bool("fixpoint.abandoned", true))
	}
	for i, r := range e.again {
		var why []attribute.KeyValue
		if lost := c.lost[loser]; len(lost) > 0 {
			why, c.lost[loser] = o.conflict(lost[0]), lost[1:]
		}
		t.know(attribute.Bool("fixpoint.try.lost", true), attribute.Int("fixpoint.try", i+1))
		t.know(why...)
		former := t.open().SpanContext()
		t.end(t.ended)
		t = try{parent.child(name, r.Began), r.Began.Add(max(0, r.Duration))}
		t.links = []trace.Link{{SpanContext: former, Attributes: why}}
		t.know(attrs...)
		t.know(attribute.Int("fixpoint.try", i+2))
	}
	t.open()
	return t
}

func (o *Observer) asks(c *course, h engine.Header, t gate.Ticket) {
	if w := c.waits[t.ID]; w != nil {
		w.breakOff(h.Time)
	}
	if b := c.bodies[t.Call]; b != nil { // the tool itself asks, or its result is withheld
		if b.done.IsZero() {
			b.done = h.Time
		}
		b.know(attribute.String("fixpoint.tool.outcome", "asked"))
		c.endBody(t.Call, h.Time)
	}
	kind := t.Kind
	if kind == "" {
		kind = gate.Confirm
	}
	s := c.here(t.Call).child("wait "+string(kind), h.Time)
	s.know(attribute.String("fixpoint.ticket.id", o.clean(t.ID)), attribute.String("fixpoint.plugin", o.clean(t.Plugin)))
	s.know(o.quote("fixpoint.ticket.message", t.Message)...)
	s.open()
	c.waits[t.ID] = s
}

func (o *Observer) answered(c *course, h engine.Header, e engine.TicketAnswered) {
	attrs := []attribute.KeyValue{attribute.Bool("fixpoint.answer.approved", e.Approved), attribute.String("fixpoint.answer.by", o.clean(e.By))}
	attrs = append(attrs, o.quote("fixpoint.answer.reason", e.Reason)...)
	if w := c.waits[e.Ticket]; w != nil {
		delete(c.waits, e.Ticket)
		w.know(attrs...)
		w.end(h.Time)
		return
	}
	// It was asked before the run was suspended.
	attrs = append(attrs, attribute.String("fixpoint.ticket.id", o.clean(e.Ticket)))
	at := c.here("")
	if e.Call != "" {
		at = c.call(e.Call, "", h.Time)
	}
	at.note("answered", h.Time, attrs...)
}
