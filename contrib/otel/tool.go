package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// patience is how long a tool waits for its span. The Observer gets to know of a call
// right before the tool does, so it only ever waits for the scheduler.
const patience = 100 * time.Millisecond

// Tool returns a tool that does what t does and finds its span in its context, so that
// spans of its own, and requests that it makes to others, become part of the run's
// trace. Give the engine the result, and the Observer to the same engine. A call waits
// at most a tenth of a second for the Observer to have seen it; then, and in agents that
// were delegated to side by side, whose events come late, its context has the span that
// is nearest.
//
// With engine.WithParts, wrap the tool that it gets and not what it returns.
func (o *Observer) Tool(t engine.Tool) engine.Tool {
	w := tool{t, o}
	v, validates := t.(engine.Validator)
	r, recovers := t.(engine.Recoverer)
	switch {
	case validates && recovers:
		return struct {
			tool
			engine.Validator
			engine.Recoverer
		}{w, v, r}
	case validates:
		return struct {
			tool
			engine.Validator
		}{w, v}
	case recovers:
		return struct {
			tool
			engine.Recoverer
		}{w, r}
	}
	return w
}

type tool struct {
	t engine.Tool
	o *Observer
}

func (w tool) Spec() inference.ToolSpec { return w.t.Spec() }

func (w tool) Call(ctx context.Context, pc *phase.Context) (engine.Output, error) {
	return w.t.Call(w.o.within(ctx, pc), pc)
}

// within returns ctx with the span of the call that pc is about.
func (o *Observer) within(ctx context.Context, pc *phase.Context) context.Context {
	run, call := pc.Run(), pc.Call().ID
	span, ready := o.spanOf(run, call, true)
	if ready != nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-ready:
		case <-ctx.Done():
		case <-timer.C:
		}
		span, _ = o.spanOf(run, call, false)
	}
	if span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

// spanOf returns the span of a call's body. If it is not there yet and wait is set, it
// returns what is closed when it is, and else the nearest there is.
func (o *Observer) spanOf(run phase.RunInfo, call string, wait bool) (trace.Span, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, nil
	}
	c := o.courses[run.ID]
	if c == nil {
		if p := o.courses[run.Parent]; run.Parent != "" && p != nil {
			return p.here("").open(), nil
		}
		return nil, nil
	}
	if b := c.bodies[call]; b != nil && c.number == run.Step {
		return b.open(), nil
	}
	if !wait {
		return c.here("").open(), nil
	}
	ready := c.waiters[call]
	if ready == nil {
		ready = make(chan struct{})
		c.waiters[call] = ready
	}
	return nil, ready
}
