package state

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
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
	sub := &subscriber{fn: fn}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed == nil {
		s.feed = &feed{}
	}
	s.feed.subs = append(s.feed.subs, sub)
	return func() {
		sub.gone.Store(true)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.feed.subs = slices.DeleteFunc(s.feed.subs, func(other *subscriber) bool { return other == sub })
	}
}

// feed is what a store with subscribers has besides.
type feed struct {
	subs       []*subscriber
	queue      []delivery
	delivering bool // someone drains the queue
}

type subscriber struct {
	fn   func(Commit)
	gone atomic.Bool
}

// delivery is what is still to be told to a subscriber.
type delivery struct {
	sub    *subscriber
	commit Commit
}

// enqueue puts a commit in the queue, with the store locked, which keeps the
// revisions in order. It reports whether the caller is to drain the queue.
func (s *Store) enqueue(before, after *Snapshot, d *draft, batches []Batch) bool {
	f := s.feed
	if f == nil || len(f.subs) == 0 {
		return false
	}
	c := Commit{Revision: after.rev, Previous: before, Snapshot: after, Writes: make([]Write, len(d.steps))}
	for i, at := range d.steps {
		c.Writes[i] = Write{batches[at.batch].Owner, batches[at.batch].Updates[at.update]}
	}
	for _, sub := range f.subs {
		f.queue = append(f.queue, delivery{sub, c})
	}
	idle := !f.delivering
	f.delivering = true
	return idle
}

// patience is how much a committer delivers, for others too, before it leaves
// the rest to a goroutine.
const patience = 256

// drain empties the queue, or leaves that to a goroutine after a number of
// deliveries, or when a subscriber ends this one.
func (s *Store) drain(deliveries int) {
	done := false
	defer func() {
		if !done {
			go s.drain(math.MaxInt)
		}
	}()
	for range deliveries {
		next, ok := s.take()
		if !ok {
			done = true
			return
		}
		if !next.sub.gone.Load() {
			s.call(next)
		}
	}
}

func (s *Store) take() (next delivery, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feed
	if len(f.queue) == 0 {
		f.delivering, f.queue = false, nil
		return next, false
	}
	next, f.queue[0] = f.queue[0], delivery{}
	f.queue = f.queue[1:]
	return next, true
}

func (s *Store) call(d delivery) {
	fault := "ended its goroutine"
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprintf("panicked: %v\n%s", v, debug.Stack())
		}
		if fault != "" && s.report != nil {
			defer func() { _ = recover() }() // there is no one left to tell
			s.report(fmt.Errorf("state: a subscriber of revision %d %s", d.commit.Revision, fault))
		}
	}()
	d.sub.fn(d.commit)
	fault = ""
}
