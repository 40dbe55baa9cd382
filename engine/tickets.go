package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// ask suspends the call on a ticket and has it answered: by the resolver if there
// is one, else by the ticket's default. A nil answer means that the call waits.
func (r *run) ask(ctx context.Context, sc scene, call inference.ToolCall, plugin string, d gate.Decision) (gate.Ticket, *phase.Answer, error) {
	t, opened := r.opened(sc, call, plugin, question(d, call))
	if err := r.apply(ctx, sc, opened); err != nil {
		return t, nil, err
	}
	answer, err := r.answerNow(ctx, sc, t)
	return t, answer, err
}

// opened fills in a ticket and returns the update that suspends its call on it.
func (r *run) opened(sc scene, call inference.ToolCall, plugin string, t gate.Ticket) (gate.Ticket, state.Update) {
	n := r.callState(call.ID).Tickets + 1
	t.ID = ticketID(r.info.ID, r.step(), call.ID, n)
	t.Call, t.Plugin, t.Fingerprint, t.Until = call.ID, plugin, gate.Fingerprint(call), time.Time{}
	if t.Lifetime > 0 {
		t.Until = r.now().Add(t.Lifetime).UTC().Round(0) // as it comes back from a journal
	}
	return t, r.callUpdate(call.ID, func(c *CallState) {
		c.Status, c.Ticket, c.Tickets = CallSuspended, t, n
		c.Started = c.Started || sc.phase == phase.BeforeToolExecute
		c.After = c.After || sc.phase == phase.AfterToolExecute
		c.Call, c.Asked = call, c.Asked || plugin == toolOwner(call)
	})
}

// answerNow has an open ticket answered, if there is somebody or something to do it.
func (r *run) answerNow(ctx context.Context, sc scene, t gate.Ticket) (*phase.Answer, error) {
	r.emit(sc, func(h Header) Event { return TicketOpened{Header: h, Ticket: t} })
	answer, by := phase.Answer{Ticket: t.ID}, "default"
	resolver := r.resolver()
	switch {
	case expired(t, r.now()): // while others were asked
		answer, by = byDefault(t, "nobody answered in time"), "expiry"
	case resolver != nil:
		given, err := r.resolve(ctx, sc, resolver, t)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch {
		case err == nil:
			answer, by = given, "resolver"
			answer.Ticket, answer.Handle = t.ID, ""
		case expired(t, r.now()):
			answer, by = byDefault(t, "nobody answered in time"), "expiry"
		default:
			if !errors.Is(err, gate.ErrLeftOpen) {
				if t.Kind == gate.Secret && !errors.Is(err, ErrBadAnswer) {
					err = errors.New("why is not told, since it may show a secret")
				}
				r.warn(sc, t.Plugin, "ticket %s: the resolver failed: %v", t.ID, err)
			}
			return nil, nil
		}
	case t.Default == gate.NoDefault || t.Lifetime > 0:
		return nil, nil
	default:
		answer = byDefault(t, "nobody is there to ask")
	}
	r.emit(sc, func(h Header) Event {
		return TicketAnswered{Header: h, Ticket: t.ID, Call: t.Call, Approved: answer.Approved, Reason: answer.Reason, By: by}
	})
	return &answer, nil
}

// resolve asks the resolver for as long as the question stands, in a goroutine of its
// own: a prompt may not notice that the run was cancelled.
func (r *run) resolve(ctx context.Context, sc scene, resolver gate.Resolver, t gate.Ticket) (phase.Answer, error) {
	limit := time.Duration(math.MaxInt64)
	if t.Lifetime > 0 {
		limit = t.Until.Sub(r.now())
	}
	r.out.Rouse()
	given, err := within(ctx, r.crew, limit, "resolver", sc.phase, func(ctx context.Context) (phase.Answer, error) {
		return resolver.Resolve(ctx, t)
	})
	if err == nil {
		c := r.callState(t.Call)
		if c.Ended {
			given.Args = "" // the tool has run
		}
		err = r.eng.fits(ctx, c, given)
	}
	return given, err
}

// brokenTicket is the kind of a ticket that could not be put into state as it was.
const brokenTicket gate.TicketKind = "broken"

