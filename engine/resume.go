package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Decision answers one open ticket of a waiting run.
type Decision struct {
	// ID makes a repeat harmless: a decision whose ID was applied before changes
	// nothing. Empty means that it cannot be repeated.
	ID string
	// Call addresses the ticket by its tool call; Answer.Ticket does by its own id.
	// Neither is needed while only one ticket is open.
	Call string
	// Answer is the decision itself.
	Answer phase.Answer
}

var (
	// ErrNotWaiting is returned when a thread has no run that waits for an answer.
	ErrNotWaiting = errors.New("engine: no run of the thread waits for an answer")

	// ErrDecision is the kind of *DecisionError.
	ErrDecision = errors.New("engine: the decision cannot be applied")

	// ErrUnknownTicket: no call of the run ever had the ticket.
	ErrUnknownTicket = errors.New("engine: there is no such ticket")
	// ErrLate: the ticket was answered before.
	ErrLate = errors.New("engine: the ticket was answered already")
	// ErrAmbiguous: several tickets are open and the decision names none.
	ErrAmbiguous = errors.New("engine: several tickets are open; name one by ticket or call id")
	// ErrRepeated: two decisions of a batch, or two with one id, are about different things.
	ErrRepeated = errors.New("engine: the decision contradicts another one")
	// ErrBadAnswer: the answer is not of the form that its ticket asks for.
	ErrBadAnswer = errors.New("engine: the answer does not fit its ticket")
)

// DecisionError says which decision of a batch was refused and why. Nothing of
// the batch was applied.
type DecisionError struct {
	Index  int // in the batch
	Ticket string
	Err    error // ErrUnknownTicket, ErrLate, ErrAmbiguous, ErrRepeated, ErrBadAnswer
}

func (e *DecisionError) Error() string {
	return fmt.Sprintf("engine: decision %d (ticket %q): %v; nothing was applied", e.Index, e.Ticket, e.Err)
}

// Is reports whether target is ErrDecision.
func (e *DecisionError) Is(target error) bool { return target == ErrDecision }

// Unwrap returns the reason.
func (e *DecisionError) Unwrap() error { return e.Err }

// Tickets returns the open questions of the thread's waiting run, in call order.
func (t *Thread) Tickets() []gate.Ticket { return openTickets(t.store.Snapshot()) }

