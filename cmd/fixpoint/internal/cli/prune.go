package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
)

func newPrune(stdio IO) *cobra.Command {
	var folder string
	var keep int
	var older time.Duration
	c := &cobra.Command{
		Use:   "prune THREAD",
		Short: "Drop the older part of a thread's history",
		Long: "Drop the older part of a thread's history in a store. The state stays, and so do the\n" +
			"newest snapshot and all that came after it: the thread goes on as before. What was\n" +
			"dropped cannot be shown or forked any more. A snapshot is made with each step of a run.\n" +
			"With both flags, what either allows goes.",
		Example: "  fixpoint prune thread-1 --keep 3 --store runs\n" +
			"  fixpoint prune thread-1 --older 720h --store runs",
		Args: exactly("THREAD"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, id string) error {
			policy := engine.PrunePolicy{KeepSnapshots: keep}
			switch {
			case !c.Flags().Changed("keep") && !c.Flags().Changed("older"):
				return usageError{errors.New("fixpoint: say what to drop: --keep N, --older DURATION, or both")}
			case c.Flags().Changed("keep") && keep < 1:
				return usageError{errors.New("fixpoint: --keep: at least one snapshot stays")}
			case older < 0:
				return usageError{errors.New("fixpoint: --older: use a positive duration, such as 720h")}
			case c.Flags().Changed("older"):
				policy.Before = time.Now().Add(-older)
			}
			return onThread(ctx, folder, id, func(store *kept.Store, t kept.Thread) error {
				before, err := revisions(ctx, store, t.ID)
				if err != nil {
					return storeFault(err)
				}
				if err := store.Journal.Prune(ctx, t.ID, policy); err != nil {
					return storeFault(err)
				}
				after, err := revisions(ctx, store, t.ID)
				if err != nil {
					return storeFault(err)
				}
				_, err = fmt.Fprintf(stdio.Out, "%s: %d of %d revisions dropped\n", t.ID, len(before)-len(after), len(before))
				return err
			})
		})(c, args)
	}
	storeFlag(c, &folder)
	c.Flags().IntVar(&keep, "keep", 0, "keep `N` snapshots and what came after them")
	c.Flags().DurationVar(&older, "older", 0, "drop what is older than this `duration`, such as 720h")
	return c
}
