package fanout

import (
	"context"
	"sync/atomic"
)

// Way is how calls are made.
type Way struct {
	Crew  *Crew // whose goroutines make them; nil for new ones
	Limit int   // of goroutines, 1 or more
	// Quick says that the calls are expected to return at once, all on one goroutine.
	// If one blocks nevertheless, the others may wait for it for a millisecond.
	Quick bool
	// Late, if set, is called when Quick calls turn out not to be over at once, beside
	// them and at most once. It must not block.
	Late func()
}

// Each calls fn(0) to fn(n-1) as Into does, and returns their results by index.
func Each[T any](ctx context.Context, way Way, n int, fn func(i int) T, lost func(cause error) T) []T {
	return Into(ctx, way, make([]T, n), func(i, _ int, out *T) { *out = fn(i) }, lost)
}

// Into calls fn for every element of out and says which call the same goroutine made
// before, -1 for its first. It returns out, or, when it had to give up on a call,
// another slice in its place: out is then left to the calls that still run.
//
// When ctx ends it stops waiting: a call that has not returned gets lost(cause), where
// cause is that of ctx, and its late result is dropped. A call that ended its goroutine
// gets lost(nil). A call that was given up on keeps its goroutine until fn returns,
// since Go cannot stop it. Neither function may panic.
//
// Calls that return at once all run on one goroutine, one after another; calls that
// block all overlap, and calls that compute use every processor.
func Into[T any](ctx context.Context, way Way, out []T, fn func(i, before int, out *T), lost func(cause error) T) []T {
	if len(out) == 0 {
		return out
	}
	crew := way.Crew.orNone()
	f := &fan[T]{crew: crew, out: out, fn: fn, lost: lost, limit: int64(way.Limit), late: way.Late, all: make(chan struct{}), seen: -1}
	if f.returned = f.few[:]; len(out) > len(f.few)*64 {
		f.returned = make([]atomic.Uint64, (len(out)+63)/64)
	}
	f.left.Store(int64(len(out)))
	f.workers.Store(1)
	if len(out) > 1 && way.Limit > 1 || way.Late != nil {
		crew.watch(f, way.Quick)
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
	seen    int64         // what next was at the last look, -1 before the first
	late    func()        // for the first look

	out      []T
	returned []atomic.Uint64  // a bit for each call
	few      [2]atomic.Uint64 // backs returned when that is enough
}

// spawn starts a worker that was counted.
func (f *fan[T]) spawn() {
	f.waiting.Add(1)
	f.crew.start((*worker[T])(f))
}

type worker[T any] fan[T]

func (w *worker[T]) do() { (*fan[T])(w).work() }

// look starts a worker for each call that is left if no call began since the last
// look: then those at work are held up. It reports whether there is nothing to look
// for any more.
func (f *fan[T]) look() (over bool) {
	if f.late != nil {
		f.late()
		f.late = nil
	}
	begun := f.next.Load()
	more := min(int64(len(f.out))-begun, f.limit-f.workers.Load())
	if more <= 0 || f.over.Load() {
		return true
	}
	if held := begun == f.seen; !held || f.waiting.Load() > 0 {
		f.seen = begun
		return false
	}
	f.workers.Add(more)
	for range more {
		f.spawn()
	}
	return true
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
			f.filled(at)
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
		f.filled(i)
		at, before, made = -1, i, made+1
	}
}

// filled says that the result of call i is there.
func (f *fan[T]) filled(i int) { f.returned[i/64].Or(1 << (i % 64)) }

// abandon returns the results that there are.
func (f *fan[T]) abandon(cause error) []T {
	f.over.Store(true)
	out := make([]T, len(f.out))
	for i := range out {
		if f.returned[i/64].Load()&(1<<(i%64)) != 0 {
			out[i] = f.out[i]
		} else {
			out[i] = f.lost(cause)
		}
	}
	return out
}
