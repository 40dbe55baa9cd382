package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// passage is one call on its way through the choke point. Every call of every
// kind takes it: judged, prepared, run, settled.
type passage struct {
	sc      scene
	tool    Tool // nil when the call will not run
	pc      *phase.Context
	out     Output
	outcome inference.Outcome
	took    time.Duration
	waits   bool
	closing bool // nobody is asked any more: the calls are being closed
	refused bool // its command was, after the body ran
	asks    *gate.Ticket
	secrets []phase.Answer // that the body was given
	err     error          // a fault of the run that kept the call from running
	held    heldEvents     // events of a delegate that runs beside others
	crowd   int            // how many delegates are at work with the one that is called
	aside   *aside         // a delegate that was sent off to the background
}

// tools runs the calls of the step's response and puts exactly one result per
// call into the transcript, in call order, whatever happened. It reports whether
// a call waits for an answer.
func (r *run) tools(ctx context.Context, calls []inference.ToolCall) (waiting bool, err error) {
	together := 1
	if r.agent.Load().spec.ToolExecution == ToolsParallel {
		together = len(calls)
	}
	for group := range slices.Chunk(calls, together) {
		if err = context.Cause(ctx); err != nil || r.ended() {
			break
		}
		var waits bool
		if waits, err = r.toolGroup(ctx, group); err != nil {
			break
		}
		waiting = waiting || waits
	}
	if err == nil && waiting && !r.ended() {
		return true, nil
	}
	// Whatever stopped the calls, each that has no result yet gets one.
	return false, errors.Join(err, r.closeCalls(ctx, calls))
}

// toolGroup decides about every call first, in call order, then runs the bodies at
// the same time on one snapshot and merges their commands like hooks'.
func (r *run) toolGroup(ctx context.Context, calls []inference.ToolCall) (waiting bool, err error) {
	var all, bodies []*passage
	for _, call := range calls {
		if ctx.Err() != nil || r.ended() {
			break
		}
		var p *passage
		if p, err = r.prepare(ctx, call); err != nil {
			break
		}
		if p == nil {
			continue
		}
		if p.waits {
			waiting = true
			continue
		}
		all = append(all, p)
		if p.tool != nil {
			bodies = append(bodies, p)
		}
		if err = p.err; err != nil {
			break
		}
	}
	if err == nil && ctx.Err() == nil && !r.ended() {
		err = r.runBodies(ctx, bodies)
	} else {
		why := r.whyStopped(ctx)
		for _, p := range bodies {
			p.notRun(why)
		}
	}
	for _, p := range all {
		if err == nil {
			err = r.converse(ctx, p)
		}
		if p.asks != nil || p.waits || err != nil && p.tool != nil { // closeCalls knows what of it was recorded
			waiting = waiting || p.waits
			continue
		}
		waits, concluded := r.conclude(ctx, p)
		waiting, err = waiting || waits, errors.Join(err, concluded)
	}
	return waiting, cmp.Or(err, context.Cause(ctx))
}

// runBodies runs the bodies at the same time and commits what they did.
func (r *run) runBodies(ctx context.Context, bodies []*passage) error {
	if len(bodies) == 0 {
		return nil
	}
	snap, crowd := r.th.store.Snapshot(), len(r.asides)
	if crowd == 0 { // else state does not know yet what those at work have used
		r.used.Store(Usage.Get(snap).Total())
	}
	for _, p := range bodies {
		if _, ok := unpin(p.tool).(*delegate); ok {
			crowd++
			p.crowd = crowd
		}
		sc := p.sc
		if answer, own := r.forTool(ctx, p); len(own) > 0 || answer != sc.call.Answer {
			sc.about(func(c *phase.CallFrame) { c.Answer, c.Answers = answer, own })
		}
		p.pc = r.context(sc, snap)
		r.emit(p.sc, func(h Header) Event { return ToolStarted{Header: h, Call: p.sc.call.Call} })
	}
	r.out.Rouse()
	if len(bodies) == 1 {
		r.body(ctx, bodies[0], nil)
	} else {
		// A body returns when ctx ends, so there is no need to give up on one here.
		fanOut(context.WithoutCancel(ctx), r.way(nil), len(bodies),
			func(i int) struct{} { r.body(ctx, bodies[i], &bodies[i].held); return struct{}{} },
			func(error) struct{} { return struct{}{} })
	}
	for _, p := range bodies {
		if p.aside != nil {
			r.asides = append(r.asides, p.aside)
		}
		r.replay(&p.held)
	}
	return r.record(ctx, snap, bodies...)
}

