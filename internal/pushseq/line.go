package pushseq

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Work is what a Line does with its values.
type Work[T, R any] interface {
	// Do deals with a value and returns what came of it. Its context ends when the value
	// is given up on. It must not panic nor end its goroutine.
	Do(ctx context.Context, v T) R
	// After reports whether a comes behind b, also if it was put into the line before b.
	After(a, b T) bool
	// Refused is what comes of a value that nothing is done with.
	Refused(v T, cause error) R
	// Late is what Do returned for a value that was given up on.
	Late(r R) R
	// Tell is called with what came of each value, once, and outside every lock. It may
	// end its goroutine.
	Tell(r R)
}

// Line deals with values one at a time and in order. It has no goroutine while it is
// empty. Its fields are set before use and stay; its methods are safe for concurrent use,
// and what does the work may call them too, except that it cannot Drain the line.
type Line[T, R any] struct {
	Work Work[T, R]
	// Beside has a goroutine of the line's own do the work, and not whoever puts a value
	// into an idle line.
	Beside bool
	// Limit is how many values may wait; or, unless Beside, how many may be put into the
	// line while it is at work.
	Limit  int
	Causes *LineCauses

	mu      sync.Mutex
	queue   []waiting[T]
	idle    chan struct{} // not nil while someone works, who alone takes from the queue; closed after that
	current waiting[T]    // the value at work, if any
	added   int           // values put into the line during the current work
	shut    bool
}

// LineCauses are the errors of a Line, all of them different.
type LineCauses struct {
	Full    error // there are Limit values
	Shut    error // the line was shut
	GivenUp error // the drain ended before the value's turn or its work did
	Inside  error // what does the work cannot wait for it
}

// waiting keeps the context that a value was put into the line with until its work is done.
type waiting[T any] struct {
	ctx    context.Context //nolint:containedctx // it belongs to the value and goes with it
	giveUp context.CancelCauseFunc
	v      T
}

// Put puts values into the line, each with ctx, and returns what came of those that it
// refused and, unless the work is done beside, of all that it worked on before the line was
// empty. It returns at once if somebody else is at work.
func (l *Line[T, R]) Put(ctx context.Context, values []T) []R {
	var out []R
	l.mu.Lock()
	for _, v := range values {
		if err := l.admit(waiting[T]{ctx: ctx, v: v}); err != nil {
			out = append(out, l.Work.Refused(v, err))
		}
	}
	work := l.idle == nil && len(l.queue) > 0
	if work {
		l.idle = make(chan struct{})
	}
	l.mu.Unlock()

	for _, r := range out {
		l.tell(r)
	}
	switch {
	case !work:
	case l.Beside:
		go l.work(func(R) {})
	default:
		l.work(func(r R) { out = append(out, r) })
	}
	return out
}

// Drain waits until the line is empty, and shuts it then if it is to. If ctx ends first
// it gives up on what is left, the value at work included, and returns how many those are
// with the error of ctx. Called with the context of the work it returns Causes.Inside.
func (l *Line[T, R]) Drain(ctx context.Context, shut bool) (left int, err error) {
	if ctx.Value(l) != nil {
		return 0, l.Causes.Inside
	}
	for idle := l.whenIdle(shut); idle != nil; idle = l.whenIdle(shut) {
		select {
		case <-idle:
		case <-ctx.Done():
			return l.cutShort(shut), ctx.Err()
		}
	}
	return 0, nil
}

// whenIdle returns a channel that is closed when the current work ends. If there is none
// it returns nil, and shuts the line in the same instant if asked to.
func (l *Line[T, R]) whenIdle(shut bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = l.shut || shut && l.idle == nil
	return l.idle
}

func (l *Line[T, R]) cutShort(shut bool) int {
	l.mu.Lock()
	left := l.queue
	l.queue = nil
	l.shut = l.shut || shut
	if l.current.giveUp != nil && l.end(l.current, l.Causes.GivenUp) {
		l.current.giveUp = nil // it is counted once, and told here, before the drain ends
		left = slices.Insert(left, 0, l.current)
	}
	l.mu.Unlock()

	for _, w := range left {
		l.tell(l.Work.Refused(w.v, l.Causes.GivenUp))
	}
	return len(left)
}

// admit puts one value into the queue, before those that come after it. The caller holds
// the mutex.
func (l *Line[T, R]) admit(w waiting[T]) error {
	n := l.added
	if l.Beside {
		n = len(l.queue)
	}
	switch {
	case l.shut:
		return l.Causes.Shut
	case n >= l.Limit:
		return l.Causes.Full
	case l.idle != nil:
		l.added++
	}
	at := len(l.queue)
	for at > 0 && l.Work.After(l.queue[at-1].v, w.v) {
		at--
	}
	l.queue = slices.Insert(l.queue, at, w)
	return nil
}

// work works until the queue is empty. The caller has set idle.
func (l *Line[T, R]) work(collect func(R)) {
	w, more := l.next()
	defer func() {
		// Tell may have ended this goroutine; someone has to carry on, or the line would stand for ever.
		if more {
			go l.work(func(R) {})
		}
	}()
	for ; more; w, more = l.next() {
		r := l.Work.Do(context.WithValue(w.ctx, l, true), w.v)
		if l.end(w, nil) { // then the drain that gave it up tells of it
			collect(l.Work.Late(r))
			continue
		}
		collect(r)
		l.tell(r)
	}
}

// next takes the first value, or ends the work if there is none.
func (l *Line[T, R]) next() (waiting[T], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		close(l.idle)
		l.queue, l.idle, l.current, l.added = nil, nil, waiting[T]{}, 0
		return waiting[T]{}, false
	}
	w := l.queue[0]
	l.queue[0] = waiting[T]{}
	l.queue = l.queue[1:]
	w.ctx, w.giveUp = context.WithCancelCause(w.ctx)
	l.current = w
	return w, true
}

// end ends the work on a value for that reason, which counts if it is the first, and
// reports whether a drain gave it up.
func (l *Line[T, R]) end(w waiting[T], reason error) (givenUp bool) {
	w.giveUp(reason)
	return errors.Is(context.Cause(w.ctx), l.Causes.GivenUp)
}

// tell drops a panic of Tell.
func (l *Line[T, R]) tell(r R) {
	defer func() { _ = recover() }()
	l.Work.Tell(r)
}
