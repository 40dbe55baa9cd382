package fanout

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Each calls fn(0) to fn(n-1) on at most limit goroutines, as Into does, and returns
// their results by index.
func Each[T any](ctx context.Context, n, limit int, fn func(i int) T, lost func(cause error) T) []T {
	return Into(ctx, make([]T, n), limit, func(i, _ int, out *T) { *out = fn(i) }, lost)
}

// Into calls fn for every element of out, on at most limit goroutines, which must be 1
// or more, and says which call the same goroutine made before, -1 for its first. It
// returns out, or, when it had to give up on a call, another slice in its
// place: out is then left to the calls that still run.
//
// When ctx ends it stops waiting: a call that has not returned gets lost(cause), where
// cause is that of ctx, and its late result is dropped. A call that ended its goroutine
// gets lost(nil). A call that was given up on keeps its goroutine until fn returns,
// since Go cannot stop it. Neither function may panic.
//
// Calls that return at once all run on one goroutine, one after another; beside it there
// is always one more that has not begun yet, while calls are left. If a call blocks, that
// one takes over, so calls that block all overlap, and calls that compute use every
// processor.
func Into[T any](ctx context.Context, out []T, limit int, fn func(i, before int, out *T), lost func(cause error) T) []T {
	if len(out) == 0 {
		return out
	}
	f := &fan[T]{out: out, filled: make([]atomic.Bool, len(out)), fn: fn, lost: lost, all: make(chan struct{}), limit: int64(limit)}
	f.left.Store(int64(len(out)))
	f.workers.Store(1)
	f.spawn()
	select {
	case <-f.all:
		return out
	case <-ctx.Done():
		return f.abandon(context.Cause(ctx))
	}
}

// fan is the state of one Into.
type fan[T any] struct {
	group   errgroup.Group // spawns; nobody waits on it, since a hung call would hold everybody up
	fn      func(i, before int, out *T)
	lost    func(error) T
	all     chan struct{} // closed when nothing is left
	limit   int64
	next    atomic.Int64 // call to begin
	left    atomic.Int64 // calls without a result
	workers atomic.Int64
	waiting atomic.Bool // a worker was spawned and has not begun
	over    atomic.Bool // nobody waits any more

	out    []T
	filled []atomic.Bool
}

// spawn starts a worker that was counted.
func (f *fan[T]) spawn() {
	f.waiting.Store(true)
	f.group.Go(f.work)
}

// follow sees to it that a worker waits to take over, unless there are enough.
func (f *fan[T]) follow() {
	if f.workers.Load() < f.limit && f.waiting.CompareAndSwap(false, true) {
		if f.workers.Add(1) > f.limit {
			f.workers.Add(-1)
			f.waiting.Store(false)
			return
		}
		f.spawn()
	}
}

func (f *fan[T]) work() error {
	f.waiting.Store(false)
	at, before := -1, -1 // the call at work, and the last one
	defer func() {
		if at < 0 {
			f.workers.Add(-1)
			return
		}
		// The call ended this goroutine, so another takes its place.
		f.out[at] = f.lost(nil)
		f.spawn()
		f.done(at)
	}()
	for {
		i := int(f.next.Add(1)) - 1
		if i >= len(f.out) || f.over.Load() {
			return nil
		}
		if i+1 < len(f.out) && !f.waiting.Load() {
			f.follow()
		}
		at = i
		f.fn(i, before, &f.out[i])
		at, before = -1, i
		f.done(i)
	}
}

func (f *fan[T]) done(i int) {
	f.filled[i].Store(true)
	if f.left.Add(-1) == 0 {
		close(f.all)
	}
}

// abandon returns the results that there are.
func (f *fan[T]) abandon(cause error) []T {
	f.over.Store(true)
	out := make([]T, len(f.out))
	for i := range out {
		if f.filled[i].Load() {
			out[i] = f.out[i]
		} else {
			out[i] = f.lost(cause)
		}
	}
	return out
}
