package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

func newResume(stdio IO) *cobra.Command {
	var f showFlags
	var store string
	c := &cobra.Command{
		Use:   "resume THREAD",
		Short: "Go on with a run whose process ended",
		Long: "Go on with the run of a thread in a store whose process ended before the run did.\n" +
			"It goes on from its last commit: no tool call whose result was kept runs again.\n" +
			"A run that waits for an answer goes on with approve, deny or answer instead, unless\n" +
			"the time for the answer is over: then the default counts.\n\n" +
			"It has the model of --model and the hook programs of --hooks that it was started with,\n" +
			"unless others are named.\n\n" + exitCodes,
		Example: "  fixpoint resume thread-1 --store runs",
		Args:    exactly("THREAD"),
		RunE: verb(func(ctx context.Context, id string) error {
			return onThread(ctx, store, id, func(st *kept.Store, t kept.Thread) error { return f.resume(ctx, st, t, stdio) })
		}),
	}
	storeFlag(c, &store)
	f.add(c)
	return c
}

// expired reports whether the time for the answer to a question is over.
func expired(q kept.Question) bool {
	return !q.Ticket.Until.IsZero() && !time.Now().Before(q.Ticket.Until)
}

func (f showFlags) resume(ctx context.Context, store *kept.Store, t kept.Thread, stdio IO) error {
	s, err := f.reopened(store, t, stdio)
	if err != nil {
		return err
	}
	if !t.Interrupted() && t.Lifecycle.Status != phase.Waiting {
		return usageError{fmt.Errorf("fixpoint: the run of thread %s has ended (%s); there is nothing to resume", t.ID, t.Lifecycle.Reason)}
	}
	s.do = func(ctx context.Context, th *engine.Thread, in engine.Input, show screenful) (*engine.Result, error) {
		switch {
		case t.Begun() && len(t.Open) > 0 && !slices.ContainsFunc(t.Open, expired):
			show.printer.Line("run", t.Lifecycle.Run+" waits for an answer; nothing was changed")
			var tickets []terminal.Question
			for _, q := range t.Open {
				tickets = append(tickets, question(store.Name, q))
			}
			show.printer.Waiting(tickets)
			return nil, exitError(ExitWaiting)
		case !t.Begun():
			return begin(ctx, th, s.agent, t.Record, in)
		}
		remember(th, show)
		return th.Resume(ctx, s.agent.Specs[0], in)
	}
	return f.perform(ctx, s, stdio)
}
