package state

import (
	"fmt"

	"github.com/ddd26017/fixpoint/internal/pushseq"
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
	if s.feed == nil {
		s.feed = pushseq.NewRelay(func(c Commit, what string) {
			if s.report != nil {
				s.report(fmt.Errorf("state: a subscriber of revision %d %s", c.Revision, what))
			}
		})
	}
	return s.feed.Subscribe(fn)
}

// enqueue puts a commit in the queue, with the store locked, which keeps the
// revisions in order. It reports whether the caller is to drain the queue.
func (s *Store) enqueue(before, after *Snapshot, d *draft, batches []Batch) bool {
	if !s.feed.Heard() {
		return false
	}
	c := Commit{Revision: after.rev, Previous: before, Snapshot: after, Writes: make([]Write, len(d.steps))}
	for i, at := range d.steps {
		c.Writes[i] = Write{batches[at.batch].Owner, batches[at.batch].Updates[at.update]}
	}
	return s.feed.Put(c)
}
