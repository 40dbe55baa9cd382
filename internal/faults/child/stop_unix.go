//go:build unix

package child

import (
	"fmt"
	"os"
	"syscall"
)

// Stop stops a child and returns when none of its threads runs any more. A system call
// that cannot be interrupted, such as a sync, ends first. It fails when the child has
// ended.
func Stop(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("child: stop: %w", err)
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return fmt.Errorf("child: stop: %w", err)
		case status.Stopped():
			return nil
		default:
			return fmt.Errorf("child: it ended before it could be stopped, with status %d", status)
		}
	}
}

// Continue lets a stopped child go on.
func Continue(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
