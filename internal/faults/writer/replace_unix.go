//go:build unix

package writer

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// instead is how a strike happens without a filter.
func (s Strike) instead(path string) error {
	switch s {
	case Nothing, DieAtAnswer: // the latter is the business of who tells
		return nil
	case WritesVanish, SyncFails:
		return replace(path, os.DevNull)
	case DiskFull:
		return replace(path, "/dev/full")
	case DieAtData, DieAtMeta, DieAtSync, DieAtResize:
		return die()
	}
	return fmt.Errorf("writer: there is no strike %q", s)
}

// replace makes each descriptor of a file one of a device.
func replace(path, device string) error {
	var want, have unix.Stat_t
	if err := unix.Stat(path, &want); err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	with, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) { // not every system has a device that is always full
		with, err = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	replaced := 0
	for fd := 3; fd < 256; fd++ {
		if unix.Fstat(fd, &have) != nil || have.Dev != want.Dev || have.Ino != want.Ino {
			continue
		}
		if err := unix.Dup2(with, fd); err != nil {
			return fmt.Errorf("writer: %w", err)
		}
		replaced++
	}
	if replaced == 0 {
		return fmt.Errorf("writer: no descriptor of %s is open", path)
	}
	return nil
}
