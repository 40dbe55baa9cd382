package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
)

// plugins takes in the events about what plugins and people did.
func (t *Trace) plugins(c *course, h engine.Header, e engine.Event) bool {
	switch e := e.(type) {
	case engine.HookFinished:
		t.hook(c, h, e)
	case engine.GateVoted:
		began := known(e.Began, c.together("gates"))
		s := t.past(c, gateKind, e.Gate, c.here(""), began, ended(began, e.Duration, h.Time), func(s *span) {
			s.know("decision", e.Decision.String())
			s.fail(e.Error)
			s.knowText("reason", e.Reason)
		})
		t.say(c, s, began, "gate %s says %s in %s%s%s", e.Gate, e.Decision, took(s), then(": ", e.Reason), then(", failed: ", e.Error))
	case engine.ActionFinished:
		t.action(c, h, e)
	case engine.EffectFinished:
		t.effect(c, h, e)
	case engine.TicketOpened:
		t.breakOff(c, c.waits[e.Ticket.ID], h.Time)
		s := t.begin(c, waitKind, "answer", c.here(e.Ticket.Call), h.Time)
		s.know("ticket", e.Ticket.ID)
		s.knowText("asked_by", e.Ticket.Plugin)
		s.knowText("message", e.Ticket.Message)
		c.waits[e.Ticket.ID] = s
		t.say(c, s, h.Time, "%s asks%s", e.Ticket.Plugin, then(": ", e.Ticket.Message))
	case engine.TicketAnswered:
		t.answered(c, h, e)
	default:
		return false
	}
	return true
}

func (t *Trace) action(c *course, h engine.Header, e engine.ActionFinished) {
	parent := c.here("")
	began := later(known(e.Began, h.Time.Add(-max(0, e.Duration))), parent.start)
	if c.pass.IsZero() || began.Before(c.pass) {
		c.pass = began
	}
	s := t.tries(c, actionKind, e.Action, parent, began, h.Time, e.Duration, e.Retries, func(s *span) {
		s.know("plugin", e.Plugin)
		s.know("round", e.Round)
		s.know("status", string(e.Status))
		s.fail(e.Error)
	})
	t.say(c, s, began, "action %s of %s took %s in round %d%s", e.Action, e.Plugin, length(e.Duration), e.Round, then(", "+string(e.Status)+": ", e.Error))
}

// tries are the spans of what was called once, or again after conflicts; took is how long
// all the calls were. It returns the first.
func (t *Trace) tries(c *course, k kind, name string, parent *span, began, told time.Time, took time.Duration, retries []engine.Retry, know func(*span)) *span {
	for _, r := range retries {
		took -= max(0, r.Duration)
	}
	first := t.past(c, k, name, parent, began, ended(began, max(0, took), told), know)
	before := first
	for i, r := range retries {
		from := later(r.Began, before.end)
		again := t.past(c, k, name+", retry", parent, from, ended(from, max(0, r.Duration), told), func(s *span) {
			know(s)
			s.know("try", i+2)
		})
		if t.chrome != nil {
			t.chrome.arrow(c, "retry", before, again)
		}
		before = again
	}
	return first
}

func (t *Trace) hook(c *course, h engine.Header, e engine.HookFinished) {
	parent := c.here("")
	began := later(known(e.Began, c.together("hooks of tier "+number(e.Tier))), parent.start)
	s := t.tries(c, hookKind, e.Hook, parent, began, h.Time, e.Duration, e.Retries, func(s *span) {
		s.know("tier", e.Tier)
		s.know("status", string(e.Status))
		if e.Calls > 1 {
			s.know("calls", e.Calls)
		}
		if e.Slow {
			s.know("slow", true)
		}
		s.fail(e.Error)
	})
	c.since = h.Time
	var more strings.Builder
	if e.Tier != 0 {
		more.WriteString(" in tier " + number(e.Tier))
	}
	if e.Calls > 1 {
		more.WriteString(", " + number(e.Calls) + " calls")
	}
	if e.Slow {
		more.WriteString(", slow")
	}
	if e.Status != engine.HookCommitted {
		more.WriteString(", " + string(e.Status))
	}
	t.say(c, s, began, "hook %s took %s%s%s", e.Hook, length(e.Duration), more.String(), then(": ", e.Error))
}

func (t *Trace) effect(c *course, h engine.Header, e engine.EffectFinished) {
	parent := c.here("")
	// One that was delivered in the background is told of when the run is at its end.
	beside := parent == c.run
	began := later(known(e.Began, h.Time.Add(-max(0, e.Duration))), parent.start)
	text, marked := t.marked, t.marked != ""
	s := t.begin(c, effectKind, e.Effect, parent, began)
	s.beside = beside
	s.know("plugin", e.Plugin)
	s.knowText("handler", e.Handler)
	s.fail(e.Error)
	if marked {
		s.know("mark", clip(text))
	}
	t.end(c, s, ended(began, max(0, e.Duration), h.Time))
	if marked {
		t.say(c, s, h.Time, "mark of %s: %s", e.Plugin, clip(text))
		return
	}
	t.say(c, s, began, "effect %s of %s took %s%s", e.Effect, e.Plugin, length(e.Duration), then(", failed: ", e.Error))
}

