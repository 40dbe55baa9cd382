package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/phase"
)

// decideFlags are the flags of approve, deny and answer.
type decideFlags struct {
	showFlags
	store, reason string
}

// ticketHelp is what the help texts of approve, deny and answer have in common.
const ticketHelp = "and go on with its run in this process, or, if it is a run of \"fixpoint worker\",\n" +
	"leave that to a worker.\n\n" +
	"TICKET is the id of a ticket, as run and pending show it. The id of its tool call or of\n" +
	"its thread will do where only one open ticket fits. A decision that is repeated\n" +
	"changes nothing.\n\n" + exitCodes

func newApprove(stdio IO) *cobra.Command {
	return newDecide(stdio, decision{verb: "approve", done: "approved", short: "Approve what a run waits for", answer: phase.Answer{Approved: true}})
}

func newDeny(stdio IO) *cobra.Command {
	return newDecide(stdio, decision{verb: "deny", done: "denied", short: "Deny what a run waits for"})
}

func newDecide(stdio IO, d decision) *cobra.Command {
	var f decideFlags
	c := &cobra.Command{
		Use:     d.verb + " TICKET",
		Short:   d.short + " and go on with it",
		Long:    d.short + " " + ticketHelp,
		Example: "  fixpoint " + d.verb + " thread-1.run-1/5/report/1 --store runs",
		Args:    exactly("TICKET"),
		RunE:    verb(func(ctx context.Context, ticket string) error { return f.decide(ctx, d, ticket, stdio) }),
	}
	f.flags(c)
	return c
}

func (f *decideFlags) flags(c *cobra.Command) {
	storeFlag(c, &f.store)
	c.Flags().StringVar(&f.reason, "reason", "", "the `text` that the run is told")
	f.add(c)
}

// decision is what a command says about a ticket.
type decision struct {
	verb, done, short string
	answer            phase.Answer
	// read, if set, returns the answer to an open question.
	read func(context.Context, kept.Question) (phase.Answer, error)
}

func (f decideFlags) decide(ctx context.Context, d decision, text string, stdio IO) error {
	return withStore(ctx, f.store, kept.Open, func(store *kept.Store) error {
		t, ticket, err := store.Find(ctx, text)
		if err != nil {
			return storeFault(err)
		}
		var s session
		if !t.Served() {
			if s, err = f.reopened(store, t, stdio); err != nil {
				return err
			}
		}
		if d.read != nil {
			// One that is not open any more is still asked about: it may be a repeat.
			if q, open := t.Question(ticket); open {
				if d.answer, err = d.read(ctx, q); err != nil {
					return err
				}
			}
		}
		d.answer.Ticket = ticket
		d.answer.Reason = cmp.Or(f.reason, d.answer.Reason)
		if t.Served() {
			return f.hand(ctx, d, store, t, stdio)
		}
		s.do = func(ctx context.Context, th *engine.Thread, in engine.Input, show screenful) (*engine.Result, error) {
			return d.apply(ctx, store.Name, th, s.agent.Specs[0], in, show)
		}
		return f.perform(ctx, s, stdio)
	})
}

// hand gives the decision to workers, who go on with the run.
func (f decideFlags) hand(ctx context.Context, d decision, store *kept.Store, t kept.Thread, stdio IO) error {
	if f.trace != "" || f.model != "" || len(f.hooks) > 0 {
		return usageError{fmt.Errorf("fixpoint: a worker goes on with thread %s, and has its own --trace, --model and --hooks", t.ID)}
	}
	if _, open := t.Question(d.answer.Ticket); !open {
		return usageError{fmt.Errorf("fixpoint: ticket %s is not open any more: it was answered, or its run has ended; nothing was changed", d.answer.Ticket)}
	}
	s, err := newSubmission(submitFlags{quiet: f.quiet, jsonl: f.jsonl}, store, stdio)
	if err != nil {
		return err
	}
	// The id follows from what is decided, so that a repeat is known as one.
	id := d.verb + " " + d.answer.Ticket
	r, err := submitted(ctx, s.client, worker.Activation{
		Thread: t.ID, Kind: worker.KindDecide, Priority: worker.High,
		Decisions: []engine.Decision{{ID: id, Answer: d.answer}},
	})
	if err != nil {
		return err
	}
	s.receipt(r)
	if s.lines == nil && f.level() > terminal.Quiet {
		s.printer.Line(d.done, "ticket "+d.answer.Ticket+"; a worker goes on with run "+t.Lifecycle.Run)
	}
	return s.failure()
}

// apply brings the decision. One that was brought before is told, with the exit
// code of where the run stands.
func (d decision) apply(ctx context.Context, folder string, th *engine.Thread, spec engine.AgentSpec, in engine.Input, show screenful) (*engine.Result, error) {
	remember(th, show)
	before := th.Snapshot().Revision()
	// The id follows from what is decided, so that a repeat is known as one.
	id := d.verb + " " + d.answer.Ticket
	res, err := th.Resume(ctx, spec, in, engine.Decision{ID: id, Answer: d.answer})
	switch {
	case errors.Is(err, engine.ErrLate), errors.Is(err, engine.ErrNotWaiting):
		return nil, d.late(folder, th)
	case errors.Is(err, engine.ErrBadAnswer):
		return nil, usageError{fmt.Errorf("fixpoint: the answer was refused: %s; ticket %s is still open", cause(err), d.answer.Ticket)}
	case errors.Is(err, engine.ErrDecision):
		return nil, usageError{err}
	case err != nil:
		return nil, err
	case th.Snapshot().Revision() == before:
		show.printer.Line(d.done, "already: ticket "+d.answer.Ticket+"; nothing was changed")
		return nil, standing(folder, th, res, show)
	}
	return res, nil
}

// late says what became of a ticket that is not open any more.
func (d decision) late(folder string, th *engine.Thread) error {
	for _, t := range th.Tickets() {
		if t.ID == d.answer.Ticket { // its time is over, and nobody has gone on yet
			return usageError{fmt.Errorf("fixpoint: the time of ticket %s is over, and its default counts; nothing was changed; go on with: %s", t.ID, resumeCommand(folder, th.ID()))}
		}
	}
	return usageError{fmt.Errorf("fixpoint: ticket %s is not open any more: it was answered, or its run has ended; nothing was changed", d.answer.Ticket)}
}

// cause is what is wrong with an answer, without what the command says itself.
func cause(err error) string {
	text := err.Error()
	if _, after, found := strings.Cut(text, engine.ErrBadAnswer.Error()+": "); found {
		text = after
	}
	return strings.TrimSuffix(text, "; nothing was applied")
}

// standing tells where a run stands that nothing was done to, and is its outcome.
func standing(folder string, th *engine.Thread, res *engine.Result, show screenful) error {
	show.printer.Line("run", fmt.Sprintf("%s is %s", res.Run, res.Status))
	show.printer.Waiting(questions(folder, th, res.Tickets))
	if res.Status == phase.Running {
		show.printer.Line("continue", resumeCommand(folder, th.ID()))
		return exitError(ExitError)
	}
	if err := outcome(res); err != nil {
		return err
	}
	return exitError(ExitOK)
}
