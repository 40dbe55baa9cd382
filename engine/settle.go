package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

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
	why := r.whyStopped(ctx)
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
		if c.Status == CallRunning {
			p.fail(inference.OutcomeCancelled, "interrupted: "+why)
		}
		errs = append(errs, r.conclude(ctx, p))
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