func (t *Trace) answered(c *course, h engine.Header, e engine.TicketAnswered) {
	how := "no"
	if e.Approved {
		how = "yes"
	}
	s := c.waits[e.Ticket]
	if s == nil { // it was asked before the run was suspended
		t.note(c, h, c.here(e.Call), "answered", "answered %s by %s%s", how, e.By, then(": ", e.Reason))
		return
	}
	delete(c.waits, e.Ticket)
	s.know("approved", e.Approved)
	s.know("by", e.By)
	t.end(c, s, h.Time)
	t.say(c, s, h.Time, "answered %s by %s after %s%s", how, e.By, took(s), then(": ", e.Reason))
}

// notes takes in the events that take no time.
func (t *Trace) notes(c *course, h engine.Header, e engine.Event) {
	note := func(call, name, format string, args ...any) { t.note(c, h, c.here(call), name, format, args...) }
	switch e := e.(type) {
	case engine.Committed:
		if t.chrome != nil {
			t.chrome.instant(c, fmt.Sprint("commit ", h.Revision), h.Time, committed(e))
		}
	case engine.Conflict:
		note("", "conflict", "conflict over %s: %s before %s, which was %s", e.Key+then("/", e.Entry), e.Winner, e.Loser, e.Fate)
	case engine.RoundFinished:
		if t.chrome != nil && c.phase != nil {
			from := later(c.passed, c.phase.start)
			if !c.pass.IsZero() {
				from = later(from, c.pass)
			}
			t.chrome.round(c, e.Round, from, later(h.Time, from), e.Actions)
		}
		c.pass, c.passed = time.Time{}, h.Time
		note("", "round", "round %d: %s", e.Round, count(e.Actions, "action"))
	case engine.GateResolved:
		why := string(e.Cause)
		if e.Cause == gate.Decided {
			why = e.Plugin
		}
		note("", "gates", "gates: %s by %s%s", e.Decision, why, counted(e.Pass-1, ", asked again ", "time"))
	case engine.GateClashed:
		note("", "clash", "clash over %s: %s before %s", e.Clash.Kind, e.Clash.Winner, e.Clash.Loser)
	case engine.CallEdited:
		note("", "edit", "%s changed the arguments", e.Plugin)
	case engine.OverrideApplied:
		fields := make([]string, len(e.Fields))
		for i, f := range e.Fields {
			fields[i] = f.Field + " by " + f.Plugin
		}
		note("", "overrides", "request has %s", strings.Join(fields, ", "))
	case engine.RequestTransformed:
		note("", "transform", "%s transformed the request", e.Plugin)
	case engine.Continued:
		note("", "continued", "goes on%s", then(": ", e.Reason))
	case engine.HandedOff:
		note("", "handoff", "agent %s hands over to %s", e.From, e.To)
	case engine.Warning:
		note("", "warning", "warning%s: %s", then(" of ", e.Plugin), e.Message)
	}
}

// note tells of something that takes no time.
func (t *Trace) note(c *course, h engine.Header, in *span, name, format string, args ...any) {
	text := sayf(format, args...)
	if t.chrome != nil {
		t.chrome.instant(c, name, h.Time, map[string]any{"text": oneLine(text)})
	}
	t.line(c, in, in.depth+1, h.Time, text)
}

// committed is what the picture tells of a commit.
func committed(e engine.Committed) map[string]any {
	args := map[string]any{"revision": e.Revision}
	if e.Retry {
		args["retry"] = true
	}
	keys := make([]string, 0, mostKeys)
	for _, w := range e.Writes {
		if text := clip(w.Plugin + ": " + w.Key + then("/", w.Entry)); len(keys) < mostKeys && !slices.Contains(keys, text) {
			keys = append(keys, text)
		}
	}
	args["writes"] = len(e.Writes)
	args["keys"] = strings.Join(keys, ", ")
	return args
}

// mostKeys is how many keys of a commit the picture tells of.
const mostKeys = 20

// known is a time that was told, or else one that it is guessed to be.
func known(told, guess time.Time) time.Time {
	if told.IsZero() {
		return guess
	}
	return told
}

// ended is when something was over that was told of later.
func ended(began time.Time, took time.Duration, told time.Time) time.Time {
	if end := began.Add(took); end.Before(told) {
		return end
	}
	return told
}