func lostBody(err error) Output {
	return Output{Content: fmt.Sprintf("interrupted: %v", err), IsError: true}
}

// prepare takes a call up to its body, from wherever it stands: arguments, gates,
// BeforeToolExecute. It returns nil for a call that has nothing left to do.
func (r *run) prepare(ctx context.Context, call inference.ToolCall) (*passage, error) {
	c := r.callState(call.ID)
	if c.Call.ID != "" {
		call = c.Call // with edited arguments
	}
	about := &phase.CallFrame{Call: call}
	tool, known := r.tool(call.Name)
	if known {
		about.Tool = tool.Spec()
	}
	p := &passage{sc: scene{phase: phase.ToolGate, call: about}}
	switch {
	case c.Settled:
		return nil, nil
	case c.open():
		p.waits = true
		return p, nil
	case c.Ended:
		p.restore(c.Result)
		return p, nil
	case c.Status == CallSuspended: // and the process ended before the question was asked
		p.sc.phase, c.Started = phase.BeforeToolExecute, true
		if decided, err := r.suspendedMeanwhile(ctx, p); decided || err != nil {
			return p, err
		}
		p.sc.phase = phase.ToolGate
	case c.Status == CallResuming:
		v := verdict{call: call}
		last := c.Answers[len(c.Answers)-1]
		if _, err := r.take(ctx, p.sc, &v, last.Ticket, r.withSecret(ctx, last)); err != nil {
			return nil, err
		}
		if p.decided(v) {
			return p, nil
		}
	case c.Status == CallRunning && known:
		// It never is when calls begin, unless the process ended under it.
		if decided, err := r.recover(ctx, p, tool); decided || err != nil {
			return p, err
		}
	}
	if err := r.checkArgs(ctx, p.sc.call.Call); ctx.Err() != nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		p.fail(inference.OutcomeError, err.Error())
		return p, nil
	}
	v, err := r.toolGate(ctx, p.sc)
	if err != nil {
		return nil, err
	}
	if p.decided(v) {
		return p, nil
	}
	if !known {
		p.fail(inference.OutcomeError, r.unknownTool(call.Name))
		return p, nil
	}
	if r.ended() {
		p.notRun(r.endReason())
		return p, nil
	}
	p.sc.phase = phase.BeforeToolExecute
	if err := r.apply(ctx, p.sc, r.callUpdate(call.ID, func(c *CallState) { c.Status = CallRunning })); err != nil {
		return nil, err
	}
	decided := false
	if !c.Started {
		if p.err = r.phase(ctx, p.sc); p.err == nil {
			decided, p.err = r.suspendedMeanwhile(ctx, p)
		}
	}
	switch {
	case ctx.Err() != nil || p.err != nil:
		// Told here, where it is certain that the body did not start.
		p.waits, p.err = false, cmp.Or(context.Cause(ctx), p.err)
		p.notRun(r.whyStopped(ctx))
	case decided:
	case r.ended():
		p.notRun(r.endReason())
	default:
		p.tool = tool
	}
	return p, nil
}

// restore takes over the result that the call has already.
func (p *passage) restore(res inference.ToolResult) {
	p.outcome = res.Outcome
	p.out = Output{Content: res.Content, Details: res.Details, IsError: res.IsError}
}

// decided takes over what v says about the call. It reports whether that settles
// it, for now or for good, so that its body does not run.
func (p *passage) decided(v verdict) bool {
	if c := p.sc.call; v.call != c.Call || v.answer != c.Answer {
		p.sc.about(func(c *phase.CallFrame) { c.Call, c.Answer = v.call, v.answer })
	}
	p.waits = v.waits
	if v.outcome != "" {
		p.outcome = v.outcome
		p.out = Output{Content: v.result.Content, Details: v.result.Details, IsError: v.result.IsError}
	}
	return v.waits || v.outcome != ""
}

