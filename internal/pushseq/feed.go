package pushseq

import (
	"sync"
	"sync/atomic"
	"time"
)

// Feed hands pushed values to a function, one at a time and in order, in a
// goroutine of its own that lives until the feed was shut. Pushing never waits: who
// pushes asks Full whether it is time to Await the function, which has a bounded
// grace for that. What is pushed is handed over after the next Rouse: waking a goroutine
// costs more than making many a value. All methods are safe for concurrent use.
type Feed[T any] struct {
	fn      func(T)
	buffer  int
	endless bool // is never given up on

	mu       sync.Mutex
	grace    time.Duration // left of the time that others wait for fn
	queue    []T
	spare    []T           // the memory of the next queue
	wake     chan struct{} // 1-buffered: the queue has work
	room     chan struct{} // closed when the queue was emptied; nil if nobody asked for it
	closing  bool
	detached atomic.Bool
	done     chan struct{}
}

// NewFeed starts a feed. buffer is how many values fn may be behind, and grace how
// long others wait for it in all, 0 meaning for ever. A panic of fn is dropped. If it
// ends its goroutine, the feed is over.
func NewFeed[T any](fn func(T), buffer int, grace time.Duration) *Feed[T] {
	f := &Feed[T]{
		fn: fn, buffer: buffer, grace: grace, endless: grace == 0,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go f.run()
	return f
}

// Push queues v, unless fn was given up on.
func (f *Feed[T]) Push(v T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.detached.Load() {
		f.queue = append(f.queue, v)
	}
}

// Rouse has the function called for what is queued.
func (f *Feed[T]) Rouse() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Full reports whether fn is too far behind, and if so what is closed when it is no
// longer.
func (f *Feed[T]) Full() (room <-chan struct{}, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if full = len(f.queue) > f.buffer && !f.detached.Load(); full && f.room == nil {
		f.room = make(chan struct{})
	}
	return f.room, full
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
	f.Rouse()
}

// Join waits, as Await does, until a feed that was shut has ended.
func (f *Feed[T]) Join(start time.Time) { f.Await(f.done, start) }

func (f *Feed[T]) detach() {
	f.mu.Lock()
	f.detached.Store(true)
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
		if len(batch) > 0 {
			f.queue, f.spare = f.spare, nil
			if f.room != nil {
				close(f.room)
				f.room = nil
			}
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
		clear(batch)
		f.spare = batch[:0]
	}
}

func (f *Feed[T]) call(v T) {
	if f.detached.Load() {
		return
	}
	// A panic is the function's own affair: it must not take the process down.
	defer func() { _ = recover() }()
	f.fn(v)
}
