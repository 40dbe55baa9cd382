//go:build unix

package postgrestest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// signal sends the postmaster a signal.
func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("postgrestest: the server does not run")
	}
	if err := syscall.Kill(s.process.pid, sig); err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	return nil
}

// Kill kills the postmaster and all its processes, with no chance to write anything more.
func (s *Server) Kill() error {
	return s.end(func(p *process) error {
		// It must not start others while it is being looked at.
		if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
			return err
		}
		all := children(p.pid)
		for _, child := range all {
			_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended meanwhile
		}
		if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
			return err
		}
		// One that is still in the middle of a write must not meet the next server.
		for _, child := range all {
			for syscall.Kill(child, 0) == nil {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	})
}

// KillBackend kills one of the processes that serve connections, chosen by a number, which
// makes the server break off all the others and recover. It returns false when there is none.
func (s *Server) KillBackend(n int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return false, errors.New("postgrestest: the server does not run")
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "args=").Output()
	if err != nil {
		return false, fmt.Errorf("postgrestest: ps: %w", err)
	}
	var backends []int
	for line := range strings.Lines(string(out)) {
		var pid, of int
		if k, _ := fmt.Sscan(line, &pid, &of); k == 2 && of == s.process.pid && strings.Contains(line, " fixpoint postgres ") {
			backends = append(backends, pid)
		}
	}
	if len(backends) == 0 {
		return false, nil
	}
	return true, syscall.Kill(backends[n%len(backends)], syscall.SIGKILL)
}

// Stop ends the server as an administrator does, who breaks off what runs.
func (s *Server) Stop() error {
	return s.end(func(p *process) error { return syscall.Kill(p.pid, syscall.SIGINT) })
}

// Pause stops all processes of the server in the middle of what they do, as if its machine
// were cut off; Resume lets them go on.
func (s *Server) Pause() error { return s.all(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.all(syscall.SIGCONT) }

func (s *Server) all(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("postgrestest: the server does not run")
	}
	err := syscall.Kill(s.process.pid, sig)
	for _, child := range children(s.process.pid) {
		_ = syscall.Kill(child, sig)
	}
	if err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	return nil
}

// end ends the server and waits for that.
func (s *Server) end(how func(p *process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	err := how(p)
	// The shell's own wait is for the server; closing the pipe ends what else it runs.
	defer p.alive.Close()
	if err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		return fmt.Errorf("postgrestest: the server does not end:\n%s", p.log)
	}
	return nil
}

// children returns the processes of a parent.
func children(parent int) (pids []int) {
	out, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "ppid=").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		var pid, of int
		if n, _ := fmt.Sscan(line, &pid, &of); n == 2 && of == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Close kills the server and removes its folder.
func (s *Server) Close() error {
	err := s.Kill()
	if removed := os.RemoveAll(s.dir); removed != nil {
		err = errors.Join(err, fmt.Errorf("postgrestest: %w", removed))
	}
	return err
}
