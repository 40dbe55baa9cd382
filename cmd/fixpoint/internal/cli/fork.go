package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/listing"
)

func newFork(stdio IO) *cobra.Command {
	var folder, id string
	c := &cobra.Command{
		Use:   "fork THREAD REVISION",
		Short: "Make a new thread of an earlier revision of a thread",
		Long: "Make a new thread that begins as a thread in a store was at a revision. The thread\n" +
			"itself is not changed. A run that had not ended there is the new thread's own: resume\n" +
			"goes on with it, with tools that ran after that revision run again, and what was asked\n" +
			"about calls without a result is asked again. history lists the revisions.",
		Example: "  fixpoint fork thread-1 12 --store runs\n" +
			"  fixpoint fork thread-1 12 --id other --store runs && fixpoint resume other --store runs",
		Args: exactly("THREAD", "REVISION"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, from string) error {
			at, err := revision(args[1])
			switch {
			case err != nil:
				return err
			case at == 0:
				return usageError{errors.New("fixpoint: at revision 0 there is nothing yet; \"fixpoint history\" lists the others")}
			}
			return onThread(ctx, folder, from, func(store *kept.Store, t kept.Thread) error {
				next := id
				if next == "" {
					if next, err = store.NewThreadID(ctx); err != nil {
						return storeFault(err)
					}
				} else if err := kept.CheckThreadID(next); err != nil {
					return usageError{fmt.Errorf("fixpoint: --id: %w", err)}
				}
				fork, err := store.Fork(ctx, t.ID, at, next)
				if err != nil {
					return storeFault(err)
				}
				_, err = fmt.Fprintf(stdio.Out, "%s begins as %s was at revision %d: %s\n", fork.ID, t.ID, at, listing.Status(fork))
				if err == nil && fork.Interrupted() {
					_, err = fmt.Fprintf(stdio.Out, "continue with: %s\n", resumeCommand(store.Name, fork.ID))
				}
				return err
			})
		})(c, args)
	}
	storeFlag(c, &folder)
	c.Flags().StringVar(&id, "id", "", "the `id` of the new thread (default: the next of thread-1, thread-2, ...)")
	return c
}
