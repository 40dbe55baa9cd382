package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
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
	held    heldEvents // events of a delegate that runs beside others
}

// tools runs the calls of the step's response and puts exactly one result per
// call into the transcript, in call order, whatever happened. It reports whether
// a call waits for an answer.
func (r *run) tools(ctx context.Context, calls []inference.ToolCall) (waiting bool, err error) {
	if r.agent.Load().spec.ToolExecution == ToolsParallel && len(calls) > 1 {
		waiting, err = r.parallelTools(ctx, calls)
	} else {
		waiting, err = r.sequentialTools(ctx, calls)
	}
	if err != nil || !waiting {
		// Whatever stopped the calls, each that has no result yet gets one.
		err = errors.Join(err, r.closeCalls(ctx, calls))
	}
	return waiting && err == nil, err
}

func (r *run) sequentialTools(ctx context.Context, calls []inference.ToolCall) (waiting bool, err error) {
	for _, call := range calls {
		if ctx.Err() != nil || r.ended() {
			return waiting, context.Cause(ctx)
		}
		p, err := r.prepare(ctx, call)
		if err != nil {
			return waiting, err
		}
		if p.waits {
			waiting = true
			continue
		}
		if p.tool != nil {
			p.pc = r.context(p.sc, r.th.store.Snapshot())
			r.started(p)
			r.body(ctx, p, nil)
			if err := r.record(ctx, p.pc.Snapshot(), p); err != nil {
				return waiting, err
			}
		}
		if err := r.conclude(ctx, p); err != nil {
			return waiting, err
		}
	}
	return waiting, nil
}

// parallelTools decides about every call first, in call order, then runs the
// bodies at the same time on one snapshot and merges their commands like hooks'.
func (r *run) parallelTools(ctx context.Context, calls []inference.ToolCall) (waiting bool, err error) {
	var all, bodies []*passage
	for _, call := range calls {
		if ctx.Err() != nil || r.ended() {
			break
		}
		p, err := r.prepare(ctx, call)
		if err != nil {
			return waiting, err
		}
		if p.waits {
			waiting = true
			continue
		}
		all = append(all, p)
		if p.tool != nil {
			bodies = append(bodies, p)
		}
	}
	if len(bodies) > 0 && !r.ended() {
		snap := r.th.store.Snapshot()
		for _, p := range bodies {
			p.pc = r.context(p.sc, snap)
			r.started(p)
		}
		// A body returns when ctx ends, so there is no need to give up on one here.
		fanOut(context.WithoutCancel(ctx), len(bodies), r.eng.config.Limits.Concurrency,
			func(i int) struct{} { r.body(ctx, bodies[i], &bodies[i].held); return struct{}{} },
			func(error) struct{} { return struct{}{} })
		for _, p := range bodies {
			r.replay(&p.held)
		}
		if err := r.record(ctx, snap, bodies...); err != nil {
			return waiting, err
		}
	} else {
		for _, p := range bodies {
			p.notRun(r.endReason())
		}
	}
	for _, p := range all {
		if err := r.conclude(ctx, p); err != nil {
			return waiting, err
		}
	}
	return waiting, context.Cause(ctx)
}

func lostBody(err error) Output {
	return Output{Content: fmt.Sprintf("interrupted: %v", err), IsError: true}
}

