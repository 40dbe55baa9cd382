package main

import (
	"context"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/outbox"
)

// checkOutbox kills dispatchers between a delivery and its settlement.
func checkOutbox(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("outbox", stdout)
	store := s.flags.String("store", "all", "memstore, bolt or all")
	effects := s.flags.Int("effects", 100_000, "in each store")
	every := s.flags.Int("every", 500, "deliveries in the life of a dispatcher, on average")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	stores, err := chosen(*store, "memstore", "bolt")
	if err != nil {
		return err
	}
	for _, name := range stores {
		err := s.in(func(dir string) error {
			f, err := outbox.Run(ctx, dir, outbox.Plan{Store: name, Effects: *effects, Every: *every, Seed: s.seed})
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
