package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/listing"
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
				return listing.History(stdio.Out, all)
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
	return listing.Revisions(ctx, th)
}
