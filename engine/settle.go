package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// record commits what bodies did: their status and their commands, in call order,
// all on the snapshot they worked on. A tool cannot be run again, so a command
// that lost a conflict is refused, and the model is told.
func (r *run) record(ctx context.Context, base *state.Snapshot, ps ...*passage) (err error) {
	ctx, cancel := r.settling(ctx)
	defer cancel()
	batches := make([]state.Batch, 0, len(ps))
	kept := make([]*passage, 0, len(ps))
	for _, p := range ps {
		var b state.Batch
		if err := r.lower(&job{owner: callOwner(p.sc.call.Call)}, &p.out.Command, base, &b); err != nil {
			p.refuse(err)
			continue
		}
		// The result is in the same commit: who has the one has the other.
		b.Updates = append(b.Updates, r.bodyEnded(p))
		batches, kept = append(batches, b), append(kept, p)
	}
	defer func() {
		for _, p := range ps {
			if p.refused && err == nil {
				err = r.apply(ctx, p.sc, r.bodyEnded(p))
			}
		}
	}()
	for {
		res, err := r.th.store.Commit(batches...)
		var be *state.BatchError
		if errors.As(err, &be) && be.Index < len(batches) {
			kept[be.Index].refuse(be.Err)
			batches = slices.Delete(batches, be.Index, be.Index+1)
			kept = slices.Delete(kept, be.Index, be.Index+1)
			continue
		}
		if err != nil {
			return err
		}
		for _, rej := range res.Rejected {
			kept[rej.Index].refuse(rej.Err)
			r.conflict(kept[rej.Index].sc, rej.Err, batches[rej.Index], "refused")
		}
		if !res.Committed {
			return nil
		}
		accepted := batches[:0:0]
		for i, b := range batches {
			if !kept[i].refused {
				accepted = append(accepted, b)
			}
		}
		sc := scene{phase: phase.BeforeToolExecute}
		r.committed(sc, res, accepted)
		r.deliver(ctx, r.deliveries(nil, res.Snapshot, accepted))
		return nil
	}
}

// bodyEnded is the update that keeps what a body gave, before AfterToolExecute has
// its say: the tool must not run again.
// For one that asked it opens the question instead.
func (r *run) bodyEnded(p *passage) state.Update {
	if p.asks != nil {
		t, opened := r.opened(p.sc, p.sc.call.Call, toolOwner(p.sc.call.Call), *p.asks)
		p.asks = &t
		return opened
	}
	return r.callUpdate(p.sc.call.Call.ID, func(c *CallState) { c.Call, c.Ended, c.Result = p.sc.call.Call, true, p.result() })
}

func (p *passage) result() inference.ToolResult {
	return inference.ToolResult{
		CallID: p.sc.call.Call.ID, Name: p.sc.call.Call.Name,
		Content: p.out.Content, Details: p.out.Details, IsError: p.out.IsError, Outcome: p.outcome,
	}
}

func callOwner(c inference.ToolCall) string { return "call " + c.ID }

// refuse turns the result of a call whose command could not be committed into an
// error that tells so, without hiding what the tool said.
func (p *passage) refuse(err error) {
	p.refused, p.asks = true, nil
	defer censor(&p.out, p.secrets)
	p.outcome = inference.OutcomeError
	p.out.IsError = true
	p.out.Content = fmt.Sprintf("the tool ran, but its state changes were refused: %v; call it again if they are needed\n%s", err, p.out.Content)
}

