package pushseq

import (
	"sync"
	"time"
)

// Feed hands pushed values to a function, one at a time and in order, in a
// goroutine of its own that lives until the feed was shut. Pushing never waits: who
// pushes asks Full whether it is time to Await the function, which has a bounded
// grace for that. All methods are safe for concurrent use.
type Feed[T any] struct {
	fn      func(T)
	buffer  int
	endless bool // is never given up on

	mu       sync.Mutex
	grace    time.Duration // left of the time that others wait for fn
	queue    []T
	wake     chan struct{} // 1-buffered: the queue has work
	room     chan struct{} // closed and replaced when the queue was emptied
	closing  bool
	detached bool
	done     chan struct{}
}

// NewFeed starts a feed. buffer is how many values fn may be behind, and grace how
// long others wait for it in all, 0 meaning for ever. A panic of fn is dropped. If it
// ends its goroutine, the feed is over.
func NewFeed[T any](fn func(T), buffer int, grace time.Duration) *Feed[T] {
	f := &Feed[T]{
		fn: fn, buffer: buffer, grace: grace, endless: grace == 0,
		wake: make(chan struct{}, 1), room: make(chan struct{}), done: make(chan struct{}),
	}
	go f.run()
	return f
}

// Push queues v, unless fn was given up on.
func (f *Feed[T]) Push(v T) {
	f.mu.Lock()
	if !f.detached {
		f.queue = append(f.queue, v)
	}
	f.mu.Unlock()
	f.rouse()
}

// Full reports whether fn is too far behind, and if so what is closed when it is no
// longer.
func (f *Feed[T]) Full() (room <-chan struct{}, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.room, len(f.queue) > f.buffer && !f.detached
}

// Await waits for ready, which began at start, for as long as the grace of fn lasts.
// Then fn is given up on: it gets no more values.
func (f *Feed[T]) Await(ready <-chan struct{}, start time.Time) {
	var over <-chan time.Time
	if !f.endless {
		f.mu.Lock()
		left := f.grace
		f.mu.Unlock()
		timer := time.NewTimer(left - time.Since(start))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ready:
	case <-f.done:
	case <-over:
		f.detach()
	}
	f.mu.Lock()
	f.grace -= time.Since(start)
	f.mu.Unlock()
}

// Shut tells the feed to end with what it has. Nothing is pushed after it.
func (f *Feed[T]) Shut() {
	f.mu.Lock()
	f.closing = true
	f.mu.Unlock()
	f.rouse()
}

// Join waits, as Await does, until a feed that was shut has ended.
func (f *Feed[T]) Join(start time.Time) { f.Await(f.done, start) }

func (f *Feed[T]) rouse() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Feed[T]) detach() {
	f.mu.Lock()
	f.detached = true
	f.queue = nil
	f.mu.Unlock()
}

func (f *Feed[T]) run() {
	defer func() {
		f.detach() // nobody takes from the queue any more
		close(f.done)
	}() // also when fn ends this goroutine
	for {
		f.mu.Lock()
		batch, closing := f.queue, f.closing
		f.queue = nil
		if len(batch) > 0 {
			close(f.room)
			f.room = make(chan struct{})
		}
		f.mu.Unlock()
		if len(batch) == 0 {
			if closing {
				return
			}
			<-f.wake
			continue
		}
		for _, v := range batch {
			f.call(v)
		}
	}
}

func (f *Feed[T]) call(v T) {
	f.mu.Lock()
	detached := f.detached
	f.mu.Unlock()
	if detached {
		return
	}
	// A panic is the function's own affair: it must not take the process down.
	defer func() { _ = recover() }()
	f.fn(v)
}