func (p *passage) fail(o inference.Outcome, text string) {
	p.tool, p.outcome, p.out = nil, o, Output{Content: text, IsError: true}
}

func (p *passage) notRun(why string) {
	p.fail(inference.OutcomeNotRun, "not run: "+why)
}

// tool finds a tool that the agent may call in this step.
func (r *run) tool(name string) (Tool, bool) {
	if r.hidden(name) {
		return nil, false
	}
	a := r.agent.Load()
	for _, t := range r.input.Tools {
		if t.Spec().Name == name && a.spec.permitsTool(name) {
			return t, true
		}
	}
	t, ok := a.toolByName[name]
	return t, ok
}

func (r *run) unknownTool(name string) string {
	known := each(r.offered(), func(t inference.ToolSpec) string { return t.Name })
	text := fmt.Sprintf("there is no tool %q", name)
	if n := nearest(name, known); n != "" {
		text += fmt.Sprintf("; did you mean %q?", n)
	}
	return text
}

// checkArgs reports what is wrong with a call's arguments, as far as can be told
// without running it.
func (r *run) checkArgs(ctx context.Context, call inference.ToolCall) error {
	if !call.Args.Valid() {
		return fmt.Errorf("the arguments of %s are not valid JSON", call.Name)
	}
	t, ok := r.tool(call.Name)
	if !ok {
		return nil
	}
	v, ok := unpin(t).(Validator)
	if !ok {
		return nil
	}
	if own, ok := v.(interface{ harmless() bool }); ok && own.harmless() {
		return v.Validate(call.Args)
	}
	// Detached, since a validator may hang or end its goroutine like any user code.
	_, err := detached(ctx, r.crew, call.Name, phase.ToolGate, func(context.Context) (struct{}, error) {
		return struct{}{}, v.Validate(call.Args)
	})
	return err
}

// body runs the tool and classifies how it ended. A body that does not return
// when ctx or its limit ends is left behind. Events of a delegate go to held
// unless that is nil.
func (r *run) body(ctx context.Context, p *passage, held *heldEvents) {
	start := r.now()
	limit := r.eng.config.Limits.ToolTimeout
	if d, ok := unpin(p.tool).(*delegate); ok {
		p.out, p.outcome = r.delegate(ctx, d, p, held)
		p.took = r.now().Sub(start)
		return
	}
	bounded, cancel := limited(ctx, limit, &TimeoutError{Plugin: p.sc.call.Call.Name, Phase: p.sc.phase, Limit: limit})
	out, err := detached(bounded, r.crew, p.sc.call.Call.Name, p.sc.phase, func(ctx context.Context) (Output, error) {
		return p.tool.Call(ctx, p.pc)
	})
	expired, late := bounded.Err(), context.Cause(bounded)
	cancel()
	p.took = r.now().Sub(start)
	if err == nil && out.Ask != nil {
		err = r.toolAsks(ctx, p, *out.Ask)
		out.Content, out.Details, out.IsError = "", "", false
	}
	if err == nil && !out.Details.Valid() {
		err = fmt.Errorf("tool %s returned details that are not JSON", p.sc.call.Call.Name)
	}
	switch {
	case err == nil && !out.IsError:
		p.out, p.outcome = out, inference.OutcomeOK
	case err == nil:
		p.out, p.outcome = out, inference.OutcomeError
	case ctx.Err() != nil:
		p.out, p.outcome = lostBody(context.Cause(ctx)), inference.OutcomeCancelled
	case errors.Is(err, late) || errors.Is(err, expired): // this deadline's error, not one of the tool's own
		p.out, p.outcome = Output{Content: fmt.Sprintf("timed out after %s", limit), IsError: true}, inference.OutcomeTimedOut
	default:
		p.out, p.outcome = Output{Content: "error: " + err.Error(), IsError: true}, inference.OutcomeError
	}
	censor(&p.out, p.secrets)
}
