package otel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddd26017/fixpoint/engine"
)

// course is what is open of a run.
type course struct {
	id     string
	root   *course   // the run that nobody delegated to; itself, often
	below  []*course // that it delegated to in this step
	alone  bool      // its beginning was not told, or it is a phase outside a run
	seq    uint64    // of the last event; the root's
	moment uint64    // likewise
	last   time.Time
	over   bool
	number int // of the step

	run, step, phase, round, model *span
	turn                           int       // of the round
	quiet                          time.Time // since when nothing of the phase goes on
	hooks                          int       // of the phase
	asked                          string    // the model's name
	first                          time.Time // chunk of the model's answer
	calls                          map[string]*span
	bodies                         map[string]*body
	waits                          map[string]*span  // by ticket
	names                          map[string]string // of tools by call id
	lost                           map[string][]engine.Conflict
	waiters                        map[string]chan struct{} // for bodies, by call id
}

// body is a tool at work.
type body struct {
	*span
	done time.Time // when it was over at the latest; zero if that is not known
}

// mostLost is how many conflicts of a phase are kept for the retries to tell of.
const mostLost = 1024

// course returns what is open of the event's run.
func (o *Observer) course(e engine.Event) *course {
	h := e.Head()
	c := o.courses[h.Run]
	if c == nil {
		c = o.begin(e)
	}
	root := c.root
	if root.seq > 0 && h.Seq > root.seq+1 {
		o.meters.drop("gap", int64(h.Seq-root.seq-1))
	}
	root.seq, root.moment = max(root.seq, h.Seq), o.moment
	c.last, root.last = later(c.last, h.Time), later(root.last, h.Time)
	return c
}

func (o *Observer) begin(e engine.Event) *course {
	h := e.Head()
	c := &course{id: h.Run, number: h.Step, calls: map[string]*span{}, bodies: map[string]*body{}, waits: map[string]*span{},
		names: map[string]string{}, lost: map[string][]engine.Conflict{}, waiters: map[string]chan struct{}{}}
	c.root = c
	s := &span{words: o.words, tracer: o.tracer, start: h.Time, ctx: context.Background()}
	o.evict()
	if p := o.courses[h.Parent]; h.Parent != "" && p != nil {
		c.root, s.parent = p.root, p.here("")
		p.below = append(p.below, c)
		for id, body := range p.bodies {
			if h.Run == fmt.Sprintf("%s/%d/%s", h.Parent, p.number, id) {
				s.parent = body.span
			}
		}
	}
	o.courses[h.Run], c.run = c, s
	s.know(o.conversation(h)...)
	switch e.(type) {
	case engine.RunStarted, engine.RunResumed:
		s.name = o.clean("invoke_agent " + h.Agent)
		s.know(semconv.GenAIOperationNameInvokeAgent)
	default:
		c.alone, s.name = true, "outside a run"
		return c
	}
	if s.parent == nil {
		for _, id := range []string{h.Thread, h.Run} { // the run's is preferred, and both are used up
			if ctx, ok := o.follows.take(id); ok {
				s.ctx = ctx
			}
		}
		s.ctx = context.WithValue(s.ctx, runKey{}, h.Run)
	}
	if former, ok := o.asleep.take(h.Run); ok {
		s.links = append(s.links, trace.Link{SpanContext: former})
	}
	s.open()
	return c
}

// evict makes room for one more run.
func (o *Observer) evict() {
	for len(o.courses) >= o.opts.MaxRuns {
		roots := slices.DeleteFunc(slices.Collect(maps.Values(o.courses)), func(c *course) bool { return c.root != c })
		o.abandon(slices.MinFunc(roots, func(a, b *course) int { return cmp.Compare(a.moment, b.moment) }))
	}
}

// abandon ends a run whose end was not told.
func (o *Observer) abandon(c *course) {
	c.run.know(unfinished.Bool(true))
	o.finish(c, c.last)
}

// finish ends a run and everything that is open of it, also of runs that it delegated
// to.
func (o *Observer) finish(c *course, at time.Time) {
	delete(o.courses, c.id)
	for _, other := range c.below {
		if o.courses[other.id] == other {
			o.abandon(other)
		}
	}
	c.endStep(at)
	c.forgetWaiters()
	c.run.end(at)
	c.over = true
}

// here is the span that something happens in, about a call if id is not "".
func (c *course) here(id string) *span {
	if s := c.calls[id]; s != nil && (c.phase == nil || c.phase.parent != s) {
		return s
	}
	for _, s := range []*span{c.model, c.round, c.phase, c.step} {
		if s != nil {
			return s
		}
	}
	return c.run
}

// child returns a span below another one.
func (s *span) child(name string, at time.Time) *span {
	return &span{words: s.words, tracer: s.tracer, parent: s, name: s.clean(name), start: at}
}

// call returns the span of a tool call.
func (c *course) call(id, tool string, at time.Time) *span {
	s, known := c.calls[id], c.names[id]
	if s == nil {
		parent := c.step
		if parent == nil {
			parent = c.run
		}
		s = parent.child("call", at)
		s.know(semconv.GenAIToolCallIDKey.String(c.run.clean(id)))
		c.calls[id] = s
		tool, known = cmp.Or(tool, known), ""
	}
	if tool != known && tool != "" {
		c.names[id] = tool
		s.know(semconv.GenAIToolNameKey.String(c.run.clean(tool)))
	}
	return s
}

// endBody ends a body as of the time that is known best.
func (c *course) endBody(id string, at time.Time) {
	if b := c.bodies[id]; b != nil {
		if b.done.IsZero() {
			b.breakOff(at)
		} else {
			b.end(b.done)
		}
		delete(c.bodies, id)
	}
}

// cut ends the phase and the model call that are open.
func (c *course) cut(at time.Time) {
	c.model = c.model.breakOff(at)
	c.round = c.round.breakOff(at)
	c.phase = c.phase.breakOff(at)
	clear(c.lost)
}

func (c *course) endStep(at time.Time) {
	c.cut(at)
	for _, id := range sortedKeys(c.waits) {
		c.waits[id].breakOff(at)
	}
	clear(c.waits)
	for _, id := range sortedKeys(c.bodies) {
		c.endBody(id, at)
	}
	for _, id := range sortedKeys(c.calls) {
		c.calls[id].breakOff(at)
	}
	clear(c.calls)
	clear(c.names) // models use an id again in another step
	if c.step != nil {
		c.step.end(at)
		c.step = nil
	}
	c.below = slices.DeleteFunc(c.below, func(d *course) bool { return d.over })
}

func (c *course) forgetWaiters() {
	for _, ready := range c.waiters {
		close(ready)
	}
	clear(c.waiters)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
