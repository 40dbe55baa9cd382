package state

import (
	"sync"
	"sync/atomic"
	"time"
)

// Config configures a [Store].
type Config struct {
	// Keys are the keys of the state.
	Keys []AnyKey
	// Schema replaces Keys: many stores of the same keys can share one.
	Schema *Schema
	// History is how many revisions before the current one At can return.
	History int
	// Report is told of faults that have no caller to go to, such as a
	// subscriber that panicked. Nil drops them. It runs outside every lock and
	// must be safe for concurrent use.
	Report func(error)
}

// Store holds the current state and changes it by commits. It is safe for
// concurrent use.
type Store struct {
	schema    *Schema
	published atomic.Pointer[Snapshot]
	turn      atomic.Pointer[turn]

	mu      sync.Mutex // held to publish, never while user code runs
	history ring
	feed    feed
}

// NewStore makes a store in which nothing was written yet. The error joins
// every fault of the keys, as [NewSchema] reports them.
func NewStore(c Config) (*Store, error) {
	schema := c.Schema
	if schema == nil {
		var err error
		if schema, err = NewSchema(c.Keys...); err != nil {
			return nil, err
		}
	}
	s := &Store{schema: schema, history: ring{limit: max(c.History, 0)}}
	s.feed.report = c.Report
	s.published.Store(newSnapshot(s))
	return s, nil
}

// Snapshot returns the current state. It is one atomic load.
func (s *Store) Snapshot() *Snapshot { return s.published.Load() }

// At returns the state at a revision, if it is the current one or one of the
// last ones that Config.History keeps.
func (s *Store) At(rev uint64) (*Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.published.Load(); now.rev == rev {
		return now, true
	}
	return s.history.find(rev)
}

// Commit walks the batches in order and accepts each that is in conflict with
// neither what changed since its base nor a batch accepted before it. The
// updates of all accepted batches are applied in order and published as one
// new revision. Without an accepted update nothing is committed.
//
// A batch is rejected when
//   - something it touches exclusively (a write of an Exclusive key, an entry
//     put or deleted, elements removed from a set, a replaced log, any reset)
//     or declared in Reads changed after its Base;
//   - an exclusive touch of it meets any touch of an accepted batch, or any
//     touch of it an exclusive touch of an accepted one, or something in Reads
//     was written by an accepted one;
//   - it touches a log, or another Ordered key, that a batch rejected before
//     it in this call touches too, so that the order stays that of the batches.
//
// Only keys and entries are compared, never the revision of the store, and
// touching a key twice in one batch is no conflict. Run the author of a
// rejected batch again on a newer snapshot.
//
// An error means that nothing was committed. It is a *BatchError around
// [ErrUnknownKey], an *ApplyError, or [ErrStale] for a Base of another store;
// leave that batch out to commit the others. [ErrBusy] is returned when the
// touched keys changed so often that the commit gave up.
//
// Reducers, checks and clones run without any lock on the version that was
// current, and the result is published if the keys it depends on are still the
// same; otherwise they run again. They may therefore read the store and even
// commit to other keys, and a panic or runtime.Goexit leaves nothing behind.
//
// Commit returns when its commit was delivered to the subscribers, or stands
// in the queue of another goroutine (or an outer call) that delivers now.
func (s *Store) Commit(batches ...Batch) (Result, error) { return s.commit(batches, amendment{}) }

// amendment is what an import changes besides keys.
type amendment struct {
	force  bool                            // commit even without updates
	minRev uint64                          // the new revision is above this
	keep   func(*keptEntries) *keptEntries // next unknown entries
}

// freeTries is how often a commit is tried before it asks for a turn.
const freeTries = 4

func (s *Store) commit(batches []Batch, more amendment) (Result, error) {
	for range freeTries {
		if t := s.turn.Load(); t != nil {
			t.wait()
		}
		if result, done, err := s.try(batches, more); done {
			return result, err
		}
	}
	return s.commitInTurn(batches, more)
}

// A turn makes other commits wait a little, so that one with slow reducers
// gets through between many with fast ones. It is a courtesy with a time
// limit and not a lock: a reducer may commit, and would wait for itself.
type turn struct {
	done  chan struct{}
	until time.Time
}

const (
	turnLimit = 250 * time.Millisecond
	turnTries = 1000
)

func (t *turn) wait() {
	left := time.Until(t.until)
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
	}
}

func (s *Store) commitInTurn(batches []Batch, more amendment) (Result, error) {
	mine := &turn{done: make(chan struct{}), until: time.Now().Add(turnLimit)}
	for !s.turn.CompareAndSwap(nil, mine) {
		t := s.turn.Load()
		if t == nil {
			continue
		}
		t.wait()
		if result, done, err := s.try(batches, more); done {
			return result, err
		}
		if time.Now().After(t.until) {
			break // its owner is slow; do not wait for it again
		}
		mine.until = time.Now().Add(turnLimit)
	}
	defer func() {
		s.turn.CompareAndSwap(mine, nil)
		close(mine.done)
	}()
	for range turnTries {
		if result, done, err := s.try(batches, more); done {
			return result, err
		}
	}
	return Result{Snapshot: s.Snapshot()}, ErrBusy
}

// try makes one attempt; done is false when it must be made again.
func (s *Store) try(batches []Batch, more amendment) (result Result, done bool, err error) {
	base := s.published.Load()
	d := s.schema.draft(base)
	if err := d.decide(batches); err != nil {
		d.release()
		return Result{Snapshot: base}, true, err
	}
	result = Result{Snapshot: base, Rejected: d.takeRejected()}
	if d.updates == 0 && (!more.force || len(result.Rejected) > 0) {
		d.release()
		return result, true, nil
	}
	if err := d.apply(batches); err != nil {
		d.release()
		return Result{Snapshot: base}, true, err
	}
	next, ok := s.publish(d, batches, more)
	d.release()
	if !ok {
		return Result{}, false, nil
	}
	result.Snapshot, result.Committed = next, true
	s.feed.deliver(next.rev)
	return result, true, nil
}

// publish makes the draft the current state, unless something it depends on
// changed since its base. No user code runs here.
func (s *Store) publish(d *draft, batches []Batch, more amendment) (*Snapshot, bool) {
	next := d.assemble(d.base)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.published.Load()
	if now != d.base {
		if !d.standsOn(now) {
			return nil, false
		}
		next = d.assemble(now)
	}
	next.rev = max(now.rev, more.minRev) + 1
	next.kept = now.kept
	if more.keep != nil {
		next.kept = more.keep(now.kept)
	}
	for i := range d.stamps {
		d.stamps[i].rev = next.rev
	}
	s.published.Store(next)
	s.history.push(now)
	s.feed.enqueue(now, next, d, batches)
	return next, true
}

// ring keeps the last snapshots.
type ring struct {
	limit int
	snaps []*Snapshot // oldest at next when full
	next  int
}

func (r *ring) push(s *Snapshot) {
	switch {
	case r.limit == 0:
	case len(r.snaps) < r.limit:
		r.snaps = append(r.snaps, s)
	default:
		r.snaps[r.next] = s
		r.next = (r.next + 1) % r.limit
	}
}

func (r *ring) find(rev uint64) (*Snapshot, bool) {
	n := len(r.snaps)
	low, high := 0, n
	for low < high {
		mid := (low + high) / 2
		if r.snaps[(r.next+mid)%n].rev < rev {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < n {
		if s := r.snaps[(r.next+low)%n]; s.rev == rev {
			return s, true
		}
	}
	return nil, false
}
