package trace

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
)

// entry is an event that waits to be written down, or the end of the trace.
type entry struct {
	event engine.Event // nil for the end
	*aside
}

// aside is what few events have.
type aside struct {
	mark string // the text of the mark that the event tells of
	lost int    // events that were dropped before it
}

// note returns what there is beside the event, to be changed.
func (e *entry) note() *aside {
	if e.aside == nil {
		e.aside = &aside{}
	}
	return e.aside
}

// mostSpare is how many entries the memory that is kept has room for.
const mostSpare = 1 << 12

// queue keeps events for a function, which gets them in order and in a goroutine that
// is there only while there is something to do. Putting never waits.
type queue struct {
	limit int
	take  func(entry)
	rest  func()      // is called when all that waited was taken
	fault func(error) // is told when take panics or ends its goroutine

	mu      sync.Mutex
	waiting []entry
	spare   []entry       // the memory of what waits next
	busy    bool          // a goroutine takes
	idle    chan struct{} // closed when it has ended
	lost    int           // since the last that was put
	total   int           // that were lost
	ended   bool
}

func (q *queue) put(in entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ended:
	case len(q.waiting) >= q.limit:
		q.lost++
		q.total++
	default:
		q.add(in)
	}
}

// end puts the end behind what is there. Nothing is taken later.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.ended = true
		q.add(entry{})
	}
}

func (q *queue) add(in entry) {
	if q.lost > 0 {
		in.note().lost, q.lost = q.lost, 0
	}
	if n := len(q.waiting); n == cap(q.waiting) {
		q.waiting = slices.Grow(q.waiting, max(n, 64))
	}
	q.waiting = append(q.waiting, in)
	if !q.busy {
		q.busy, q.idle = true, make(chan struct{})
		go q.work(q.idle, nil)
	}
}

// work takes what waits, beginning with rest, until there is nothing.
func (q *queue) work(idle chan struct{}, rest []entry) {
	over := false
	defer func() {
		if over {
			close(idle)
			return
		}
		err := errors.New("trace: an event is missing: what encoded it ended its goroutine")
		if v := recover(); v != nil {
			err = fmt.Errorf("trace: an event is missing: encoding it panicked: %v\n%s", v, debug.Stack())
		}
		q.fault(err)
		q.miss(rest)
		go q.work(idle, rest)
	}()
	for {
		for len(rest) > 0 {
			in := rest[0]
			rest[0], rest = entry{}, rest[1:]
			q.take(in)
		}
		q.rest()
		if rest, over = q.next(); over {
			return
		}
	}
}

// miss counts an event as lost before what comes next.
func (q *queue) miss(rest []entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(rest) > 0:
		rest[0].note().lost++
	case len(q.waiting) > 0:
		q.waiting[0].note().lost++
	default:
		q.lost++
	}
}

// next returns all that waits, or that there is nothing, after which it needs a new
// goroutine. What it returned before must have been taken.
func (q *queue) next() (all []entry, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.busy = false
		return nil, true
	}
	all, q.waiting = q.waiting, q.spare
	q.spare = nil
	if cap(all) <= mostSpare {
		q.spare = all[:0]
	}
	return all, false
}

func (q *queue) dropped() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// drain waits until everything was taken.
func (q *queue) drain(ctx context.Context) error {
	for {
		q.mu.Lock()
		busy, idle := q.busy, q.idle
		q.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("trace: events are still being encoded: %w", context.Cause(ctx))
		}
	}
}
