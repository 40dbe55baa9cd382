package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

	// ErrUnknownTicket: no call of the run has the ticket.
	ErrUnknownTicket = errors.New("engine: there is no such ticket")
	// ErrLate: the ticket was answered before.
	ErrLate = errors.New("engine: the ticket was answered already, or its time ran out")
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
	Err    error // ErrUnknownTicket, ErrLate, ErrAmbiguous, ErrRepeated, ErrBadAnswer, ErrVault
}

func (e *DecisionError) Error() string {
	return fmt.Sprintf("engine: decision %d (ticket %q): %v; nothing was applied", e.Index, e.Ticket, e.Err)
}

// Is reports whether target is ErrDecision.
func (e *DecisionError) Is(target error) bool { return target == ErrDecision }

// Unwrap returns the reason.
func (e *DecisionError) Unwrap() error { return e.Err }

func allApplied(snap *state.Snapshot, ds []Decision) bool {
	return len(ds) > 0 && !slices.ContainsFunc(ds, func(d Decision) bool {
		return d.ID == "" || !decisions.Has(snap, d.ID)
	})
}

// planned is a batch of decisions made ready.
type planned struct {
	updates  []state.Update
	answered []TicketAnswer            // in batch order
	secrets  map[string]inference.JSON // by ticket; they do not go into state
}

// plan checks a batch of decisions against the open tickets and returns what
// applies it, together with the default answers of tickets whose time ran out. Secrets
// go through keep, which returns their handles.
func (e *Engine) plan(ctx context.Context, snap *state.Snapshot, ds []Decision, keep keeper) (planned, error) {
	p := planned{secrets: map[string]inference.JSON{}}
	calls, now := stepCalls(snap), e.config.Now()
	add := func(c CallState, a phase.Answer, by string) error {
		kept := TicketAnswer{Ticket: c.Ticket, Answer: a}
		if c.Ticket.Kind == gate.Secret && a.Value != "" {
			kept.Answer.Value = ""
			if a.Approved {
				handle, err := keep(c.Ticket.ID, a.Value)
				if err != nil {
					return err
				}
				p.secrets[c.Ticket.ID], kept.Answer.Handle = a.Value, handle
			}
		}
		c.Status = CallResuming
		c.Answers = append(c.Answers, kept)
		p.updates = append(p.updates, ToolCalls.Put(c.Call.ID, c))
		kept.by = by
		p.answered = append(p.answered, kept)
		return nil
	}
	byTicket, byID := map[string]bool{}, map[string]bool{}
	for i, d := range ds {
		fail := func(err error) (planned, error) {
			return planned{}, &DecisionError{Index: i, Ticket: cmp.Or(d.Answer.Ticket, d.Call), Err: err}
		}
		if before, ok := decisions.Get(snap, d.ID); ok && d.ID != "" {
			if d.Answer.Ticket != "" && d.Answer.Ticket != before || d.Call != "" && !ofCall(before, d.Call) {
				return fail(ErrRepeated)
			}
			continue
		}
		c, err := address(snap, calls, d)
		if err != nil {
			return fail(err)
		}
		t := c.Ticket
		if expired(t, now) {
			return fail(ErrLate)
		}
		if byTicket[t.ID] || d.ID != "" && byID[d.ID] {
			return fail(ErrRepeated)
		}
		byTicket[t.ID], byID[d.ID] = true, true
		d.Answer.Ticket = t.ID
		d.Answer.Handle = "" // the engine's to give
		err = e.fits(ctx, c, d.Answer)
		if err == nil {
			err = add(c, d.Answer, "decision")
		}
		if err != nil {
			return fail(err)
		}
		if d.ID != "" {
			p.updates = append(p.updates, decisions.Put(d.ID, t.ID))
		}
	}
	for _, c := range calls {
		if c.open() && !byTicket[c.Ticket.ID] && expired(c.Ticket, now) {
			if err := add(c, byDefault(c.Ticket, "nobody answered in time"), "expiry"); err != nil {
				return planned{}, err
			}
		}
	}
	return p, nil
}

// ticketID makes the id of the nth ticket about a call: run/step/call/n.
func ticketID(run string, step int, call string, n int) string {
	return fmt.Sprintf("%s/%d/%s/%d", run, step, call, n)
}

// ofCall reports whether a ticket's id is that of a ticket about call.
func ofCall(id, call string) bool {
	last := strings.LastIndexByte(id, '/')
	return last >= 0 && strings.HasSuffix(id[:last], "/"+call)
}

// former reports whether a ticket's id is from an earlier step of the run.
func former(id string, l phase.Lifecycle) bool {
	rest, ok := strings.CutPrefix(id, l.Run+"/")
	text, _, more := strings.Cut(rest, "/")
	step, err := strconv.Atoi(text)
	return ok && more && err == nil && step >= 1 && step < l.Step
}

// address finds the suspended call that a decision is about.
func address(snap *state.Snapshot, calls []CallState, d Decision) (CallState, error) {
	ticket := d.Answer.Ticket
	var open []CallState
	for _, c := range calls {
		if c.open() {
			open = append(open, c)
		}
		if c.Ticket.ID == "" || d.Call != "" && d.Call != c.Call.ID || ticket == "" && d.Call == "" {
			continue // nobody asked about it, or it is not meant
		}
		switch {
		case slices.ContainsFunc(c.Answers, func(a TicketAnswer) bool { return a.Ticket.ID == ticket }):
			return c, ErrLate
		case ticket != "" && ticket != c.Ticket.ID:
		case !c.open():
			return c, ErrLate
		default:
			return c, nil
		}
	}
	switch {
	case ticket != "" && former(ticket, lifecycle(snap)) && (d.Call == "" || ofCall(ticket, d.Call)):
		return CallState{}, ErrLate
	case ticket != "" || d.Call != "" || len(open) == 0:
		return CallState{}, ErrUnknownTicket
	case len(open) > 1:
		return CallState{}, ErrAmbiguous
	}
	return open[0], nil
}
