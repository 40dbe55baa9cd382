package courtesy

import (
	"sync/atomic"
	"time"
)

// Turn is what one at a time can have. The zero Turn is free. It is safe for concurrent
// use.
type Turn struct{ held atomic.Pointer[Hold] }

// Hold is a turn that somebody has.
type Hold struct{ done chan struct{} }

// limit is how long others wait for a turn to end. Then it is free.
const limit = 250 * time.Millisecond

// Take returns the turn for who called it to End, or nil if it is not free.
func (t *Turn) Take() *Hold {
	h := &Hold{make(chan struct{})}
	if !t.held.CompareAndSwap(nil, h) {
		return nil
	}
	return h
}

// End ends a turn, once, unless it is nil.
func (t *Turn) End(h *Hold) {
	if h != nil {
		t.held.CompareAndSwap(h, nil)
		close(h.done)
	}
}

// Yield waits for whoever has the turn, unless that is mine or nobody.
func (t *Turn) Yield(mine *Hold) {
	if h := t.held.Load(); h != nil && h != mine {
		t.wait(h)
	}
}

func (t *Turn) wait(h *Hold) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-h.done:
	case <-timer.C:
		t.held.CompareAndSwap(h, nil)
	}
}
