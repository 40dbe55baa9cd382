package main

import (
	"context"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/contest"
)

// checkContest lets writers fight over threads.
func checkContest(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("contest", stdout)
	store := s.flags.String("store", "all", "memstore, bolt or all")
	commits := s.flags.Int("commits", 100_000, "to be won on each store")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	stores, err := chosen(*store, "memstore", "bolt")
	if err != nil {
		return err
	}
	for _, name := range stores {
		err := s.in(func(dir string) error {
			f, err := contest.Run(ctx, dir, contest.Plan{Store: name, Commits: *commits, Seed: s.seed})
			if err != nil {
				return err
			}
			s.tell(f)
			return f.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
