package recording

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// run is a run and what is open of it.
type run struct {
	Run
	item
	top      string // the run at the top of those that delegated
	thread   *thread
	started  bool      // its start was told
	headless bool      // it was resumed, and what came before is unknown
	alone    bool      // something that somebody did to a thread outside a run
	last     time.Time // of its events
	rev      uint64    // of the last event

	span    *span // its own
	step    *span
	model   *span
	chunked bool // the model's answer has begun to come
	phases  []*during
	broken  []*during        // phases whose end was not told yet when the step ended
	calls   map[string]*call // of the step, by the model's id
	waits   map[string]*span // by ticket
	found   []found          // its base, if that has something that may turn out to be a table

	children int // spans so far
	prefix   string
	baseline *baseline
	begins   bool              // the engine's first commit is still to come
	resets   uint64            // revision of the base, from which the engine then clears
	cleared  []string          // these keys
	handlers map[string]string // plugins by the action that they handle
}

// during is a phase while it goes on.
type during struct {
	span   *span
	phase  phase.Phase
	call   string
	tier   int
	base   uint64             // revision that the tier or round began with
	now    uint64             // revision at the last event
	merged *commit            // the tier's or round's commit
	by     map[string]*commit // the commits that hooks have something in
	lost   []*conflict        // of the tier or round, in order
	rounds []*span
}

// span is a Span that may change.
type span struct {
	Span
	item
	began time.Time
}

// runOf returns what is known of the event's run.
func (r *Recording) runOf(e engine.Event, h engine.Header) *run {
	x := r.byRun[h.Run]
	_, starts := e.(engine.RunStarted)
	if x != nil && !(starts && x.started) {
		return x
	}
	x = &run{
		Run: Run{ID: r.unique("run ", h.Run), Parent: h.Parent, Agent: h.Agent, Status: string(phase.Running),
			Start: r.micros(h.Time), BaseRev: h.Revision},
		item: item{index: int32(len(r.runs))}, top: r.top(h), last: h.Time, rev: h.Revision,
		prefix: strconv.Itoa(len(r.runs)) + ".", calls: map[string]*call{}, waits: map[string]*span{}, handlers: map[string]string{},
	}
	x.thread = r.threadOf(h, starts)
	x.Thread = x.thread.id
	r.runs = append(r.runs, x)
	r.byRun[h.Run] = x
	r.changed(ofRuns, &x.item)
	name := h.Agent
	switch e.(type) {
	case engine.RunStarted:
	case engine.RunResumed:
		x.headless = true
		r.viewChanged()
	default:
		if x.alone = h.Seq <= 1 && h.Parent == ""; x.alone {
			name, x.Detail = "outside a run", "outside a run"
		}
	}
	x.span = r.open(x, nil, KindRun, name, h.Time)
	x.span.RevBefore = h.Revision
	if body := r.delegating(h); body != nil {
		x.span.Parent = body.ID
	}
	return x
}

// delegating returns the span of the tool's body that a run works for, nil if that was
// not told. The run has the id of the call.
func (r *Recording) delegating(h engine.Header) *span {
	if parent := r.byRun[h.Parent]; parent != nil && h.Parent != "" {
		for _, c := range parent.calls {
			if c.ID == h.Run {
				return c.body
			}
		}
	}
	return nil
}

// open begins a span.
func (r *Recording) open(x *run, parent *span, kind, name string, at time.Time) *span {
	if len(r.slab) == 0 {
		r.slab = make([]span, 64)
	}
	s := &r.slab[0]
	r.slab = r.slab[1:]
	x.children++
	s.ID, s.Run, s.Kind, s.Name, s.Start, s.Status = x.prefix+strconv.Itoa(x.children), x.ID, kind, name, r.micros(at), statusOpen
	if parent != nil {
		s.Parent, s.Step, s.Phase, s.Call = parent.ID, parent.Step, parent.Phase, parent.Call
	}
	s.began, s.index = at, int32(len(r.spans))
	r.spans = append(r.spans, s)
	r.changed(ofSpans, &s.item)
	return s
}

// Statuses of spans.
const (
	statusOpen     = "open"
	statusOK       = "ok"
	statusFailed   = "failed"
	statusConflict = "conflict"
	statusRetried  = "retried"
	statusWaiting  = "waiting"
	statusUnknown  = "unknown" // its end was not told
)

// close ends a span.
func (r *Recording) close(s *span, at time.Time, status string) {
	if at.Before(s.began) {
		at = s.began
	}
	end := r.micros(at)
	s.End, s.Status = &end, status
	r.changed(ofSpans, &s.item)
}

// past is a span that is told of when it is over.
func (r *Recording) past(x *run, parent *span, kind, name string, from, to time.Time, status string) *span {
	s := r.open(x, parent, kind, name, from)
	r.close(s, to, status)
	return s
}

// mark is a moment.
func (r *Recording) mark(x *run, parent *span, name, text string, at time.Time) *span {
	s := r.past(x, parent, KindMark, name, at, at, statusOK)
	s.Text = clip(text, longText)
	return s
}

// know adds a fact to a span. The facts that were given out stay as they are.
func (r *Recording) know(s *span, name string, value any) {
	facts := maps.Clone(s.Facts)
	if facts == nil {
		facts = make(map[string]any, 1)
	}
	facts[name] = value
	s.Facts = facts
	r.changed(ofSpans, &s.item)
}

// breakOff ends an open span whose end was not told.
func (r *Recording) breakOff(s *span, at time.Time) {
	if s != nil && s.End == nil {
		r.close(s, at, statusUnknown)
		if s.Text == "" {
			s.Text = "its end was not told"
		}
	}
}

// here is the span that something of the run happens in, besides a phase.
func (x *run) here() *span {
	if x.step != nil {
		return x.step
	}
	return x.span
}

// in returns the phase that is going on, of those of one name the last.
func (x *run) in(p phase.Phase) *during {
	if p == 0 {
		return nil
	}
	for i := len(x.phases) - 1; i >= 0; i-- {
		if x.phases[i].phase == p {
			return x.phases[i]
		}
	}
	return nil
}

// within returns the span of the phase, or else where the run is.
func (x *run) within(p phase.Phase) *span {
	if d := x.in(p); d != nil {
		return d.span
	}
	return x.here()
}

// breakPhases ends the phases whose ends were not told.
func (r *Recording) breakPhases(x *run, at time.Time) {
	for _, d := range x.phases {
		for _, s := range d.rounds {
			r.breakOff(s, at)
		}
		r.breakOff(d.span, at)
	}
	x.broken = append(x.broken, x.phases...)
	if n := len(x.broken); n > 8 {
		x.broken = slices.Clone(x.broken[n-8:])
	}
	x.phases = nil
}

// breakStep ends what is open of the step.
func (r *Recording) breakStep(x *run, at time.Time) {
	r.breakPhases(x, at)
	r.breakOff(x.model, at)
	x.model = nil
	for _, id := range slices.Sorted(maps.Keys(x.waits)) {
		r.breakOff(x.waits[id], at)
		delete(x.waits, id)
	}
	for _, id := range slices.Sorted(maps.Keys(x.calls)) {
		c := x.calls[id]
		r.breakOff(c.body, at)
		r.breakOff(c.span, at)
		c.body = nil
	}
	clear(x.calls)
	r.breakOff(x.step, at)
	x.step = nil
}
