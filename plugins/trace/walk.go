package trace

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// walk takes in the next event.
func (t *Trace) walk(e engine.Event) {
	h := e.Head()
	c := t.course(e)
	switch e.(type) {
	case engine.Committed, engine.Conflict, engine.Warning, engine.HookFinished, engine.GateVoted, engine.InferenceChunk:
		// Part of a group, or of no weight for what comes next.
	default:
		defer func() { c.since, c.group = h.Time, "" }()
	}
	if !t.flow(c, h, e) && !t.plugins(c, h, e) {
		t.notes(c, h, e)
	}
	if c.alone && c.phase == nil && t.courses[c.id] == c {
		t.finish(c, h.Time, "") // what stood in for a run has nothing left to do
	}
}

// flow takes in the events that runs, steps, phases, models and calls begin and end
// with.
func (t *Trace) flow(c *course, h engine.Header, e engine.Event) bool {
	switch e := e.(type) {
	case engine.RunStarted:
		c.run.know("run", h.Run)
		c.run.knowText("input", e.Input)
		t.say(c, c.run, h.Time, "run %s of agent %s%s", h.Run, h.Agent, then(": ", e.Input))
		c.run.shown = true
	case engine.RunResumed:
		t.resumed(c, h)
	case engine.RunFinished:
		c.run.know("reason", string(e.Reason))
		c.run.know("steps", e.Steps)
		c.run.know("tokens", e.Usage.Total())
		c.run.fail(e.Error)
		t.finish(c, h.Time, "run ended: "+string(e.Reason)+then(", ", e.Detail))
	case engine.RunSuspended:
		t.suspended(c, h, len(e.Tickets))
	case engine.StepStarted:
		t.endStep(c, h.Time)
		clear(c.names) // models use an id again in another step
		c.number = h.Step
		c.step = t.begin(c, stepKind, "step", c.run, h.Time)
		c.step.know("step", h.Step)
		t.say(c, c.step, h.Time, "step %d", h.Step)
		c.step.shown = true
	case engine.StepFinished:
		t.endStep(c, h.Time)
	case engine.PhaseStarted:
		t.cut(c, h.Time)
		parent := c.here("")
		if e.Call != "" {
			parent = t.call(c, e.Call, "", h.Time)
		}
		c.phase = t.begin(c, phaseKind, h.Phase.String(), parent, h.Time)
		if e.Hooks > 0 && h.Phase == phase.ToolGate {
			c.phase.know("gates", e.Hooks)
		} else if e.Hooks > 0 {
			c.phase.know("hooks", e.Hooks)
		}
	case engine.PhaseFinished:
		t.endPhase(c, h, e)
	case engine.InferenceStarted:
		c.model = t.breakOff(c, c.model, h.Time)
		c.model = t.begin(c, modelKind, e.Model, c.here(""), h.Time)
		c.first = time.Time{}
		c.model.know("messages", e.Messages)
		c.model.know("tools", e.Tools)
		t.say(c, c.model, h.Time, "model%s: %s, %s", then(" ", e.Model), count(e.Messages, "message"), count(e.Tools, "tool"))
		c.model.shown = true
	case engine.InferenceChunk:
		if c.model != nil && c.first.IsZero() {
			c.first = h.Time
			c.model.know("first_chunk_ms", float64(h.Time.Sub(c.model.start))/float64(time.Millisecond))
		}
	case engine.InferenceFinished:
		for _, call := range e.ToolCalls {
			c.names[call.ID] = call.Name
		}
		t.endModel(c, h, e)
	case engine.ToolStarted:
		s := t.call(c, e.Call.ID, e.Call.Name, h.Time)
		t.breakOff(c, c.bodies[e.Call.ID], h.Time)
		c.bodies[e.Call.ID] = t.begin(c, bodyKind, "body", s, h.Time)
	case engine.ToolFinished:
		t.endCall(c, h, e)
	default:
		return false
	}
	return true
}

// endPhase ends the phase that is open. If nothing happened in it the timeline leaves
// it out.
func (t *Trace) endPhase(c *course, h engine.Header, e engine.PhaseFinished) {
	s := c.phase
	if s == nil {
		return
	}
	c.model, c.phase = t.breakOff(c, c.model, h.Time), nil
	if e.Rounds > 0 {
		s.know("rounds", e.Rounds)
	}
	if e.Retries > 0 {
		s.know("retries", e.Retries)
	}
	s.fail(e.Error)
	t.end(c, s, h.Time)
	if s.shown || s.failed {
		t.say(c, s, h.Time, "%s took %s%s%s%s", s.name, took(s), counted(e.Rounds, ", ", "round"), counted(e.Retries, ", ", "retry"), then(", failed: ", e.Error))
	}
}

