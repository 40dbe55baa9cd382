package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Tickets returns the open questions of the thread's waiting run, in call order.
func (t *Thread) Tickets() []gate.Ticket { return openTickets(t.store.Snapshot()) }

func openTickets(snap *state.Snapshot) []gate.Ticket {
	var open []gate.Ticket
	for _, c := range stepCalls(snap) {
		if c.open() {
			open = append(open, c.Ticket)
		}
	}
	return open
}

// Resume applies decisions to the thread's waiting run and goes on with it. Calls
// whose tickets were answered take up where they stood, with the gates asked again
// about them; the others stay suspended with the same tickets, and if any is left
// the run waits again. A thread that was exported while it waited can be imported
// into another engine, in another process, and resumed there.
//
// A batch applies whole or not at all: a *DecisionError names the decision that
// stopped it. Decisions that were all applied before, by their IDs, change nothing,
// and the Result tells where the thread stands. in.Messages and in.RunID must be
// empty; its other fields are as for Run. Time spent waiting is not counted, and
// a ctx that has ended already spends no decision.
func (t *Thread) Resume(ctx context.Context, spec AgentSpec, in Input, ds ...Decision) (*Result, error) {
	if err := t.eng.ready(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	snap := t.store.Snapshot()
	l := lifecycle(snap)
	repeat := allApplied(snap, ds)
	if repeat {
		if _, err := t.eng.plan(ctx, snap, ds, nil); err != nil {
			return nil, err // an id that stands for another decision
		}
	} else if !resumable(l) {
		return nil, ErrNotWaiting
	}
	a, err := t.waitingAgent(spec)
	if err != nil {
		return nil, err
	}
	if len(in.Messages) > 0 || in.RunID != "" {
		return nil, fmt.Errorf("%w: a run is resumed without messages and under its own id", ErrInput)
	}
	if in, err = checkInput(in, a); err != nil {
		return nil, err
	}
	if repeat {
		return t.standing(a)
	}
	in.RunID = l.Run
	r, done, err := t.claim(ctx, a, in, nil, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	err = r.decide(ctx, ds)
	if errors.Is(err, errRepeat) {
		return t.standing(a)
	}
	if err != nil {
		return nil, err
	}
	if l.Status == phase.Running {
		return r.crashed(ctx, l), nil
	}
	return r.again(ctx), nil
}

// resumable reports whether a run can go on: it waits, or it was under way when
// its process ended, since no run is under way in this one.
func resumable(l phase.Lifecycle) bool { return l.Status == phase.Waiting || l.Status == phase.Running }

// standing is what a repeated decision hears: where the thread's run is.
func (t *Thread) standing(a *agent) (*Result, error) {
	r, err := t.standIn(a)
	if err != nil {
		return nil, err
	}
	defer r.release()
	snap := t.store.Snapshot()
	l := lifecycle(snap)
	end := ending{reason: l.Reason, detail: l.Detail}
	if l.Status == phase.Waiting {
		end = ending{reason: phase.ReasonWaiting}
	}
	res := r.result(end)
	res.Run, res.Status, res.Steps, res.Tickets = l.Run, l.Status, l.Step, openTickets(snap)
	return res, nil
}

// decide commits the decisions and that the run goes on, all in one. The thread is
// this run's alone by now, but other writers may commit between the look and the
// commit, so it looks again until what it looked at still holds.
func (r *run) decide(ctx context.Context, ds []Decision) (err error) {
	keep, forget := r.keeper(ctx)
	defer func() {
		if err != nil {
			forget(err)
		}
	}()
	for {
		snap := r.th.store.Snapshot()
		l := lifecycle(snap)
		if allApplied(snap, ds) {
			return errRepeat // somebody else brought them since the first look
		}
		if !resumable(l) || l.Run != r.info.ID {
			return ErrNotWaiting
		}
		p, err := r.eng.plan(ctx, snap, ds, keep)
		if err != nil {
			return err
		}
		running := phase.RunLifecycle.With(phase.LifecycleUpdate{Status: phase.Running})
		b := state.Batch{Owner: engineName, Base: snap, Updates: append(append(p.updates, running), r.input.Updates...)}
		res, err := r.th.store.Commit(b)
		if err != nil {
			return err
		}
		if len(res.Rejected) > 0 {
			continue
		}
		r.setStep(l.Step)
		r.secrets = p.secrets
		r.emit(scene{}, func(h Header) Event { return RunResumed{Header: h, Base: Base{State: res.Before}} })
		r.committed(scene{}, res, []state.Batch{b})
		for _, a := range p.answered {
			r.emit(scene{phase: phase.ToolGate}, func(h Header) Event {
				return TicketAnswered{Header: h, Ticket: a.Ticket.ID, Call: a.Ticket.Call, Approved: a.Answer.Approved,
					Reason: a.Answer.Reason, By: a.by}
			})
		}
		return nil
	}
}

// errRepeat says that all decisions were applied before.
var errRepeat = errors.New("engine: the decisions were applied already")

// callOff ends a waiting run that nobody can answer: its open calls get a result that
// says so, and RunEnd runs.
func (t *Thread) callOff(ctx context.Context, a *agent, in Input, parent *run, held *heldEvents) (*Result, error) {
	in.Messages = nil
	r, done, err := t.claim(ctx, a, in, parent, held)
	if err != nil {
		return nil, err
	}
	defer done()
	var end phase.Command
	end.EndRun(phase.ReasonCancelled, "nobody is there to answer")
	if err := r.apply(ctx, scene{}, end.Updates()...); err != nil {
		return nil, err
	}
	if err := r.decide(ctx, nil); err != nil {
		return nil, err
	}
	return r.again(ctx), nil
}

// waitingAgent returns the agent whose run waits: spec, unless the run was handed
// off.
func (t *Thread) waitingAgent(spec AgentSpec) (*agent, error) {
	id := activeAgent.Get(t.store.Snapshot())
	if id == spec.ID || id == "" {
		return t.eng.prepare(spec)
	}
	a, ok := t.eng.agents[id]
	if !ok {
		return nil, fmt.Errorf("%w: the run is of agent %q, not of %q", ErrInput, id, spec.ID)
	}
	return a, nil
}

// again goes on with a run in the middle of its step's tool calls.
func (r *run) again(ctx context.Context) *Result {
	start := r.now()
	return r.loop(ctx, func(ctx context.Context) ending {
		return r.endStep(ctx, start, r.afterModel(ctx, r.remembered()))
	})
}

// remembered is the exchange of the current step as far as state knows it.
func (r *run) remembered() *exchange {
	x := &exchange{response: &inference.Response{Message: askedFor(r.th.store.Snapshot()), Stop: inference.StopToolUse}}
	r.current.Store(x)
	return x
}

// askedFor returns the message that asked for the current step's calls. Others may
// have come behind it while the run waited, or it may be gone from the history.
func askedFor(snap *state.Snapshot) inference.Message {
	calls := each(stepCalls(snap), func(c CallState) inference.ToolCall { return c.Call })
	history := Transcript.Get(snap)
	for i := history.Len() - 1; i >= 0; i-- {
		m := history.At(i)
		same := func(a, b inference.ToolCall) bool { return a.ID == b.ID }
		if m.Role == inference.RoleAssistant && slices.EqualFunc(m.ToolCalls, calls, same) {
			return m
		}
	}
	return inference.Assistant("", calls...)
}
