package serve

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Shutdown refuses new runs and streams, waits until the runs that are under way ended or
// wait, and closes the engine. When ctx ends before that, it cancels them, and gives them
// Limits.Grace more. The streams of runs that are not under way end at once, with a hint
// to come back; the others when their runs do. Runs that wait stay as they are.
//
// The error joins what is left undone. Call it before the Shutdown of the HTTP server,
// which waits for the streams.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return errDown
	}
	s.closing = true
	if s.active == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	close(s.leaving)
	defer close(s.cut)
	err := s.ends(ctx)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Limits.Grace)
	defer cancel()
	return errors.Join(err, s.engine.Close(after))
}

// ends waits until no run is under way, and cancels those that are when ctx ends.
func (s *Server) ends(ctx context.Context) error {
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for _, t := range s.threads {
		if t.run != nil {
			t.run.cancel(errShutdown)
		}
	}
	s.mu.Unlock()
	grace := time.NewTimer(s.options.Limits.Grace)
	defer grace.Stop()
	select {
	case <-s.idle:
		return nil
	case <-grace.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("serve: %d runs do not end", s.active)
}

// errDown is what a second Shutdown returns.
var errDown = errors.New("serve: it was shut down already")
