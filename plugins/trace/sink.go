package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
)

// sink writes to a writer from a goroutine of its own, which is there only while
// there is something to write. What the writer does is not felt by who puts.
type sink struct {
	name   string
	w      io.Writer
	limit  int
	notice func(n int) []byte // what is written where n pieces are missing; nil for nothing

	mu     sync.Mutex
	queue  []byte
	busy   bool          // a goroutine writes
	idle   chan struct{} // closed when it has ended
	err    error         // of the writer, which then gets no more
	missed int           // pieces that were dropped
	gap    int           // pieces that are missing in front of the next one
}

func newSink(name string, w io.Writer, limit int) *sink { return &sink{name: name, w: w, limit: limit} }

// put queues a piece, whole or not at all.
func (s *sink) put(piece []byte) { s.add(piece, false) }

// must is put for a piece without which the rest is worth nothing.
func (s *sink) must(piece []byte) { s.add(piece, true) }

// add queues a piece for the next flush. If there is much to write, the writer gets it and
// a turn now, so that the memory of what was written is used again.
func (s *sink) add(piece []byte, must bool) {
	if s.enqueue(piece, must) {
		s.flush()
		runtime.Gosched()
	}
}

func (s *sink) enqueue(piece []byte, must bool) (much bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.queue)
	if s.err != nil || !must && len(s.queue) > 0 && len(s.queue)+len(piece) > s.limit {
		s.missed++
		s.gap++
		return false
	}
	if s.gap > 0 && s.notice != nil {
		s.queue = append(s.queue, s.notice(s.gap)...)
	}
	s.gap = 0
	if len(s.queue) > 0 && len(s.queue)+len(piece) > cap(s.queue) {
		s.queue = slices.Grow(s.queue, len(piece)+mostKept) // many will come
	}
	s.queue = append(s.queue, piece...)
	return len(s.queue)/mostKept > before/mostKept
}

// flush has the writer write what is queued. Waking it costs more than many a piece.
func (s *sink) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy && len(s.queue) > 0 {
		s.busy, s.idle = true, make(chan struct{})
		go s.write(s.idle)
	}
}

// lose notes that what n events would have come to is missing.
func (s *sink) lose(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gap += n
}

// tell writes what is missing at the end.
func (s *sink) tell() {
	s.mu.Lock()
	gap := s.gap
	s.mu.Unlock()
	if gap > 0 {
		s.must(nil)
	}
}

// lost is how many pieces were dropped so far.
func (s *sink) lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}

// write hands the queue to the writer until it is empty or the writer fails, which it
// may also do by a panic or by ending the goroutine.
func (s *sink) write(idle chan struct{}) {
	defer close(idle)
	writing := true
	defer func() {
		if !writing {
			return // and another goroutine may be at it by now
		}
		err := errors.New("the writer ended its goroutine")
		if v := recover(); v != nil {
			err = fmt.Errorf("the writer panicked: %v\n%s", v, debug.Stack())
		}
		s.stop(err)
	}()
	var piece []byte
	for {
		if piece, writing = s.next(piece); !writing {
			return
		}
		n, err := s.w.Write(piece)
		if err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
		if err != nil {
			writing = false
			s.stop(err)
			return
		}
	}
}

// next takes what is queued, whose place the memory of done has. If there is nothing
// the next piece needs a new goroutine.
func (s *sink) next(done []byte) (piece []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.busy, s.queue = false, nil
		if cap(done) <= 2*mostKept {
			s.queue = done[:0]
		}
		return nil, false
	}
	piece, s.queue = s.queue, done[:0]
	return piece, true
}

// stop notes that the writer failed.
func (s *sink) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.queue, s.err = false, nil, err
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