// conclude fires AfterToolExecute and puts the final result into the transcript,
// unless a hook withheld the result until a ticket is answered and it waits for
// that. It works also when the run is being cancelled.
func (r *run) conclude(ctx context.Context, p *passage) (waits bool, err error) {
	settle, cancel := r.settling(ctx)
	defer cancel()
	p.sc.phase = phase.AfterToolExecute
	p.sc.about(func(c *phase.CallFrame) { c.Result = p.result() })
	before := r.callState(p.sc.call.Call.ID)
	var phaseErr error
	if !before.After {
		phaseErr = r.phase(settle, p.sc)
	}
	result := phase.EditedResult(r.th.store.Snapshot(), p.sc.call.Result)
	if phaseErr != nil { // perhaps of who was to take a secret out of it
		result = hidden(result, inference.OutcomeError, "the tool ran, but its result is hidden: a hook that was to look at it failed")
	}
	c := r.callState(p.sc.call.Call.ID)
	switch {
	case c.After && c.Status == CallResuming:
		last := c.Answers[len(c.Answers)-1] // the decision about a withheld result
		result, err = r.answered(settle, p, result, last.Ticket, last.Answer)
	case c.Status != CallSuspended || before.Status == CallSuspended && !before.Ended:
		// Nobody withheld it.
	case ctx.Err() == nil && phaseErr == nil && !r.ended() && !p.closing:
		if result, waits, err = r.withheld(ctx, p, result, c); waits || err != nil {
			return waits, err
		}
	default:
		result = hidden(result, inference.OutcomeCancelled, "withheld: "+r.whyStopped(ctx)+" before anyone released the result")
	}
	if err != nil {
		return false, errors.Join(phaseErr, err)
	}
	err = r.apply(settle, p.sc,
		r.callUpdate(p.sc.call.Call.ID, func(c *CallState) {
			c.Call, c.Status, c.Result = p.sc.call.Call, endStatus(result), result
			c.Ended, c.After, c.Settled = true, true, true
		}),
		Transcript.Append(inference.ToolMessage(result)))
	if err == nil {
		for _, a := range r.callState(p.sc.call.Call.ID).Answers {
			if !strings.Contains(result.Content, a.Answer.Handle) { // else somebody may still need it
				r.forget(settle, a.Answer.Handle)
			}
		}
		r.stats.count(func(s *Stats) { s.ToolCalls++ })
		r.emit(p.sc, func(h Header) Event {
			return ToolFinished{Header: h, Call: p.sc.call.Call, Result: result, Duration: p.took}
		})
	}
	return false, errors.Join(phaseErr, err)
}

// withheld asks the question of WithholdResult, which suspended the call after its
// body. The answer decides what becomes of the result.
func (r *run) withheld(ctx context.Context, p *passage, result inference.ToolResult, c CallState) (_ inference.ToolResult, waits bool, err error) {
	if bad := r.eng.unanswerable(ctx, question(asking(c), p.sc.call.Call)); bad != "" {
		return hidden(result, inference.OutcomeBlocked, "blocked: "+c.Ticket.Plugin+bad), false, nil
	}
	if err := r.apply(ctx, p.sc, r.callUpdate(p.sc.call.Call.ID, func(c *CallState) { c.Ended, c.Result = true, p.sc.call.Result })); err != nil {
		return result, false, err
	}
	t, answer, err := r.ask(ctx, p.sc, p.sc.call.Call, c.Ticket.Plugin, asking(c))
	if err != nil || answer == nil {
		return result, err == nil, err
	}
	result, err = r.answered(ctx, p, result, t, *answer)
	return result, false, err
}

// answered applies the decision about a withheld result.
func (r *run) answered(ctx context.Context, p *passage, result inference.ToolResult, t gate.Ticket, a phase.Answer) (inference.ToolResult, error) {
	v := verdict{call: p.sc.call.Call}
	a.Args = "" // the tool has run
	if _, err := r.take(ctx, p.sc, &v, t, a); err != nil {
		return result, err
	}
	if v.outcome != "" {
		result.Details = v.result.Details
		result.Content, result.IsError, result.Outcome = v.result.Content, v.result.IsError, v.outcome
	}
	return result, nil
}

// hidden returns the result with nothing in it of what the tool gave.
func hidden(res inference.ToolResult, o inference.Outcome, why string) inference.ToolResult {
	res.Content, res.Details, res.IsError, res.Outcome = why, "", true, o
	return res
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
	why := r.whyStopped(ctx)
	for _, call := range calls {
		c := r.callState(call.ID)
		if c.Settled {
			continue
		}
		about := &phase.CallFrame{Call: c.Call}
		if t, ok := r.tool(call.Name); ok {
			about.Tool = t.Spec()
		}
		p := &passage{sc: scene{call: about}, closing: true}
		p.notRun(why)
		if c.Status == CallRunning || c.Asked {
			p.fail(inference.OutcomeCancelled, "interrupted: "+why)
		}
		if c.Ended {
			p.restore(c.Result)
		}
		_, err := r.conclude(ctx, p)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// whyStopped says in words what stopped the calls.
func (r *run) whyStopped(ctx context.Context) string {
	if ctx.Err() != nil {
		return context.Cause(ctx).Error()
	}
	return r.endReason()
}

// settling returns a context for work that must happen although the run may be
// cancelled, bounded by the grace limit.
func (r *run) settling(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), r.eng.config.Limits.Grace)
}
