package otel

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// walk takes in the next event.
func (o *Observer) walk(e engine.Event) {
	h := e.Head()
	switch e.(type) {
	case engine.RunStarted, engine.RunResumed:
		if c := o.courses[h.Run]; c != nil {
			o.abandon(c) // its end was not told
		}
	}
	c := o.course(e)
	if !o.flow(c, h, e) && !o.parts(c, h, e) {
		o.notes(c, h, e)
	}
	if c.alone && c.phase == nil && c.step == nil && c.model == nil && len(c.calls) == 0 && o.courses[c.id] == c {
		o.finish(c, h.Time) // what stood in for a run has nothing left to do
	}
}

// flow takes in the events that runs, steps, phases, models and calls begin and end
// with.
func (o *Observer) flow(c *course, h engine.Header, e engine.Event) bool {
	switch e := e.(type) {
	case engine.RunStarted:
		c.run.know(o.stated("fixpoint.run.mode", e.Mode, "fixpoint.run.adapter", e.Adapter)...)
		if o.opts.Content && e.Input != "" {
			c.run.know(semconv.GenAIInputMessagesKey.String(o.message("user", e.Input, nil, "")))
		}
	case engine.RunResumed:
		c.run.know(attribute.Bool("fixpoint.run.resumed", true))
		if h.Step > 0 && c.step == nil { // in the middle of it
			o.step(c, h)
		}
	case engine.RunFinished:
		o.runFinished(c, h, e)
	case engine.RunSuspended:
		c.run.know(attribute.String("fixpoint.run.status", string(phase.Waiting)), attribute.Int("fixpoint.run.tickets", len(e.Tickets)))
		o.meters.run(h.Agent, string(phase.ReasonWaiting))
		if s := c.run.open().SpanContext(); s.IsValid() {
			o.asleep.put(c.id, s, o.moment)
		}
		o.finish(c, h.Time)
	case engine.StepStarted:
		c.endStep(h.Time)
		o.step(c, h)
	case engine.StepFinished:
		c.endStep(h.Time)
	case engine.PhaseStarted:
		o.phaseStarted(c, h, e)
	case engine.PhaseFinished:
		o.phaseFinished(c, h, e)
	case engine.InferenceStarted:
		c.model = c.model.breakOff(h.Time)
		name := "chat"
		if e.Model != "" {
			name += " " + e.Model
		}
		c.model = c.here("").child(name, h.Time)
		c.model.kind = trace.SpanKindClient
		c.asked, c.first = e.Model, time.Time{}
		c.model.know(semconv.GenAIOperationNameChat, semconv.GenAIProviderNameKey.String(o.clean(o.meters.provider(e.Model))),
			attribute.Int("fixpoint.request.messages", e.Messages), attribute.Int("fixpoint.request.tools", e.Tools))
		c.model.know(o.stated(string(semconv.GenAIRequestModelKey), e.Model)...)
		c.model.know(o.conversation(h)...)
		c.model.open()
	case engine.InferenceChunk:
		if c.model != nil && c.first.IsZero() {
			c.first = h.Time
			c.model.know(semconv.GenAIRequestStreamKey.Bool(true),
				semconv.GenAIResponseTimeToFirstChunkKey.Float64(max(0, h.Time.Sub(c.model.start).Seconds())))
		}
	case engine.InferenceFinished:
		o.inferenceFinished(c, h, e)
	case engine.ToolStarted:
		o.toolStarted(c, h, e)
	case engine.ToolFinished:
		o.toolFinished(c, h, e)
	default:
		return false
	}
	return true
}

func (o *Observer) step(c *course, h engine.Header) {
	c.number = h.Step
	c.step = c.run.child("step", h.Time)
	c.step.know(attribute.Int("fixpoint.step", h.Step))
	c.step.open()
}

func (o *Observer) runFinished(c *course, h engine.Header, e engine.RunFinished) {
	c.run.know(attribute.String("fixpoint.run.status", o.clean(string(e.Status))), attribute.String("fixpoint.run.reason", o.clean(string(e.Reason))),
		attribute.Int("fixpoint.run.steps", e.Steps), attribute.Int64("fixpoint.revision", int64(h.Revision)))
	c.run.know(tokens(e.Usage)...)
	c.run.know(o.quote("fixpoint.run.detail", e.Detail)...)
	class := ""
	if e.Error != "" || e.Reason == phase.ReasonError {
		class = string(e.Reason)
		c.run.fail(class, e.Error)
	}
	o.meters.run(h.Agent, string(e.Reason))
	if !c.alone {
		o.meters.operation(semconv.GenAIOperationNameInvokeAgent, e.Duration, "", class, semconv.GenAIAgentNameKey, h.Agent)
	}
	o.finish(c, h.Time)
}

