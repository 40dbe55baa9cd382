package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/linear"
)

// checkLinear checks histories for linearizability, after it has made sure that the
// checker finds stores that are broken.
func checkLinear(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("linear", stdout)
	histories := s.flags.Int("histories", 240, "in all, spread over the stores")
	operations := s.flags.Int("operations", 5000, "in each history")
	clients := s.flags.Int("clients", 8, "at the same time")
	threads := s.flags.Int("threads", 4, "that they fight over")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	plan := linear.Plan{Seed: s.seed, Clients: *clients, Threads: *threads, Operations: *operations}
	return s.in(func(dir string) error {
		found := 0
		for _, kind := range linear.Broken() {
			f, err := kind.Run(ctx, dir, 1, linear.Plan{Seed: s.seed, Clients: 4, Threads: 2, Operations: 2000})
			if err != nil {
				return err
			}
			found += f.Illegal
		}
		s.tell(fmt.Sprintf("linear control=broken stores=%d found=%d seed=%d", len(linear.Broken()), found, s.seed))
		var missed error
		if found < len(linear.Broken()) {
			missed = errors.New("linear: a broken store was not found, so the check sees too little")
		}
		all := linear.Figures{Store: "all"}
		for n, kind := range linear.Kinds() {
			share := (*histories + len(linear.Kinds()) - 1 - n) / len(linear.Kinds())
			f, err := kind.Run(ctx, dir, share, plan)
			if err != nil {
				return fmt.Errorf("%s: %w", kind.Name, err)
			}
			s.tell(f)
			missed = errors.Join(missed, f.Err())
			plan.Seed += uint64(share)
			all.Histories += f.Histories
			all.Operations += f.Operations
			all.Won += f.Won
			all.Refused += f.Refused
			all.Unknown += f.Unknown
			all.Illegal += f.Illegal
			all.Undecided += f.Undecided
		}
		s.tell(fmt.Sprintf("%v seeds=%d..%d", all, s.seed, plan.Seed-1))
		return missed
	})
}
