package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/listing"
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
				return listing.Threads(stdio.Out, threads)
			})
		}),
	}
	storeFlag(c, &folder)
	return c
}