func (o *Observer) phaseStarted(c *course, h engine.Header, e engine.PhaseStarted) {
	c.cut(h.Time)
	parent := c.here("")
	if e.Call != "" {
		parent = c.call(e.Call, "", h.Time)
		if b := c.bodies[e.Call]; b != nil && h.Phase == phase.AfterToolExecute {
			b.done = h.Time
		}
	}
	c.phase = parent.child("phase "+h.Phase.String(), h.Time)
	c.phase.know(attribute.String("fixpoint.phase", h.Phase.String()), attribute.Int("fixpoint.phase.hooks", e.Hooks))
	c.quiet, c.hooks = h.Time, e.Hooks
	if o.opts.EmptyPhases {
		c.phase.open()
	}
}

func (o *Observer) phaseFinished(c *course, h engine.Header, e engine.PhaseFinished) {
	if c.phase == nil {
		return
	}
	s := c.phase
	s.know(attribute.Int("fixpoint.phase.rounds", e.Rounds), attribute.Int("fixpoint.phase.retries", e.Retries))
	if e.Error != "" {
		s.fail("phase_error", e.Error)
	}
	if c.hooks > 0 || e.Rounds > 0 {
		o.meters.phase(h.Phase, e.Rounds)
	}
	c.phase = nil
	c.cut(h.Time)
	s.end(h.Time)
}

func (o *Observer) inferenceFinished(c *course, h engine.Header, e engine.InferenceFinished) {
	for _, call := range e.ToolCalls {
		c.names[call.ID] = call.Name
	}
	s := c.model
	if s == nil {
		return
	}
	c.model = nil
	finish := o.finishReason(e.Stop)
	s.know(tokens(e.Usage)...)
	if finish != "" {
		s.know(semconv.GenAIResponseFinishReasonsKey.StringSlice([]string{finish}))
	}
	if len(e.ToolCalls) > 0 {
		s.know(attribute.Int("fixpoint.response.tool_calls", len(e.ToolCalls)))
	}
	if o.opts.Content {
		s.know(semconv.GenAIOutputMessagesKey.String(o.message("assistant", e.Text, e.ToolCalls, finish)))
	}
	class := ""
	if e.Error != "" {
		class = "model_error"
		s.fail(class, e.Error)
	}
	o.meters.operation(semconv.GenAIOperationNameChat, e.Duration, c.asked, class, "", "")
	o.meters.tokens(c.asked, e.Usage)
	s.end(h.Time)
}

func (o *Observer) toolStarted(c *course, h engine.Header, e engine.ToolStarted) {
	id := e.Call.ID
	call := c.call(id, e.Call.Name, h.Time)
	c.endBody(id, h.Time)
	s := call.child("execute_tool "+e.Call.Name, h.Time)
	s.know(semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolTypeKey.String("function"),
		semconv.GenAIToolNameKey.String(o.clean(e.Call.Name)), semconv.GenAIToolCallIDKey.String(o.clean(id)))
	s.know(o.conversation(h)...)
	s.know(o.quote(semconv.GenAIToolCallArgumentsKey, string(e.Call.Args))...)
	s.open()
	c.bodies[id] = &body{span: s}
	if ready := c.waiters[id]; ready != nil {
		close(ready)
		delete(c.waiters, id)
	}
}

func (o *Observer) toolFinished(c *course, h engine.Header, e engine.ToolFinished) {
	id := e.Call.ID
	s := c.call(id, e.Call.Name, h.Time)
	outcome := string(e.Result.Outcome)
	s.know(attribute.String("fixpoint.tool.outcome", o.clean(outcome)))
	why := ""
	if o.opts.Content {
		why = e.Result.Content
	}
	if e.Result.IsError {
		s.fail(outcome, why)
	}
	if b := c.bodies[id]; b != nil {
		delete(c.bodies, id)
		b.know(attribute.String("fixpoint.tool.outcome", o.clean(outcome)))
		class := ""
		switch e.Result.Outcome {
		case inference.OutcomeError, inference.OutcomeTimedOut, inference.OutcomeCancelled:
			class = outcome
			b.fail(class, why)
		case inference.OutcomeOK:
			b.know(o.quote(semconv.GenAIToolCallResultKey, e.Result.Content)...)
		}
		o.meters.operation(semconv.GenAIOperationNameExecuteTool, e.Duration, "", class, semconv.GenAIToolNameKey, e.Call.Name)
		end := b.start.Add(max(0, e.Duration))
		if end.After(h.Time) {
			end = h.Time
		}
		b.end(end)
	}
	delete(c.calls, id)
	o.meters.call(outcome)
	s.open() // it may have been told of by nothing else
	s.end(h.Time)
}
