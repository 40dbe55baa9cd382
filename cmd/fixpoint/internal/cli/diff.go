package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/listing"
)

func newDiff(stdio IO) *cobra.Command {
	var folder string
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff THREAD A B",
		Short: "Show what differs between two revisions of a thread",
		Long: "Show the keys that differ between two revisions of a thread in a store, and in each the\n" +
			"values that do, by their places: + for those that only B has, - for those that only A\n" +
			"has, and ~ for those that changed. history lists the revisions.",
		Example: "  fixpoint diff thread-1 12 31 --store runs",
		Args:    exactly("THREAD", "A", "B"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, id string) error {
			a, err := revision(args[1])
			if err != nil {
				return err
			}
			b, err := revision(args[2])
			if err != nil {
				return err
			}
			return onThread(ctx, folder, id, func(store *kept.Store, t kept.Thread) error {
				th, err := store.Open(ctx, t.ID)
				if err != nil {
					return storeFault(err)
				}
				all, err := th.Diff(ctx, a, b)
				switch {
				case err != nil:
					return storeFault(err)
				case asJSON:
					return writeJSON(stdio.Out, all)
				default:
					return listing.Diff(stdio.Out, all, "--json has the whole values")
				}
			})
		})(c, args)
	}
	storeFlag(c, &folder)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, with whole values")
	return c
}

// revision reads the number of a revision.
func revision(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, usageError{fmt.Errorf("fixpoint: %q is no revision; \"fixpoint history\" lists them", text)}
	}
	return n, nil
}
