package recording

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// take takes in the next event, with its values encoded.
func (r *Recording) take(e engine.Event) {
	h := e.Head()
	if h.Run == trace.Hidden && h.Agent == trace.Hidden {
		return // all that is left of an event which could not be told; its number is missing
	}
	if !r.begun {
		r.begun, r.zero = true, h.Time.Round(0)
		r.viewChanged()
	}
	if !r.inSequence(e, h) {
		return
	}
	x := r.runOf(e, h)
	if !r.flow(x, h, e) && !r.plugins(x, h, e) {
		r.marks(x, h, e)
	}
	x.last = laterOf(x.last, h.Time)
	x.rev = max(x.rev, h.Revision)
	x.thread.newest = max(x.thread.newest, h.Revision)
	if x.alone && len(x.phases) == 0 {
		end := r.micros(x.last)
		x.Status, x.End = string(phase.Done), &end
		x.span.RevAfter = x.rev
		r.close(x.span, x.last, statusOK)
		r.changed(ofRuns, &x.item)
	}
}

// flow takes in the events that runs, steps, phases and models begin and end with.
func (r *Recording) flow(x *run, h engine.Header, e engine.Event) bool {
	switch e := e.(type) {
	case engine.RunStarted:
		x.started = true
		x.Mode, x.Input = e.Mode, e.Input
		r.base(x, e.Base, h, true)
		r.changed(ofRuns, &x.item)
	case engine.RunResumed:
		r.resumed(x, h, e)
	case engine.RunSuspended:
		x.Status = string(phase.Waiting)
		for _, s := range []*span{x.span, x.step} {
			if s != nil {
				s.Status = statusWaiting
				r.changed(ofSpans, &s.item)
			}
		}
		for _, t := range e.Tickets {
			r.ticket(r.callOf(x, h, t.Call, ""), t)
		}
		r.mark(x, x.here(), "suspended", "the run waits for "+count(len(e.Tickets), "answer"), h.Time)
		r.changed(ofRuns, &x.item)
	case engine.RunFinished:
		r.finished(x, h, e)
	case engine.StepStarted:
		r.breakStep(x, h.Time)
		x.step = r.open(x, x.span, KindStep, fmt.Sprintf("step %d", h.Step), h.Time)
		x.step.Step, x.step.RevBefore = h.Step, h.Revision
		x.Steps = max(x.Steps, h.Step)
		r.changed(ofRuns, &x.item)
	case engine.StepFinished:
		if s := x.step; s != nil {
			x.step = nil
			s.RevAfter = h.Revision
			r.close(s, h.Time, statusOK)
		}
		r.breakStep(x, h.Time)
	case engine.PhaseStarted:
		r.phaseStarted(x, h, e)
	case engine.PhaseFinished:
		r.phaseFinished(x, h, e)
	case engine.InferenceStarted:
		r.breakOff(x.model, h.Time)
		s := r.open(x, x.here(), KindModel, cmp.Or(e.Model, "model"), h.Time)
		s.Facts = map[string]any{"messages": e.Messages, "tools": e.Tools}
		x.model, x.chunked = s, false
	case engine.InferenceChunk:
		if s := x.model; s != nil && !x.chunked {
			x.chunked = true
			r.know(s, "first_chunk_ms", millis(h.Time.Sub(s.began)))
		}
	case engine.InferenceFinished:
		r.answered(x, h, e)
	default:
		return false
	}
	return true
}

// millis is a duration with at most three decimals.
func millis(d time.Duration) float64 { return math.Round(float64(d)/float64(time.Microsecond)) / 1000 }

func (r *Recording) resumed(x *run, h engine.Header, e engine.RunResumed) {
	crashed := x.Status == string(phase.Running) && !x.headless
	x.Status, x.End = string(phase.Running), nil
	if crashed { // its process ended: what it was at is not to be heard of any more
		r.breakPhases(x, x.last)
		r.breakOff(x.model, x.last)
		x.model = nil
		for _, c := range x.calls {
			r.breakOff(c.body, x.last)
			c.body = nil
		}
	}
	if x.headless && x.children == 1 {
		r.base(x, e.Base, h, false)
	} else {
		r.rebase(x, e.Base, h)
	}
	if x.step == nil && h.Step > 0 {
		x.step = r.open(x, x.span, KindStep, fmt.Sprintf("step %d", h.Step), h.Time)
		x.step.Step, x.step.RevBefore = h.Step, h.Revision
		x.Steps = max(x.Steps, h.Step)
	}
	for _, s := range []*span{x.span, x.step} {
		if s != nil {
			s.End, s.Status = nil, statusOpen
			r.changed(ofSpans, &s.item)
		}
	}
	text := "the run goes on"
	if crashed {
		text += "; its process had ended"
	}
	r.mark(x, x.here(), "resumed", text, h.Time)
	r.changed(ofRuns, &x.item)
}

