package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
)

func newHistory(stdio IO) *cobra.Command {
	var folder string
	var asJSON bool
	c := &cobra.Command{
		Use:   "history THREAD",
		Short: "List the commits of a thread, newest first",
		Long: "List the commits of a thread in a store, newest first, one line each: revision, time,\n" +
			"run, step, the run's status after it, and the keys that it wrote. diff and fork take\n" +
			"such revisions. Commits that were pruned are not there.",
		Example: "  fixpoint history thread-1 --store runs",
		Args:    exactly("THREAD"),
		RunE: verb(func(ctx context.Context, id string) error {
			return onThread(ctx, folder, id, func(store *kept.Store, t kept.Thread) error {
				all, err := revisions(ctx, store, t.ID)
				if err != nil {
					return storeFault(err)
				}
				if asJSON {
					return writeJSON(stdio.Out, all)
				}
				w := tabwriter.NewWriter(stdio.Out, 0, 0, 2, ' ', 0)
				for _, r := range all {
					when := "-"
					if !r.Time.IsZero() {
						when = r.Time.Local().Format("2006-01-02 15:04:05")
					}
					_, err := fmt.Fprintf(w, "%d\t%s\t%s\tstep %d\t%s\t%s\n", r.Revision, when, cmp.Or(r.Run, "-"), r.Step,
						cmp.Or(string(r.Status), "-"), cmp.Or(strings.Join(r.Keys, " "), "-"))
					if err != nil {
						return err
					}
				}
				return w.Flush()
			})
		}),
	}
	storeFlag(c, &folder)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// revisions returns the commits of a thread, newest first.
func revisions(ctx context.Context, store *kept.Store, id string) ([]engine.Revision, error) {
	th, err := store.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	all := []engine.Revision{}
	for r, err := range th.History(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
