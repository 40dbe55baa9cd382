package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/phase"
)

func newThreads(stdio IO) *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "threads",
		Short: "List the threads of a store: status, step and agent",
		Long: "List the threads of a store, one line each: id, status, step, agent, and what there is\n" +
			"to say of it. A status of \"running\" means that the process of the run ended before\n" +
			"the run did, or that it is a fork that has not gone on yet.",
		Example: "  fixpoint threads --store runs",
		Args:    exactly(),
		RunE: verb(func(ctx context.Context, _ string) error {
			return withStore(folder, kept.Open, func(store *kept.Store) error {
				threads, err := store.Threads(ctx)
				if err != nil {
					return storeFault(err)
				}
				w := tabwriter.NewWriter(stdio.Out, 0, 0, 2, ' ', 0)
				for _, t := range threads {
					line := fmt.Sprintf("%s\t%s\tstep %d\t%s\t%s", t.ID, status(t), t.Lifecycle.Step, cmp.Or(t.Record.Agent, "-"), remark(t))
					if _, err := fmt.Fprintln(w, strings.TrimRight(line, "\t")); err != nil {
						return err
					}
				}
				return w.Flush()
			})
		}),
	}
	storeFlag(c, &folder)
	return c
}

func status(t kept.Thread) phase.RunStatus {
	if t.Interrupted() {
		return phase.Running
	}
	return cmp.Or(t.Lifecycle.Status, phase.Created)
}

// remark says what to know of a thread besides its status.
func remark(t kept.Thread) string {
	switch {
	case len(t.Open) == 1:
		return "1 open ticket"
	case len(t.Open) > 0:
		return fmt.Sprintf("%d open tickets", len(t.Open))
	case t.Interrupted() && t.Forked:
		return "forked; resume goes on with it"
	case t.Interrupted():
		return "its process ended; resume goes on with it"
	default:
		return string(t.Lifecycle.Reason)
	}
}
