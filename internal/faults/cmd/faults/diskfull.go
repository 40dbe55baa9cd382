package main

import (
	"context"
	"fmt"
	"io"

	"github.com/ddd26017/fixpoint/internal/faults/diskfull"
)

// checkDiskfull fills disks under bolt stores.
func checkDiskfull(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("diskfull", stdout)
	device := s.flags.Int("device", 20, "rounds on a small file system of a loop device; 0: none, which needs no root")
	filter := s.flags.Int("filter", 100, "rounds in which the writes of a process fail")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	return s.in(func(dir string) error {
		f, err := diskfull.Filter(ctx, dir, *filter, s.seed)
		if err != nil {
			return err
		}
		s.tell(fmt.Sprintf("diskfull filter store=bolt %v", f))
		if *device == 0 {
			return nil
		}
		f, err = diskfull.Device(ctx, dir, *device, s.seed)
		if err != nil {
			return err
		}
		s.tell(fmt.Sprintf("diskfull device store=bolt %v", f))
		return nil
	})
}
