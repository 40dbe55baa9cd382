package state

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// Commit is one atomic change, as subscribers see it. It must not be changed.
type Commit struct {
	Revision uint64
	Previous *Snapshot // the state before
	Snapshot *Snapshot // the state after
	Writes   []Write   // what was applied, in order
}

// Write is one update of a commit and the owner of its batch.
type Write struct {
	Owner  string
	Update Update
}

// Subscribe calls fn for every commit after this moment, in revision order,
// one at a time and outside every lock, mostly in the goroutine of one of the
// committers. fn may read, commit, subscribe and cancel; a commit made by fn
// is delivered after fn returned. A panic in fn goes to Config.Report. After
// cancel returned, no new call of fn begins. cancel may be called repeatedly.
func (s *Store) Subscribe(fn func(Commit)) (cancel func()) {
	if fn == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feed.add(fn, s.published.Load().rev)
}

// feed brings commits to subscribers: a queue, and at most one goroutine that
// drains it.
type feed struct {
	report func(error)

	mu       sync.Mutex
	subs     []*subscriber // replaced, never changed
	queue    []Commit
	draining bool
	listened atomic.Bool // whether there are subscribers
}

type subscriber struct {
	fn    func(Commit)
	after uint64
	gone  atomic.Bool
}

func (f *feed) add(fn func(Commit), after uint64) (cancel func()) {
	sub := &subscriber{fn: fn, after: after}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subs = append(slices.Clip(f.subs), sub)
	f.listened.Store(true)
	return func() {
		if sub.gone.Swap(true) {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.subs = slices.DeleteFunc(slices.Clone(f.subs), func(s *subscriber) bool { return s == sub })
		f.listened.Store(len(f.subs) > 0)
		if len(f.subs) == 0 {
			f.queue = nil
		}
	}
}

// enqueue is called with the store's lock held, which keeps revisions in order.
func (f *feed) enqueue(before, after *Snapshot, d *draft, batches []Batch) {
	if !f.listened.Load() {
		return
	}
	c := Commit{Revision: after.rev, Previous: before, Snapshot: after, Writes: make([]Write, 0, d.updates)}
	for _, a := range d.accepted {
		b := &batches[a.batch]
		for _, u := range b.Updates {
			if u.d != nil {
				c.Writes = append(c.Writes, Write{b.Owner, u})
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, c)
}

// patience is how many later commits a committer delivers for others before
// it leaves the rest to a goroutine.
const patience = 256

// deliver drains the queue, unless someone does already.
func (f *feed) deliver(rev uint64) {
	if !f.listened.Load() {
		return
	}
	f.mu.Lock()
	if f.draining || len(f.queue) == 0 {
		f.mu.Unlock()
		return
	}
	f.draining = true
	f.mu.Unlock()
	f.drain(rev+patience, Commit{}, nil)
}

// drain delivers c to subs, and then the queue until it is empty or beyond a
// revision.
func (f *feed) drain(until uint64, c Commit, subs []*subscriber) {
	done := false
	defer func() {
		if !done { // patience ended, or a subscriber exited this goroutine
			go f.drain(math.MaxUint64, c, subs)
		}
	}()
	for c.Revision < until {
		for len(subs) > 0 {
			sub := subs[0]
			subs = subs[1:]
			if c.Revision > sub.after && !sub.gone.Load() {
				f.call(sub, c)
			}
		}
		var more bool
		if c, subs, more = f.take(); !more {
			done = true
			return
		}
	}
}

func (f *feed) take() (Commit, []*subscriber, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		f.draining, f.queue = false, nil
		return Commit{}, nil, false
	}
	c := f.queue[0]
	f.queue[0] = Commit{}
	f.queue = f.queue[1:]
	return c, f.subs, true
}

func (f *feed) call(sub *subscriber, c Commit) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			f.tell(fmt.Errorf("state: a subscriber panicked on revision %d: %v\n%s", c.Revision, v, debug.Stack()))
		} else if !returned {
			f.tell(fmt.Errorf("state: a subscriber ended its goroutine on revision %d", c.Revision))
		}
	}()
	sub.fn(c)
	returned = true
}

func (f *feed) tell(err error) {
	if f.report == nil {
		return
	}
	defer func() { _ = recover() }() // there is no one left to tell
	f.report(err)
}
