//go:build unix

package zombie

import (
	"errors"
	"syscall"
)

// stop stops a child and returns when it has stopped.
func stop(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return err
		case !status.Stopped():
			return errors.New("it ended instead of stopping")
		}
		return nil
	}
}

// proceed lets a stopped child go on.
func proceed(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }
