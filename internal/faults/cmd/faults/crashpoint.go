package main

import (
	"context"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/crashpoint"
)

// checkCrashpoint ends a script at every point.
func checkCrashpoint(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("crashpoint", stdout)
	commits := s.flags.Int("commits", 60, "of the script for bolt, each with five points")
	appends := s.flags.Int("appends", 600, "of the script for the store in memory")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	f, err := crashpoint.Memory(ctx, s.seed, *appends)
	if err != nil {
		return err
	}
	s.tell(f)
	return s.in(func(dir string) error {
		f, err := crashpoint.Bolt(ctx, dir, s.seed, *commits)
		if err != nil {
			return err
		}
		s.tell(f)
		return nil
	})
}
