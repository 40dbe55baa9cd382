package chat

import (
	"context"
	"errors"
	"time"
)

// errInterrupted is the cause of what Ctrl-C cancels.
var errInterrupted = errors.New("cancelled at the terminal")

// twice is the time in which a second Ctrl-C leaves.
const twice = 2 * time.Second

// Interrupt is what Ctrl-C does: it cancels what is under way, and leaves the session
// when it comes a second time within two seconds.
func (s *Session) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	again := !s.last.IsZero() && now.Sub(s.last) < twice
	s.last = now
	busy := s.cancel != nil
	if busy {
		s.cancel(errInterrupted)
	}
	switch {
	case again && !s.leaving:
		s.leaving = true
		close(s.left)
	case busy:
		s.notes.Text("cancel", "the run is being cancelled; Ctrl-C again within 2 seconds leaves")
	case !again:
		s.notes.Text("hint", "Ctrl-C again within 2 seconds leaves, as Ctrl-D does")
	}
}

// begin makes a context that Ctrl-C cancels, until done is called.
func (s *Session) begin(ctx context.Context) (job context.Context, done func()) {
	job, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.job, s.cancel = job, cancel
	s.mu.Unlock()
	return job, func() {
		s.mu.Lock()
		s.job, s.cancel = nil, nil
		s.mu.Unlock()
		cancel(nil)
	}
}

// underWay returns the context of what is under way.
func (s *Session) underWay() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.job == nil {
		return context.Background()
	}
	return s.job
}
