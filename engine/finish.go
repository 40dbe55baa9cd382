package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// suspend leaves the run waiting for answers: nothing ends, and no goroutine stays.
func (r *run) suspend(ctx context.Context) *Result {
	if end := r.reunite(ctx); end.reason != "" {
		return r.finish(ctx, end)
	}
	res := r.result(ending{reason: phase.ReasonWaiting})
	r.saveWhole()
	if err := r.apply(ctx, scene{}, phase.RunLifecycle.With(phase.LifecycleUpdate{Status: phase.Waiting})); err != nil {
		return r.finish(ctx, r.failed(ctx, err))
	}
	res.Status = phase.Waiting
	res.Tickets = openTickets(r.th.store.Snapshot())
	r.leave()
	r.emit(scene{}, func(h Header) Event { return RunSuspended{Header: h, Tickets: slices.Clone(res.Tickets)} })
	return res
}

// finish runs RunEnd, once for every end, and closes what is open. It has a live
// context of its own, however the run ended.
func (r *run) finish(ctx context.Context, end ending) *Result {
	errs := []error{end.err, r.callBack(ctx)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.eng.config.Limits.Grace)
	defer cancel()
	errs = append(errs, r.apply(ctx, scene{}, phase.RunLifecycle.With(phase.LifecycleUpdate{End: end.reason, Detail: end.detail})))
	if l := lifecycle(r.th.store.Snapshot()); l.Ended {
		end.reason, end.detail = l.Reason, l.Detail // of several ends the first committed counts
	}
	errs = append(errs, r.closeOpen(ctx))
	returned := false
	defer func() {
		if !returned {
			r.closeRun(ctx, end, append(errs, ErrGoexit))
		}
	}()
	err := r.phase(ctx, scene{phase: phase.RunEnd, err: end.err})
	returned = true
	return r.closeRun(ctx, end, append(errs, err))
}

// closeRun is what a run does after RunEnd.
func (r *run) closeRun(ctx context.Context, end ending, errs []error) *Result {
	errs = append(errs, r.undelivered(ctx))
	r.drain(ctx)
	open := r.closeOpen(ctx)
	errs = append(errs, open)
	r.saveWhole()
	if open == nil { // else the run is not over, and Resume can end it
		done := phase.LifecycleUpdate{Status: phase.Done, End: end.reason, Detail: end.detail} // the first end counts
		errs = append(errs, r.apply(ctx, scene{}, phase.RunLifecycle.With(done)))
	}
	end.err = errors.Join(errs...)
	res := r.result(end)
	r.leave()
	r.emit(scene{}, func(h Header) Event {
		return RunFinished{Header: h, Status: res.Status, Reason: res.Reason, Detail: res.Detail, Error: errText(res.Err),
			Steps: res.Steps, Usage: res.Usage, Duration: res.Elapsed}
	})
	return res
}

// closeOpen concludes the calls that have no result yet: the run, or its process, may
// have ended before it came to them.
func (r *run) closeOpen(ctx context.Context) error {
	calls := stepCalls(r.th.store.Snapshot())
	return r.closeCalls(ctx, each(calls, func(c CallState) inference.ToolCall { return c.Call }))
}

func (r *run) result(end ending) *Result {
	snap := r.th.store.Snapshot()
	r.stats.mu.Lock()
	defer r.stats.mu.Unlock()
	res := &Result{
		Run: r.info.ID, Thread: r.th.id, Agent: r.agent.Load().spec.ID,
		Status: lifecycle(snap).Status, Reason: end.reason, Detail: end.detail, Err: end.err,
		Steps: r.step(), Usage: Usage.Get(snap), Stats: r.stats.Stats,
		Elapsed: r.now().Sub(r.info.Started),
	}
	for i := Transcript.Get(snap).Len() - 1; i >= 0; i-- {
		m := Transcript.Get(snap).At(i)
		if m.Role == inference.RoleAssistant {
			res.Text = m.Text
			break
		}
	}
	return res
}

// asking is the question of a call that SuspendCall suspended.
func asking(c CallState) gate.Decision { return gate.Suspend(c.Ticket) }