func (r *Recording) finished(x *run, h engine.Header, e engine.RunFinished) {
	r.breakStep(x, h.Time)
	end := r.micros(h.Time)
	x.End = &end
	x.Status, x.Reason, x.Detail, x.Error = string(e.Status), string(e.Reason), e.Detail, e.Error
	x.Steps, x.TokensIn, x.TokensOut = e.Steps, e.Usage.InputTokens, e.Usage.OutputTokens
	status := statusOK
	if e.Error != "" {
		status = statusFailed
	}
	x.span.RevAfter = h.Revision
	x.span.Text = clip("ended: "+string(e.Reason)+then(", ", e.Detail), longText)
	r.close(x.span, h.Time, status)
	r.changed(ofRuns, &x.item)
}

func (r *Recording) phaseStarted(x *run, h engine.Header, e engine.PhaseStarted) {
	parent := x.here()
	if e.Call != "" {
		parent = r.callSpan(x, r.callOf(x, h, e.Call, ""), h.Time)
	}
	s := r.open(x, parent, KindPhase, phaseName(h.Phase), h.Time)
	s.Phase, s.Step, s.RevBefore = s.Name, h.Step, h.Revision
	if e.Hooks > 0 && h.Phase == phase.ToolGate {
		s.Facts = map[string]any{"gates": e.Hooks}
	} else if e.Hooks > 0 {
		s.Facts = map[string]any{"hooks": e.Hooks}
	}
	x.phases = append(x.phases, &during{span: s, phase: h.Phase, call: e.Call, base: h.Revision, now: h.Revision})
}

// phaseName is the text of a phase, which an event that somebody made up may not have.
func phaseName(p phase.Phase) string {
	if p == 0 {
		return ""
	}
	return p.String()
}

func (r *Recording) phaseFinished(x *run, h engine.Header, e engine.PhaseFinished) {
	d := removed(&x.phases, h.Phase, e.Call)
	if d == nil {
		d = removed(&x.broken, h.Phase, e.Call) // it goes on beside the run
	}
	if d == nil {
		return
	}
	for _, s := range d.rounds {
		r.breakOff(s, h.Time)
	}
	for _, l := range d.lost {
		r.settle(l)
	}
	s := d.span
	s.RevAfter = h.Revision
	if e.Rounds > 0 {
		r.know(s, "rounds", e.Rounds)
	}
	if e.Retries > 0 {
		r.know(s, "retries", e.Retries)
	}
	status := statusOK
	s.Text = ""
	if e.Error != "" {
		status, s.Text = statusFailed, clip(e.Error, longText)
	}
	r.close(s, h.Time, status)
}

// removed removes the last of the phases that is of that name and call.
func removed(from *[]*during, p phase.Phase, call string) *during {
	list := *from
	for i := len(list) - 1; i >= 0; i-- {
		if d := list[i]; d.phase == p && d.call == call {
			*from = append(list[:i:i], list[i+1:]...)
			return d
		}
	}
	return nil
}

func (r *Recording) answered(x *run, h engine.Header, e engine.InferenceFinished) {
	x.TokensIn += e.Usage.InputTokens
	x.TokensOut += e.Usage.OutputTokens
	if e.Error != "" {
		x.Failed++
	}
	r.changed(ofRuns, &x.item)
	if s := x.model; s != nil {
		x.model = nil
		r.know(s, "tokens_in", e.Usage.InputTokens)
		r.know(s, "tokens_out", e.Usage.OutputTokens)
		status := statusOK
		s.Text = clip(e.Text, longText)
		if e.Error != "" {
			status, s.Text = statusFailed, clip(e.Error, longText)
		} else if s.Text == "" && len(e.ToolCalls) > 0 {
			s.Text = "asks for " + count(len(e.ToolCalls), "call")
		}
		r.close(s, h.Time, status)
	}
	for _, c := range e.ToolCalls {
		r.asked(x, h, c)
	}
}

// marks takes in the events that are only told.
func (r *Recording) marks(x *run, h engine.Header, e engine.Event) {
	in := x.within(h.Phase)
	switch e := e.(type) {
	case engine.OverrideApplied:
		fields := make([]string, len(e.Fields))
		for i, f := range e.Fields {
			fields[i] = f.Field + " by " + f.Plugin
		}
		r.mark(x, in, "overrides", "the request has "+strings.Join(fields, ", "), h.Time)
	case engine.RequestTransformed:
		var what []string
		for _, part := range []struct {
			name    string
			changed bool
		}{{"system prompt", e.System}, {"messages", e.Messages}, {"tools", e.Tools}, {"parameters", e.Params}} {
			if part.changed {
				what = append(what, part.name)
			}
		}
		r.mark(x, in, "transform", e.Plugin+" changed the request's "+listed(what), h.Time).Plugin = e.Plugin
	case engine.Continued:
		r.mark(x, in, "continued", "the run goes on"+then(": ", e.Reason), h.Time)
	case engine.HandedOff:
		r.mark(x, in, "handoff", "agent "+e.From+" hands over to "+e.To, h.Time)
	case engine.Warning:
		s := r.mark(x, in, "warning", e.Message, h.Time)
		s.Plugin, s.Status = e.Plugin, "warning"
	}
}
