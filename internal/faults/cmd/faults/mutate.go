package main

import (
	"context"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/mutate"
)

// checkMutate damages a file of store/bolt in all its sectors.
func checkMutate(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("mutate", stdout)
	random := s.flags.Int("random", 10_000, "mutations besides those of every sector")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	f, err := mutate.Run(ctx, *random, s.seed)
	if err != nil {
		return err
	}
	s.tell(f)
	return f.Err(*random)
}