func openTickets(snap *state.Snapshot) []gate.Ticket {
	var open []gate.Ticket
	for _, c := range stepCalls(snap) {
		if c.Status == CallSuspended {
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
// empty; its other fields are as for Run. Time spent waiting is not counted.
func (t *Thread) Resume(ctx context.Context, spec AgentSpec, in Input, ds ...Decision) (*Result, error) {
	if t.eng.closed.Load() {
		return nil, ErrClosed
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
	snap := t.store.Snapshot()
	if allApplied(snap, ds) {
		r, err := t.standIn(a)
		if err != nil {
			return nil, err
		}
		defer r.release()
		l := lifecycle(snap)
		res := r.result(ending{reason: cmp.Or(l.Reason, phase.ReasonWaiting), detail: l.Detail})
		res.Run, res.Steps, res.Tickets = l.Run, l.Step, openTickets(snap)
		return res, nil
	}
	l := lifecycle(snap)
	if l.Status != phase.Waiting {
		return nil, ErrNotWaiting
	}
	updates, secrets, err := plan(snap, ds)
	if err != nil {
		return nil, err
	}
	in.RunID = l.Run
	r, err := t.newRun(a, in, nil, nil)
	if err != nil {
		return nil, err
	}
	if !t.active.CompareAndSwap(nil, r) {
		r.release()
		return nil, ErrBusy
	}
	defer r.release()
	defer t.active.Store(nil)
	r.step.Store(int64(l.Step))
	r.secrets = secrets
	updates = append(updates, phase.RunLifecycle.With(phase.LifecycleUpdate{Status: phase.Running}))
	low := lowered{batch: state.Batch{Owner: engineName, Base: snap, Updates: updates}}
	res, err := r.commitLowered(ctx, []lowered{low})
	if err != nil {
		return nil, err
	}
	if len(res.Rejected) > 0 {
		return nil, ErrNotWaiting // somebody else resumed it between the look and the commit
	}
	r.committed(scene{}, res.Snapshot, []lowered{low})
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

func allApplied(snap *state.Snapshot, ds []Decision) bool {
	return len(ds) > 0 && !slices.ContainsFunc(ds, func(d Decision) bool {
		return d.ID == "" || !decisions.Has(snap, d.ID)
	})
}

// plan checks a batch of decisions against the open tickets and returns the updates
// that apply it, and the secret values, by ticket, which do not go into state.
func plan(snap *state.Snapshot, ds []Decision) ([]state.Update, map[string]inference.JSON, error) {
	var updates []state.Update
	secrets := map[string]inference.JSON{}
	calls := stepCalls(snap)
	answered := map[string]bool{}
	for i, d := range ds {
		fail := func(err error) error {
			return &DecisionError{Index: i, Ticket: cmp.Or(d.Answer.Ticket, d.Call), Err: err}
		}
		if before, ok := decisions.Get(snap, d.ID); ok && d.ID != "" {
			if d.Answer.Ticket != "" && d.Answer.Ticket != before {
				return nil, nil, fail(ErrRepeated)
			}
			continue
		}
		c, err := address(calls, d)
		if err != nil {
			return nil, nil, fail(err)
		}
		t := c.Ticket
		if answered[t.ID] {
			return nil, nil, fail(ErrRepeated)
		}
		answered[t.ID] = true
		d.Answer.Ticket = t.ID
		if err := fits(t, d.Answer); err != nil {
			return nil, nil, fail(err)
		}
		kept := d.Answer
		if t.Kind == gate.Secret {
			secrets[t.ID], kept.Value = kept.Value, ""
		}
		c.Status = CallResuming
		c.Answers = append(c.Answers, TicketAnswer{t, kept})
		updates = append(updates, ToolCalls.Put(c.Call.ID, c))
		if d.ID != "" {
			updates = append(updates, decisions.Put(d.ID, t.ID))
		}
	}
	return updates, secrets, nil
}

// address finds the suspended call that a decision is about.
func address(calls []CallState, d Decision) (CallState, error) {
	var open []CallState
	for _, c := range calls {
		named := d.Answer.Ticket != "" && c.Ticket.ID == d.Answer.Ticket || d.Call != "" && c.Call.ID == d.Call
		if named && (d.Call == "" || c.Call.ID == d.Call) && (d.Answer.Ticket == "" || c.Ticket.ID == d.Answer.Ticket) {
			if c.Status != CallSuspended {
				return c, ErrLate
			}
			return c, nil
		}
		if slices.ContainsFunc(c.Answers, func(a TicketAnswer) bool { return a.Ticket.ID == d.Answer.Ticket }) {
			return c, ErrLate
		}
		if c.Status == CallSuspended {
			open = append(open, c)
		}
	}
	switch {
	case d.Answer.Ticket != "" || d.Call != "":
		return CallState{}, ErrUnknownTicket
	case len(open) > 1:
		return CallState{}, ErrAmbiguous
	case len(open) == 0:
		return CallState{}, ErrUnknownTicket
	}
	return open[0], nil
}

// fits checks the form of an answer as far as its ticket's kind tells; a schema is
// for whoever asks, who has a validator for it.
func fits(t gate.Ticket, a phase.Answer) error {
	if !a.Value.Valid() || !a.Args.Valid() {
		return fmt.Errorf("%w: the value or the arguments are not JSON", ErrBadAnswer)
	}
	if !a.Approved || a.Value == "" && t.Mode != gate.UseAsResult {
		return nil
	}
	var err error
	switch t.Kind {
	case gate.Text, gate.Secret, gate.Choice:
		var text string
		err = a.Value.Decode(&text)
	case gate.MultiChoice:
		var list []string
		err = a.Value.Decode(&list)
	case gate.Form:
		var fields map[string]inference.JSON
		err = a.Value.Decode(&fields)
	}
	if err != nil {
		return fmt.Errorf("%w: a %s ticket wants another value: %w", ErrBadAnswer, t.Kind, err)
	}
	return nil
}

// withSecret returns the answer with its secret value, which is not in state.
func (r *run) withSecret(a TicketAnswer) phase.Answer {
	if value, ok := r.secrets[a.Ticket.ID]; ok {
		a.Answer.Value = value
	}
	return a.Answer
}

// again goes on with a run in the middle of its step's tool calls.
func (r *run) again(ctx context.Context) *Result {
	snap := r.th.store.Snapshot()
	x := &exchange{response: &inference.Response{Stop: inference.StopToolUse}}
	history := Transcript.Get(snap)
	for i := history.Len() - 1; i >= 0; i-- {
		if m := history.At(i); m.Role == inference.RoleAssistant {
			x.response.Message = m
			break
		}
	}
	r.current.Store(x)
	r.emit(scene{}, func(h Header) Event { return RunResumed{Header: h} })
	start := r.now()
	return r.loop(ctx, func(ctx context.Context) ending { return r.endStep(ctx, start, r.afterModel(ctx, x)) })
}
