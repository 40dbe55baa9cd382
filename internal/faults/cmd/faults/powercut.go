package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/powercut"
)

// checkPowercut cuts the power of bolt stores, with syncs and, as a control, without.
func checkPowercut(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("powercut", stdout)
	cuts := s.flags.Int("cuts", 200, "of stores on a loop device; 0: none, which needs no root")
	control := s.flags.Int("control", 20, "cuts of stores that do not sync")
	orders := s.flags.Int("orders", 5000, "cuts of files put together from those before and after a commit")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	type run func(context.Context, string, powercut.Plan) (powercut.Figures, error)
	var missed error
	for _, check := range []struct {
		name string
		run  run
		plan powercut.Plan
	}{
		{"order store=bolt", powercut.Order, powercut.Plan{Cuts: *orders}},
		{"order control=nosync", powercut.Order, powercut.Plan{Cuts: *orders / 10, NoSync: true}},
		{"device control=nosync", powercut.Device, powercut.Plan{Cuts: *control, NoSync: true}},
		{"device store=bolt", powercut.Device, powercut.Plan{Cuts: *cuts}},
	} {
		if check.plan.Cuts == 0 || *cuts == 0 && check.name[0] == 'd' {
			continue
		}
		check.plan.Seed = s.seed
		err := s.in(func(dir string) error {
			f, err := check.run(ctx, dir, check.plan)
			if err != nil {
				return err
			}
			s.tell(fmt.Sprintf("powercut %s %v", check.name, f))
			return f.Err()
		})
		missed = errors.Join(missed, err)
	}
	return missed
}
