package fanout

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls fn(0) to fn(n-1) on at most limit goroutines, which must be 1 or
// more, and returns their results by index. The slice is the caller's.
//
// When ctx ends it stops waiting: a call that has not returned gets lost(cause),
// where cause is that of ctx, and its late result is dropped. So does a call that
// ended its goroutine, with a nil cause. A call that was given up on keeps its
// goroutine until fn returns, since Go cannot stop it. Neither function may panic;
// lost is called under a lock and must return at once.
func Each[T any](ctx context.Context, n, limit int, fn func(i int) T, lost func(cause error) T) []T {
	if n == 0 {
		return nil
	}
	f := &fan[T]{out: make([]T, n), filled: make([]bool, n), left: n, fn: fn, lost: lost, all: make(chan struct{})}
	for range min(n, limit) {
		go f.work()
	}
	select {
	case <-f.all:
	case <-ctx.Done():
		f.abandon(context.Cause(ctx))
	}
	return f.out
}

// fan is the state of one Each. After it was closed, out belongs to the caller.
type fan[T any] struct {
	next atomic.Int64
	fn   func(i int) T
	lost func(error) T
	all  chan struct{}

	mu     sync.Mutex
	closed bool
	left   int
	out    []T
	filled []bool
}

func (f *fan[T]) work() {
	for {
		i := int(f.next.Add(1)) - 1
		if i >= len(f.filled) || f.over() {
			return
		}
		f.one(i)
	}
}

func (f *fan[T]) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

func (f *fan[T]) one(i int) {
	returned := false
	var v T
	defer func() {
		if returned {
			f.put(i, v)
			return
		}
		// Only Goexit gets here. This goroutine is ending, so another takes over.
		f.put(i, f.lost(nil))
		go f.work()
	}()
	v = f.fn(i)
	returned = true
}

func (f *fan[T]) put(i int, v T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.out[i], f.filled[i] = v, true
	f.left--
	if f.left == 0 {
		f.closed = true
		close(f.all)
	}
}

func (f *fan[T]) abandon(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	for i, ok := range f.filled {
		if !ok {
			f.out[i] = f.lost(cause)
		}
	}
}
