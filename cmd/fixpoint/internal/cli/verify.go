package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/store/bolt"
)

func newVerify(stdio IO) *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:     "verify",
		Short:   "Read a whole store and say what is damaged",
		Long:    "Read a whole store and say what is damaged, and where. It changes nothing.\nExit code: 0 when all is well, 1 when something is damaged, 2 for wrong arguments.",
		Example: "  fixpoint verify --store runs",
		Args:    exactly(),
		RunE: verb(func(context.Context, string) error {
			folder, err := folderOf(folder, "verify")
			if err != nil {
				return err
			}
			if err := kept.Check(folder); err != nil {
				return storeFault(err)
			}
			r, err := bolt.Verify(kept.File(folder), bolt.Options{})
			if errors.Is(err, bolt.ErrLocked) {
				err = fmt.Errorf("%w: %s", kept.ErrInUse, folder)
			}
			if err != nil {
				return storeFault(err)
			}
			if r.Stale != nil {
				if _, err := fmt.Fprintf(stdio.Out, "note: a commit was not finished, as after a crash: %v\n", r.Stale); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(stdio.Out, "%s is sound: %d threads, %d records, %d snapshots, %d effects in %d bytes\n",
				kept.File(folder), r.Threads, r.Records, r.Snapshots, r.Effects, r.Bytes)
			return err
		}),
	}
	storeFlag(c, &folder)
	return c
}