// question returns a decision's ticket with what the gate left out filled in.
func question(d gate.Decision, call inference.ToolCall) gate.Ticket {
	t := d.Ticket()
	t.Kind = cmp.Or(t.Kind, gate.Confirm)
	t.Message = cmp.Or(t.Message, d.Reason(), "Allow "+call.Name+"?")
	return t
}

func (r *run) resolver() gate.Resolver {
	if r.input.Resolver != nil {
		return r.input.Resolver
	}
	return r.eng.config.Resolver
}

// take applies an answer to the suspended call. done means that the call is
// decided by the answer alone: denied, called off, or answered with the result
// itself. An answer that edits the arguments is an answer about the edited ones.
func (r *run) take(ctx context.Context, sc scene, v *verdict, t gate.Ticket, a phase.Answer) (done bool, err error) {
	kept, forget := TicketAnswer{Ticket: t, Answer: a}, func(error) {}
	if t.Kind == gate.Secret {
		kept.Answer.Value = "" // for the tool, never for state, gates and hooks
	}
	v.answer = &kept.Answer
	if a.Approved && a.Args != "" {
		if a.Args != v.call.Args {
			if bad := r.edit(ctx, sc, v, "answer to "+t.ID, a.Args); bad != "" {
				*v = blocked(*v, bad)
				return true, nil
			}
		}
		kept.Ticket.Fingerprint = gate.Fingerprint(v.call)
	}
	if t.Kind == gate.Secret && a.Approved && a.Value != "" {
		r.keepSecret(t.ID, a.Value)
		if a.Handle == "" {
			var keep keeper
			keep, forget = r.keeper(ctx)
			if kept.Answer.Handle, err = keep(t.ID, a.Value); err != nil {
				r.warn(sc, engineName, "ticket %s: %v; it is lost if the process ends", t.ID, err)
			}
		}
	}
	if err := r.apply(ctx, sc, r.callUpdate(v.call.ID, func(c *CallState) {
		c.Status = CallResuming
		if n := len(c.Answers); n > 0 && c.Answers[n-1].Ticket.ID == t.ID {
			c.Answers = c.Answers[:n-1] // committed with the decision, before the edit
		}
		c.Answers = append(c.Answers, kept)
	})); err != nil {
		forget(err)
		return true, err
	}
	switch {
	case a.Cancel:
		v.outcome = inference.OutcomeCancelled
		v.result = inference.ToolResult{Content: "called off: " + cmp.Or(a.Reason, "nobody decided"), IsError: true}
	case !a.Approved:
		v.outcome = inference.OutcomeDenied
		v.result = inference.ToolResult{Content: "denied: " + cmp.Or(a.Reason, "the answer was no"), IsError: true}
	case t.Mode == gate.UseAsResult:
		v.outcome = inference.OutcomeSubstituted
		v.result = inference.ToolResult{Content: string(a.Value), Details: a.Value}
	}
	return v.outcome != "", nil
}

// answers returns the answers about a call, with those marked that do not count any
// more: a secret that nobody knows any more must be asked for again.
func (r *run) answers(ctx context.Context, call string) []TicketAnswer {
	given := slices.Clone(r.callState(call).Answers)
	for i, a := range given {
		given[i].lost = a.Ticket.Kind == gate.Secret && a.Answer.Approved && r.withSecret(ctx, a).Value == ""
	}
	return given
}

// open reports whether a question about the call was asked and has no answer.
func (c CallState) open() bool { return c.Status == CallSuspended && c.Ticket.ID != "" }

// callState returns where a call of this step stands.
func (r *run) callState(id string) CallState {
	c, _ := ToolCalls.Get(r.th.store.Snapshot(), id)
	return c
}

// callUpdate returns the update that changes the state of a call.
func (r *run) callUpdate(id string, change func(*CallState)) state.Update {
	c, ok := r.eng.scratch.Get().(*CallState) // a call's state is large, and change would have it on the heap
	if !ok {
		c = &CallState{}
	}
	*c = r.callState(id)
	change(c)
	update := ToolCalls.Put(id, *c)
	*c = CallState{}
	r.eng.scratch.Put(c)
	return update
}
