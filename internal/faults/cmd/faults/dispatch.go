//go:build unix

package main

import (
	"context"
	"errors"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/crew"
	"github.com/ddd26017/fixpoint/internal/faults/outbox"
)

func init() {
	parts = append(parts, outbox.ServedDispatcher)
	checks["dispatch"] = checkDispatch
}

// checkDispatch is checkOutbox for stores on servers.
func checkDispatch(ctx context.Context, args []string, stdout io.Writer) error {
	s := newShared("dispatch", stdout)
	effects := s.flags.Int("effects", 100_000, "in each store")
	every := s.flags.Int("every", 500, "deliveries in the life of a dispatcher, on average")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	return s.each(ctx, func(o crew.Options, _ *figures) error {
		kind := "nats"
		if o.Server.Postgres() != nil {
			kind = "postgres"
		}
		f, err := outbox.RunServed(ctx, o.Server, outbox.Plan{Store: kind, Effects: *effects, Every: *every, Seed: o.Seed})
		s.tell(f)
		return errors.Join(err, f.Err())
	})
}
