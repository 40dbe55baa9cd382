package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// decideFlags are the flags of approve, deny and answer.
type decideFlags struct {
	showFlags
	store, reason string
}

// ticketHelp is what the help texts of approve, deny and answer have in common.
const ticketHelp = "and go on with its run in this process.\n\n" +
	"TICKET is the id of a ticket, as run and pending show it. The id of its tool call or of\n" +
	"its thread will do where only one open ticket fits. A decision that is repeated\n" +
	"changes nothing.\n\n" + exitCodes

func newApprove(stdio IO) *cobra.Command {
	return newDecide(stdio, decision{verb: "approve", done: "approved", short: "Approve what a run waits for", answer: phase.Answer{Approved: true}})
}

func newDeny(stdio IO) *cobra.Command {
	return newDecide(stdio, decision{verb: "deny", done: "denied", short: "Deny what a run waits for"})
}

func newAnswer(stdio IO) *cobra.Command {
	var f decideFlags
	c := &cobra.Command{
		Use:   "answer TICKET VALUE",
		Short: "Answer a question of a run with a value and go on with the run",
		Long:  "Answer an open ticket with a value, which is written as JSON, " + ticketHelp,
		Example: "  fixpoint answer thread-1.run-1/2/color/1 '\"blue\"' --store runs\n" +
			"  fixpoint answer color 3 --store runs",
		Args: exactly("TICKET", "VALUE"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, ticket string) error {
			value := inference.JSON(args[1])
			if args[1] == "" || !value.Valid() {
				return usageError{fmt.Errorf("fixpoint: the value %q is not JSON; a text has quotes: '\"text\"'", args[1])}
			}
			d := decision{verb: "answer", done: "answered", answer: phase.Answer{Approved: true, Value: value}}
			return f.decide(ctx, d, ticket, stdio)
		})(c, args)
	}
	f.flags(c)
	return c
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
}

func (f decideFlags) decide(ctx context.Context, d decision, text string, stdio IO) error {
	return withStore(f.store, kept.Open, func(store *kept.Store) error {
		t, ticket, err := store.Find(ctx, text)
		if err != nil {
			return storeFault(err)
		}
		s, err := f.reopened(store, t)
		if err != nil {
			return err
		}
		d.answer.Ticket, d.answer.Reason = ticket, f.reason
		s.do = func(ctx context.Context, th *engine.Thread, in engine.Input, show screenful) (*engine.Result, error) {
			return d.apply(ctx, store.Folder, th, s.agent.Specs[0], in, show)
		}
		return f.perform(ctx, s, stdio)
	})
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
		return nil, usageError{fmt.Errorf("fixpoint: ticket %s is not open any more: it was answered, or its run has ended; nothing was changed", d.answer.Ticket)}
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

// standing tells where a run stands that nothing was done to, and is its outcome.
func standing(folder string, th *engine.Thread, res *engine.Result, show screenful) error {
	show.printer.Line("run", fmt.Sprintf("%s is %s", res.Run, res.Status))
	show.printer.Waiting(questions(folder, th, res.Tickets))
	if res.Status == phase.Running {
		show.printer.Line("continue", strings.Join([]string{"fixpoint", "resume", quote(th.ID()), "--store", quote(folder)}, " "))
		return exitError(ExitError)
	}
	if err := outcome(res); err != nil {
		return err
	}
	return exitError(ExitOK)
}
