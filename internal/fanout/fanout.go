package fanout

import (
	"context"
	"sync/atomic"
)

// Each calls fn(0) to fn(n-1) on at most limit goroutines, as Into does, and returns
// their results by index.
func Each[T any](ctx context.Context, crew *Crew, n, limit int, fn func(i int) T, lost func(cause error) T) []T {
	return Into(ctx, crew, make([]T, n), limit, func(i, _ int, out *T) { *out = fn(i) }, lost)
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
// Calls that return at once all run on one goroutine, one after another; calls that
// block all overlap, and calls that compute use every processor.
func Into[T any](ctx context.Context, crew *Crew, out []T, limit int, fn func(i, before int, out *T), lost func(cause error) T) []T {
	if len(out) == 0 {
		return out
	}
	crew = crew.orNone()
	f := &fan[T]{crew: crew, out: out, fn: fn, lost: lost, limit: int64(limit), all: make(chan struct{})}
	if f.filled = f.few[:]; len(out) > len(f.few) {
		f.filled = make([]atomic.Bool, len(out))
	}
	f.left.Store(int64(len(out)))
	f.workers.Store(1)
	if len(out) > 1 {
		crew.watch(f)
	}
	f.spawn()
	select {
	case <-f.all:
		crew.unwatch(f)
		return out
	case <-ctx.Done():
		crew.unwatch(f)
		return f.abandon(context.Cause(ctx))
	}
}

// fan is the state of one Into.
type fan[T any] struct {
	crew    *Crew
	fn      func(i, before int, out *T)
	lost    func(error) T
	limit   int64
	next    atomic.Int64 // call to begin
	left    atomic.Int64 // calls whose worker has not told yet that they returned
	workers atomic.Int64
	waiting atomic.Int64  // workers that were spawned and have not begun
	over    atomic.Bool   // nobody waits any more
	all     chan struct{} // closed when nothing is left
	seen    int64         // what next was at the last look
	started int64         // workers that the last look started

	out    []T
	filled []atomic.Bool
	few    [64]atomic.Bool // backs filled when that is enough
}

// spawn starts a worker that was counted.
func (f *fan[T]) spawn() {
	f.waiting.Add(1)
	f.crew.start((*worker[T])(f))
}

type worker[T any] fan[T]

func (w *worker[T]) do() { (*fan[T])(w).work() }

// look starts workers if nobody began a call since the last look, except those that it
// started itself: then each holds one up, and it starts twice as many. It reports
// whether there is nothing to do for another worker any more.
func (f *fan[T]) look() (enough bool) {
	begun := f.next.Load()
	more := min(max(2*f.started, 1), int64(len(f.out))-begun, f.limit-f.workers.Load())
	switch {
	case more <= 0 || f.over.Load():
		return true
	case f.waiting.Load() > 0:
		return false
	case begun-f.seen > f.started:
		more = 0
	}
	f.seen, f.started = begun, more
	f.workers.Add(more)
	for range more {
		f.spawn()
	}
	return false
}

func (f *fan[T]) work() {
	f.waiting.Add(-1)
	at, before, made := -1, -1, int64(0) // the call at work, the last one, and how many have returned
	defer func() {
		if at < 0 {
			f.workers.Add(-1)
		} else {
			// The call ended this goroutine, so another takes its place.
			f.out[at] = f.lost(nil)
			f.filled[at].Store(true)
			made++
			f.spawn()
		}
		if made > 0 && f.left.Add(-made) == 0 {
			close(f.all)
		}
	}()
	for {
		i := int(f.next.Add(1)) - 1
		if i >= len(f.out) || f.over.Load() {
			return
		}
		at = i
		f.fn(i, before, &f.out[i])
		f.filled[i].Store(true)
		at, before, made = -1, i, made+1
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
