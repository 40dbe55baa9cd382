package pushseq

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// Relay passes values on to any number of functions: every value to each, in order,
// one call at a time and outside of every lock, mostly in the goroutine of one of those
// who put values. All methods are safe for concurrent use, by the functions too: a
// value that one of them puts is passed on after it returned.
type Relay[T any] struct {
	fault func(v T, what string)

	mu      sync.Mutex
	subs    []*subscriber[T]
	queue   []delivery[T]
	passing bool // someone drains the queue
}

type subscriber[T any] struct {
	fn   func(T)
	gone atomic.Bool
}

// delivery is what is still to be told to a subscriber.
type delivery[T any] struct {
	sub *subscriber[T]
	v   T
}

// NewRelay makes a relay that tells fault of a function that panicked or ended its
// goroutine at a value.
func NewRelay[T any](fault func(v T, what string)) *Relay[T] { return &Relay[T]{fault: fault} }

// Subscribe has fn called for every value from now on. After cancel returned, no new
// call of fn begins. cancel may be called repeatedly.
func (r *Relay[T]) Subscribe(fn func(T)) (cancel func()) {
	sub := &subscriber[T]{fn: fn}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs = append(r.subs, sub)
	return func() {
		sub.gone.Store(true)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.subs = slices.DeleteFunc(r.subs, func(other *subscriber[T]) bool { return other == sub })
	}
}

// Heard reports whether anybody has subscribed, also to a nil relay.
func (r *Relay[T]) Heard() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.subs) > 0
}

// Put queues a value. It reports whether the caller is to call Drain, outside of its
// own locks: nobody else does.
func (r *Relay[T]) Put(v T) (drain bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sub := range r.subs {
		r.queue = append(r.queue, delivery[T]{sub, v})
	}
	drain = !r.passing && len(r.queue) > 0
	r.passing = r.passing || drain
	return drain
}

// patience is how much a caller of Drain delivers, for others too, before it leaves the
// rest to a goroutine.
const patience = 256

// Drain passes on what is queued. It leaves the rest to a goroutine when that is much,
// or when a function ends this one.
func (r *Relay[T]) Drain() { r.drain(patience) }

func (r *Relay[T]) drain(deliveries int) {
	done := false
	defer func() {
		if !done {
			go r.drain(math.MaxInt)
		}
	}()
	for range deliveries {
		next, ok := r.take()
		if !ok {
			done = true
			return
		}
		if !next.sub.gone.Load() {
			r.call(next)
		}
	}
}

func (r *Relay[T]) take() (next delivery[T], ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.passing, r.queue = false, nil
		return next, false
	}
	next, r.queue[0] = r.queue[0], delivery[T]{}
	r.queue = r.queue[1:]
	return next, true
}

func (r *Relay[T]) call(d delivery[T]) {
	fault := "ended its goroutine"
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprintf("panicked: %v\n%s", v, debug.Stack())
		}
		if fault != "" {
			defer func() { _ = recover() }() // there is no one left to tell
			r.fault(d.v, fault)
		}
	}()
	d.sub.fn(d.v)
	fault = ""
}
