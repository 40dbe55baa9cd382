package trace

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
)

// sink writes to a writer from a goroutine of its own, which is there only while
// there is something to write. What the writer does is not felt by who puts.
type sink struct {
	name  string
	w     io.Writer
	limit int

	mu     sync.Mutex
	queue  []byte
	busy   bool          // a goroutine writes
	idle   chan struct{} // closed when it has ended
	err    error         // of the writer, which then gets no more
	missed int           // pieces that were dropped
}

func newSink(name string, w io.Writer, limit int) *sink { return &sink{name: name, w: w, limit: limit} }

// put queues a piece, whole or not at all.
func (s *sink) put(piece []byte) { s.add(piece, false) }

// must is put for a piece without which the rest is worth nothing.
func (s *sink) must(piece []byte) { s.add(piece, true) }

func (s *sink) add(piece []byte, must bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || !must && len(s.queue) > 0 && len(s.queue)+len(piece) > s.limit {
		s.missed++
		return
	}
	s.queue = append(s.queue, piece...)
	if !s.busy {
		s.busy, s.idle = true, make(chan struct{})
		go s.write(s.idle)
	}
}

// write hands the queue to the writer until it is empty or the writer fails.
func (s *sink) write(idle chan struct{}) {
	defer close(idle)
	var piece []byte
	for {
		s.mu.Lock()
		if len(s.queue) == 0 || s.err != nil {
			s.busy, s.queue = false, nil
			s.mu.Unlock()
			return
		}
		piece, s.queue = s.queue, piece[:0]
		s.mu.Unlock()
		if err := s.call(piece); err != nil {
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
		}
	}
}

// call is a Write that may also panic or end its goroutine.
func (s *sink) call(piece []byte) (err error) {
	over := make(chan struct{})
	go func() {
		err = fmt.Errorf("the writer ended its goroutine")
		defer close(over)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("the writer panicked: %v\n%s", v, debug.Stack())
			}
		}()
		var n int
		if n, err = s.w.Write(piece); err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
	}()
	<-over
	return err
}

// fault is what the writer failed to do.
func (s *sink) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return fmt.Errorf("trace: writing %s: %w (%d pieces were dropped since)", s.name, s.err, s.missed)
	case s.missed > 0:
		return fmt.Errorf("trace: writing %s: %d pieces were dropped, the writer was too slow", s.name, s.missed)
	}
	return nil
}

// drain waits until everything was written.
func (s *sink) drain(ctx context.Context) error {
	for {
		s.mu.Lock()
		busy, idle := s.busy, s.idle
		s.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("trace: writing %s: the writer has not taken everything: %w", s.name, context.Cause(ctx))
		}
	}
}
