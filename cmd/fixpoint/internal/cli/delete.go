package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/listing"
)

func newDelete(stdio IO) *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "delete THREAD",
		Short: "Delete a thread with all that is kept of it",
		Long: "Delete a thread from a store: its state and history, its effects that were not delivered,\n" +
			"and the secrets that it was given. A run that waits or was interrupted cannot go on then.\n" +
			"Files that the run wrote stay.",
		Example: "  fixpoint delete thread-1 --store runs",
		Args:    exactly("THREAD"),
		RunE: verb(func(ctx context.Context, id string) error {
			return onThread(ctx, folder, id, func(store *kept.Store, t kept.Thread) error {
				if err := store.Delete(ctx, t.ID); err != nil {
					return storeFault(err)
				}
				_, err := fmt.Fprintf(stdio.Out, "%s is deleted; it was %s\n", t.ID, listing.Status(t))
				return err
			})
		}),
	}
	storeFlag(c, &folder)
	return c
}
