package main

import (
	"context"
	"fmt"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/syncfail"
)

// checkSyncfail lets syncs fail under bolt stores.
func checkSyncfail(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("syncfail", stdout)
	rounds := s.flags.Int("rounds", 200, "processes whose syncs fail")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	return s.in(func(dir string) error {
		f, err := syncfail.Run(ctx, dir, *rounds, s.seed)
		if err != nil {
			return err
		}
		s.tell(fmt.Sprintf("syncfail store=bolt %v", f))
		return nil
	})
}