// prepare takes a call up to its body: arguments, gates, BeforeToolExecute.
func (r *run) prepare(ctx context.Context, call inference.ToolCall) (*passage, error) {
	p := &passage{sc: scene{phase: phase.ToolGate, call: call}}
	tool, known := r.tool(call.Name)
	if known {
		p.sc.tool = tool.Spec()
	}
	if err := r.checkArgs(call); err != nil {
		p.fail(inference.OutcomeError, err.Error())
		return p, nil
	}
	v, err := r.toolGate(ctx, p.sc)
	if err != nil {
		return nil, err
	}
	p.sc.call, p.sc.answer = v.call, v.answer
	if v.waits {
		p.waits = true
		return p, nil
	}
	if v.outcome != "" {
		p.outcome = v.outcome
		p.out = Output{Content: v.result.Content, Details: v.result.Details, IsError: v.result.IsError}
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
	if err := r.apply(ctx, p.sc, r.callUpdate(call.ID, func(c *CallState) { c.Status, c.Started = CallRunning, true })); err != nil {
		return nil, err
	}
	if _, err := r.phase(ctx, p.sc); err != nil {
		return nil, err
	}
	if decided, err := r.suspendedMeanwhile(ctx, p); decided || err != nil {
		return p, err
	}
	if r.ended() {
		p.notRun(r.endReason())
		return p, nil
	}
	p.tool = tool
	return p, nil
}

func (p *passage) fail(o inference.Outcome, text string) {
	p.tool, p.outcome, p.out = nil, o, Output{Content: text, IsError: true}
}

func (p *passage) notRun(why string) {
	p.fail(inference.OutcomeNotRun, "not run: "+why)
}

// suspendedMeanwhile handles a call that SuspendCall suspended at
// BeforeToolExecute. decided means that the body will not run now.
func (r *run) suspendedMeanwhile(ctx context.Context, p *passage) (decided bool, err error) {
	c, _ := ToolCalls.Get(r.th.store.Snapshot(), p.sc.call.ID)
	if c.Status != CallSuspended || c.Ticket.ID != "" {
		return false, nil
	}
	v := verdict{call: p.sc.call}
	t, answer, err := r.ask(ctx, p.sc, p.sc.call, c.Ticket.Plugin, asking(c))
	if err != nil {
		return true, err
	}
	if answer == nil {
		p.waits = true
		return true, nil
	}
	done, err := r.take(ctx, p.sc, &v, t, *answer)
	if err != nil {
		return true, err
	}
	if done {
		p.outcome = v.outcome
		p.out = Output{Content: v.result.Content, Details: v.result.Details, IsError: v.result.IsError}
		return true, nil
	}
	p.sc.answer = answer
	return false, r.apply(ctx, p.sc, r.callUpdate(p.sc.call.ID, func(c *CallState) { c.Status = CallRunning }))
}

// tool finds a tool that the agent may call in this step.
func (r *run) tool(name string) (Tool, bool) {
	if r.hidden(name) {
		return nil, false
	}
	for _, t := range r.input.Tools {
		if t.Spec().Name == name {
			return t, true
		}
	}
	t, ok := r.agent.Load().toolByName[name]
	return t, ok
}

func (r *run) unknownTool(name string) string {
	var known []string
	for _, t := range r.offered() {
		known = append(known, t.Name)
	}
	text := fmt.Sprintf("there is no tool %q", name)
	if n := nearest(name, known); n != "" {
		text += fmt.Sprintf("; did you mean %q?", n)
	}
	return text
}

// checkArgs reports what is wrong with a call's arguments, as far as can be told
// without running it.
func (r *run) checkArgs(call inference.ToolCall) error {
	if !call.Args.Valid() {
		return fmt.Errorf("the arguments of %s are not valid JSON", call.Name)
	}
	t, ok := r.tool(call.Name)
	if !ok {
		return nil
	}
	v, ok := t.(Validator)
	if !ok {
		return nil
	}
	return guard(call.Name, phase.ToolGate, func() error { return v.Validate(call.Args) })
}

func (r *run) started(p *passage) {
	r.emit(p.sc, func(h Header) Event { return ToolStarted{Header: h, Call: p.sc.call} })
}

// body runs the tool and classifies how it ended. A body that does not return
// when ctx or its limit ends is left behind. Events of a delegate go to held
// unless that is nil.
func (r *run) body(ctx context.Context, p *passage, held *heldEvents) {
	start := r.now()
	limit := r.eng.config.Limits.ToolTimeout
	if d, ok := p.tool.(*delegate); ok {
		p.out, p.outcome = r.delegated(ctx, d, p.sc.call, held)
		p.took = r.now().Sub(start)
		return
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		bounded, cancel = context.WithTimeoutCause(ctx, limit, &TimeoutError{Plugin: p.sc.call.Name, Phase: p.sc.phase, Limit: limit})
	}
	out, err := detached(bounded, p.sc.call.Name, p.sc.phase, func(ctx context.Context) (Output, error) {
		return p.tool.Call(ctx, p.pc)
	})
	cancel()
	p.took = r.now().Sub(start)
	if err == nil && !out.Details.Valid() {
		err = fmt.Errorf("tool %s returned details that are not JSON", p.sc.call.Name)
	}
	switch {
	case err == nil && !out.IsError:
		p.out, p.outcome = out, inference.OutcomeOK
	case err == nil:
		p.out, p.outcome = out, inference.OutcomeError
	case ctx.Err() != nil:
		p.out, p.outcome = lostBody(context.Cause(ctx)), inference.OutcomeCancelled
	case errors.Is(err, ErrTimeout):
		p.out, p.outcome = Output{Content: fmt.Sprintf("timed out after %s", limit), IsError: true}, inference.OutcomeTimedOut
	default:
		p.out, p.outcome = Output{Content: "error: " + err.Error(), IsError: true}, inference.OutcomeError
	}
}

// record commits what bodies did: their status and their commands, in call order,
// all on the snapshot they worked on. A tool cannot be run again, so a command
// that lost a conflict is refused, and the model is told.
func (r *run) record(ctx context.Context, base *state.Snapshot, ps ...*passage) error {
	ctx, cancel := r.settling(ctx)
	defer cancel()
	lows := make([]lowered, 0, len(ps))
	kept := make([]*passage, 0, len(ps))
	for _, p := range ps {
		low, err := r.lower(&job{owner: callOwner(p.sc.call)}, p.out.Command, base)
		if err != nil {
			p.refuse(err)
			continue
		}
		lows, kept = append(lows, low), append(kept, p)
	}
	for {
		res, err := r.commitLowered(ctx, lows)
		var be *state.BatchError
		if errors.As(err, &be) && be.Index < len(lows) {
			kept[be.Index].refuse(be.Err)
			lows = append(lows[:be.Index], lows[be.Index+1:]...)
			kept = append(kept[:be.Index], kept[be.Index+1:]...)
			continue
		}
		if err != nil {
			return err
		}
		lost := map[int]bool{}
		for _, rej := range res.Rejected {
			lost[rej.Index] = true
			kept[rej.Index].refuse(rej.Err)
			r.conflict(kept[rej.Index].sc, rej.Err, "refused")
		}
		if !res.Committed {
			return nil
		}
		accepted := lows[:0:0]
		for i, low := range lows {
			if !lost[i] {
				accepted = append(accepted, low)
			}
		}
		sc := scene{phase: phase.BeforeToolExecute}
		r.committed(sc, res.Snapshot, accepted)
		r.dispatch.Deliver(ctx, r.deliveries(nil, res.Snapshot, accepted))
		return nil
	}
}

func callOwner(c inference.ToolCall) string { return "call " + c.ID }

// refuse turns the result of a call whose command could not be committed into an
// error that tells so, without hiding what the tool said.
func (p *passage) refuse(err error) {
	p.outcome = inference.OutcomeError
	p.out.IsError = true
	p.out.Content = fmt.Sprintf("the tool ran, but its state changes were refused: %v; call it again if they are needed\n%s", err, p.out.Content)
}

// conclude fires AfterToolExecute and puts the final result into the transcript.
// It works also when the run is being cancelled.
func (r *run) conclude(ctx context.Context, p *passage) error {
	ctx, cancel := r.settling(ctx)
	defer cancel()
	p.sc.phase = phase.AfterToolExecute
	p.sc.result = inference.ToolResult{
		CallID: p.sc.call.ID, Name: p.sc.call.Name,
		Content: p.out.Content, Details: p.out.Details, IsError: p.out.IsError, Outcome: p.outcome,
	}
	_, phaseErr := r.phase(ctx, p.sc)
	result := phase.EditedResult(r.th.store.Snapshot(), p.sc.result)
	err := r.apply(ctx, p.sc,
		r.callUpdate(p.sc.call.ID, func(c *CallState) {
			c.Call, c.Status, c.Result, c.Settled = p.sc.call, endStatus(result), result, true
		}),
		Transcript.Append(inference.ToolMessage(result)))
	if err == nil {
		r.stats.calls.Add(1)
		r.emit(p.sc, func(h Header) Event {
			return ToolFinished{Header: h, Call: p.sc.call, Result: result, Duration: p.took}
		})
	}
	return errors.Join(phaseErr, err)
}

func endStatus(res inference.ToolResult) CallStatus {
	switch res.Outcome {
	case inference.OutcomeOK, inference.OutcomeSubstituted:
		return CallSucceeded
	case inference.OutcomeCancelled, inference.OutcomeNotRun:
		return CallCancelled
	default:
		return CallFailed
	}
}

// closeCalls concludes the calls that were cut off, so that none is left without
// a result.
func (r *run) closeCalls(ctx context.Context, calls []inference.ToolCall) error {
	var errs []error
	why := r.endReason()
	if ctx.Err() != nil {
		why = context.Cause(ctx).Error()
	}
	for _, call := range calls {
		c, _ := ToolCalls.Get(r.th.store.Snapshot(), call.ID)
		if c.Settled {
			continue
		}
		p := &passage{sc: scene{call: c.Call}}
		if t, ok := r.tool(call.Name); ok {
			p.sc.tool = t.Spec()
		}
		p.notRun(why)
		if c.Started {
			p.fail(inference.OutcomeCancelled, "interrupted: "+why)
		}
		errs = append(errs, r.conclude(ctx, p))
	}
	return errors.Join(errs...)
}

// settling returns a context for work that must happen although the run may be
// cancelled, bounded by the grace limit.
func (r *run) settling(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), r.eng.config.Limits.Grace)
}
