package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// ask suspends the call on a ticket and has it answered: by the resolver if there
// is one, else by the ticket's default. A nil answer means that the call waits.
func (r *run) ask(ctx context.Context, sc scene, call inference.ToolCall, plugin string, d gate.Decision) (gate.Ticket, *phase.Answer, error) {
	t := question(d, call)
	n := r.callState(call.ID).Tickets + 1
	t.ID = ticketID(r.info.ID, int(r.step.Load()), call.ID, n)
	t.Call, t.Plugin, t.Fingerprint = call.ID, plugin, gate.Fingerprint(call)
	if err := r.apply(ctx, sc, r.callUpdate(call.ID, func(c *CallState) {
		c.Status, c.Ticket, c.Tickets = CallSuspended, t, n
		c.After = c.After || sc.phase == phase.AfterToolExecute
	})); err != nil {
		return t, nil, err
	}
	r.emit(sc, func(h Header) Event { return TicketOpened{Header: h, Ticket: t} })

	answer, by := phase.Answer{Ticket: t.ID}, "default"
	resolver := r.resolver()
	switch {
	case resolver != nil:
		// In a goroutine of its own: a prompt may not notice that the run was cancelled.
		given, err := detached(ctx, "resolver", sc.phase, func(ctx context.Context) (phase.Answer, error) {
			return resolver.Resolve(ctx, t)
		})
		if err == nil && (!given.Value.Valid() || !given.Args.Valid()) {
			err = errors.New("engine: the answer's value or arguments are not JSON")
		}
		if ctx.Err() != nil {
			return t, nil, context.Cause(ctx)
		}
		if err != nil {
			if !errors.Is(err, gate.ErrLeftOpen) {
				r.warn(sc, plugin, "ticket %s: the resolver failed: %v", t.ID, err)
			}
			return t, nil, nil
		}
		answer, by = given, "resolver"
		answer.Ticket = t.ID
	case t.Default == gate.DefaultYes:
		answer.Approved = true
	case t.Default == gate.DefaultNo:
		answer.Reason = "nobody is there to ask, and the default is no"
	default:
		return t, nil, nil
	}
	r.emit(sc, func(h Header) Event {
		return TicketAnswered{Header: h, Ticket: t.ID, Call: call.ID, Approved: answer.Approved, Reason: answer.Reason, By: by}
	})
	return t, &answer, nil
}

// brokenTicket is the kind of a ticket that could not be put into state as it was.
const brokenTicket gate.TicketKind = "broken"

// unanswerable says why a question must not be asked, or "".
func unanswerable(t gate.Ticket) string {
	switch {
	case t.Kind == brokenTicket || !t.Params.Valid() || !t.Schema.Valid():
		return " asks with params or a schema that are not JSON"
	case t.Kind == gate.Secret && t.Mode == gate.UseAsResult:
		return " asks for a secret as the result, which the model would see; use gate.PassToTool"
	default:
		return ""
	}
}

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
	v.answer = &a
	if a.Approved && a.Args != "" && a.Args != v.call.Args {
		if bad := r.edit(ctx, sc, v, "answer to "+t.ID, a.Args); bad != "" {
			*v = blocked(*v, bad)
			return true, nil
		}
		t.Fingerprint = gate.Fingerprint(v.call)
	}
	kept := TicketAnswer{Ticket: t, Answer: a}
	if t.Kind == gate.Secret {
		r.keepSecret(t.ID, a.Value) // for the tool, never for state
		kept.Answer.Value = ""
	}
	if err := r.apply(ctx, sc, r.callUpdate(v.call.ID, func(c *CallState) {
		c.Status = CallResuming
		if n := len(c.Answers); n > 0 && c.Answers[n-1].Ticket.ID == t.ID {
			c.Answers = c.Answers[:n-1] // committed with the decision, before the edit
		}
		c.Answers = append(c.Answers, kept)
	})); err != nil {
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
// more: a secret that came with an earlier resumption must be asked for again.
func (r *run) answers(call string) []TicketAnswer {
	given := slices.Clone(r.callState(call).Answers)
	for i, a := range given {
		_, kept := r.secrets[a.Ticket.ID]
		given[i].lost = a.Ticket.Kind == gate.Secret && !kept
	}
	return given
}

// forTool returns the answer for the call's tool to read: the last one that was
// meant for it, or else the last one.
func (r *run) forTool(call inference.ToolCall, last *phase.Answer) *phase.Answer {
	given, print := r.answers(call.ID), gate.Fingerprint(call)
	for i := len(given) - 1; i >= 0; i-- {
		if t := given[i].Ticket; t.Mode == gate.PassToTool && t.Fingerprint == print && !given[i].lost {
			a := r.withSecret(given[i])
			return &a
		}
	}
	return last
}

// keepSecret keeps a secret value for as long as this part of the run lasts.
func (r *run) keepSecret(ticket string, value inference.JSON) {
	if r.secrets == nil {
		r.secrets = map[string]inference.JSON{}
	}
	r.secrets[ticket] = value
}

// withSecret returns the answer with its secret value, which is not in state.
func (r *run) withSecret(a TicketAnswer) phase.Answer {
	if value, ok := r.secrets[a.Ticket.ID]; ok {
		a.Answer.Value = value
	}
	return a.Answer
}

// callState returns where a call of this step stands.
func (r *run) callState(id string) CallState {
	c, _ := ToolCalls.Get(r.th.store.Snapshot(), id)
	return c
}

// callUpdate returns the update that changes the state of a call.
func (r *run) callUpdate(id string, change func(*CallState)) state.Update {
	c := r.callState(id)
	change(&c)
	return ToolCalls.Put(id, c)
}
