package trace

import (
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// course is what is open of a run.
type course struct {
	id     string
	root   *course // the run that nobody delegated to; itself, often
	lanes  *lanes  // of the root
	alone  bool    // a phase or command outside a run: there will be no end
	number int     // of the step

	run, step, phase, model *span
	first                   time.Time        // chunk of the model's answer
	calls                   map[string]*span // by call id, of the step
	bodies                  map[string]*span
	waits                   map[string]*span  // by ticket
	names                   map[string]string // of tools by call id

	// A round is told of when it is over. It began with the first of its actions, and
	// after the round before.
	pass, passed time.Time

	// Hooks and gates are told of when all of them are over. They began when what
	// came before was over.
	since time.Time
	group string
	began time.Time
}

// nap is when a run was suspended, and what has to be known when it goes on.
type nap struct {
	at    time.Time
	names map[string]string
}

// mostNaps is how many suspended runs are remembered.
const mostNaps = 1024

// here is the span that something happens in, about a call if id is not "".
func (c *course) here(id string) *span {
	if s := c.calls[id]; s != nil && (c.phase == nil || c.phase.parent != s) {
		return s
	}
	for _, s := range []*span{c.model, c.phase, c.step} {
		if s != nil {
			return s
		}
	}
	return c.run
}

// course returns what is open of the event's run.
func (t *Trace) course(e engine.Event) *course {
	h := e.Head()
	if c := t.courses[h.Run]; c != nil {
		return c
	}
	c := &course{id: h.Run, since: h.Time, number: h.Step,
		calls: map[string]*span{}, bodies: map[string]*span{}, waits: map[string]*span{}, names: map[string]string{}}
	var parent *span
	if p := t.courses[h.Parent]; h.Parent != "" && p != nil {
		c.root, c.lanes, parent = p.root, p.lanes, p.here("")
		for id, body := range p.bodies {
			if h.Run == fmt.Sprintf("%s/%d/%s", h.Parent, p.number, id) {
				parent = body
			}
		}
	} else {
		c.root, c.lanes = c, newLanes(h.Run)
		t.roots++
	}
	t.courses[h.Run] = c
	switch e.(type) {
	case engine.RunStarted, engine.RunResumed:
	default:
		c.alone = true
	}
	name := h.Agent
	if c.alone {
		name = "outside a run"
	}
	c.run = t.begin(c, runKind, name, parent, h.Time)
	return c
}

// begin opens a span.
func (t *Trace) begin(c *course, k kind, name string, parent *span, at time.Time) *span {
	s := &span{kind: k, name: name, parent: parent, start: at, sum: &sum{}}
	if parent != nil {
		s.depth = parent.depth + 1
	}
	if t.chrome != nil {
		t.chrome.begin(c, s)
	}
	return s
}

// end closes a span and tells of it.
func (t *Trace) end(c *course, s *span, at time.Time) {
	s.close(at)
	if t.chrome != nil {
		t.chrome.span(c, s)
	}
}

// past is a span that is told of when it is over.
func (t *Trace) past(c *course, k kind, name string, parent *span, from, to time.Time, know func(*span)) *span {
	s := t.begin(c, k, name, parent, from)
	know(s)
	t.end(c, s, to)
	return s
}

// call returns the span of a tool call.
func (t *Trace) call(c *course, id, tool string, at time.Time) *span {
	if tool != "" {
		c.names[id] = tool
	}
	s := c.calls[id]
	if s == nil {
		parent := c.step
		if parent == nil {
			parent = c.run
		}
		s = t.begin(c, callKind, c.names[id], parent, at)
		s.know("call", id)
		c.calls[id] = s
		t.say(c, s, at, "call %s %s", c.names[id], id)
		s.shown = true
	}
	s.name = c.names[id]
	return s
}

// together returns when the members of a group of calls at the same time began.
func (c *course) together(group string) time.Time {
	if c.group != group {
		c.group, c.began = group, c.since
	}
	return c.began
}
