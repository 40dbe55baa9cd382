package bench

import (
	"sync"

	"github.com/ddd26017/fixpoint/engine"
)

// mailbox is the least that hands events from one goroutine to another: a slice that
// the reader takes whole, and that holds back a writer who is too far ahead.
type mailbox struct {
	mu      sync.Mutex
	changed sync.Cond
	waiting []engine.Event
	spare   []engine.Event // taken before, to be filled again
	closed  bool
}

// mailboxSize is the default of Limits.EventBuffer.
const mailboxSize = 4096

func newMailbox() *mailbox {
	q := &mailbox{}
	q.changed.L = &q.mu
	return q
}

func (q *mailbox) put(e engine.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == mailboxSize {
		q.changed.Wait()
	}
	q.waiting = append(q.waiting, e)
	if len(q.waiting) == 1 {
		q.changed.Signal() // one of the two sides waits, never both
	}
}

// take returns what is waiting, good until the next call, and nil once all is taken
// from a closed mailbox.
func (q *mailbox) take() []engine.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.waiting) == 0 {
		return nil
	}
	if len(q.waiting) == mailboxSize {
		q.changed.Signal()
	}
	taken := q.waiting
	clear(q.spare)
	q.waiting, q.spare = q.spare[:0], taken
	return taken
}

func (q *mailbox) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.changed.Signal()
}