func (t *Trace) endModel(c *course, h engine.Header, e engine.InferenceFinished) {
	s := c.model
	if s == nil {
		return
	}
	c.model = nil
	s.know("input_tokens", e.Usage.InputTokens)
	s.know("output_tokens", e.Usage.OutputTokens)
	s.fail(e.Error)
	t.end(c, s, h.Time)
	first := ""
	if !c.first.IsZero() {
		first = ", first chunk after " + length(c.first.Sub(s.start))
	}
	verb := "answered in"
	if s.failed {
		verb = "failed after"
	}
	t.say(c, s, h.Time, "model %s %s%s, %d tokens in and %d out%s%s", verb, took(s), first,
		e.Usage.InputTokens, e.Usage.OutputTokens, counted(len(e.ToolCalls), ", asks for ", "call"), then(": ", e.Error))
}

func (t *Trace) endCall(c *course, h engine.Header, e engine.ToolFinished) {
	id := e.Call.ID
	s := t.call(c, id, e.Call.Name, h.Time)
	inside := "its body did not run"
	if body := c.bodies[id]; body != nil {
		delete(c.bodies, id)
		t.end(c, body, ended(body.start, e.Duration, h.Time))
		inside = "its body " + took(body)
	}
	delete(c.calls, id)
	s.failed = e.Result.IsError
	s.know("outcome", string(e.Result.Outcome))
	t.end(c, s, h.Time)
	t.say(c, s, h.Time, "call %s %s: %s in %s, %s", s.name, id, e.Result.Outcome, took(s), inside)
}

func (t *Trace) endStep(c *course, at time.Time) {
	t.cut(c, at)
	t.endCalls(c, at)
	s := c.step
	if s == nil {
		return
	}
	c.step = nil
	t.end(c, s, at)
	t.say(c, s, at, "step %d took %s", c.number, took(s))
}

// endCalls ends what is open of tool calls. Nobody has waited yet for an answer that is
// open: what comes after the question is time of others.
func (t *Trace) endCalls(c *course, at time.Time) {
	for _, open := range []map[string]*span{c.waits, c.bodies, c.calls} {
		for _, id := range slices.Sorted(maps.Keys(open)) {
			if s := open[id]; s.kind == waitKind {
				t.breakOff(c, s, s.start)
			} else {
				t.breakOff(c, s, at)
			}
			delete(open, id)
		}
	}
}

// cut ends the phase and the model call that are open.
func (t *Trace) cut(c *course, at time.Time) {
	c.model = t.breakOff(c, c.model, at)
	c.phase = t.breakOff(c, c.phase, at)
}

// breakOff ends a span, if there is one, whose end was not told. It returns nil.
func (t *Trace) breakOff(c *course, s *span, at time.Time) *span {
	if s != nil {
		s.know("open", true)
		t.end(c, s, at)
	}
	return nil
}

// finish ends a run and everything that is open of it.
func (t *Trace) finish(c *course, at time.Time, how string) {
	t.endStep(c, at)
	t.end(c, c.run, at)
	if how != "" {
		t.say(c, c.run, at, "%s, after %s", clip(how), took(c.run))
	}
	delete(t.courses, c.id)
	if c.root != c {
		return
	}
	for id, other := range t.courses {
		if other.root == c {
			delete(t.courses, id) // its end was not told
		}
	}
	t.roots--
	if !c.alone {
		t.summary(c)
	}
}

func (t *Trace) suspended(c *course, h engine.Header, tickets int) {
	if len(t.asleep) >= mostNaps {
		oldest := ""
		for id, n := range t.asleep {
			if oldest == "" || n.at.Before(t.asleep[oldest].at) {
				oldest = id
			}
		}
		delete(t.asleep, oldest)
	}
	t.asleep[c.id] = nap{h.Time, c.names}
	c.run.know("waiting", tickets)
	t.finish(c, h.Time, "run waits for "+count(tickets, "answer"))
}

func (t *Trace) resumed(c *course, h engine.Header) {
	t.endStep(c, h.Time)
	c.run.know("run", h.Run)
	c.run.know("resumed", true)
	slept := ""
	if n, ok := t.asleep[c.id]; ok {
		delete(t.asleep, c.id)
		c.names = n.names
		slept = ", which waited " + length(h.Time.Sub(n.at)) + " for people"
		c.run.sum.waited = max(0, h.Time.Sub(n.at))
		if t.chrome != nil {
			t.chrome.slept(c, n.at, h.Time)
		}
	}
	t.say(c, c.run, h.Time, "run %s of agent %s goes on%s", h.Run, h.Agent, slept)
	c.run.shown = true
	if h.Step > 0 { // in the middle of it
		c.number = h.Step
		c.step = t.begin(c, stepKind, "step", c.run, h.Time)
		c.step.know("step", h.Step)
		t.say(c, c.step, h.Time, "step %d, the rest", h.Step)
		c.step.shown = true
	}
}

// abandon ends the runs whose end was not told, those that were delegated first.
func (t *Trace) abandon() {
	open := slices.SortedFunc(maps.Values(t.courses), func(a, b *course) int {
		return cmp.Or(b.run.depth-a.run.depth, cmp.Compare(a.id, b.id))
	})
	for _, c := range open {
		if t.courses[c.id] == c {
			c.run.know("open", true)
			t.finish(c, later(c.since, c.run.start), "the trace was closed before the run's end")
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
