package state

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ddd26017/fixpoint/internal/courtesy"
	"github.com/ddd26017/fixpoint/internal/pushseq"
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
	// Persist, if set, is called with each commit before it becomes the current
	// state, in order of revision and one at a time, and with the notes of its
	// batches that have one. An error refuses the commit, which then left nothing
	// behind. It may read the store but not commit. Imports and Apply are not
	// persisted: they come from where things are kept.
	Persist func(next *Snapshot, d Delta, notes []any) error
}

// Store holds the current state and changes it by commits. It is safe for
// concurrent use.
type Store struct {
	schema    *Schema
	report    func(error)
	limit     int // of history
	published atomic.Pointer[Snapshot]
	turn      courtesy.Turn // of a commit that failed to get through

	persist func(*Snapshot, Delta, []any) error
	order   sync.Mutex // with persist: held from the look at the current state until it is replaced

	mu      sync.Mutex             // held to publish, never while user code runs
	history []*Snapshot            // the last ones before published, oldest first
	feed    *pushseq.Relay[Commit] // nil while nobody has subscribed
}

// NewStore makes a store in which nothing was written yet. The error joins
// every fault of the keys, as [NewSchema] reports them.
func NewStore(c Config) (*Store, error) {
	if c.Schema == nil {
		schema, err := NewSchema(c.Keys...)
		if err != nil {
			return nil, err
		}
		c.Schema = schema
	}
	s := &Store{schema: c.Schema, report: c.Report, persist: c.Persist, limit: max(c.History, 0)}
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
	i, ok := slices.BinarySearchFunc(s.history, rev, func(h *Snapshot, rev uint64) int { return cmp.Compare(h.rev, rev) })
	if !ok {
		return nil, false
	}
	return s.history[i], true
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
// rejected batch again on a newer snapshot. If a Required batch is rejected,
// nothing is committed.
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
func (s *Store) Commit(batches ...Batch) (Result, error) { return s.commit(batches, nil) }

const (
	freeTries   = 4 // before a commit asks for a turn
	commitTries = 1000
)

// commit tries until the touched keys stand still. amend changes the next
// snapshot before it is published, which it then is even without updates; it
// runs under the lock, and again when the commit is tried again.
//
// A turn makes other commits wait a little, so that one with slow reducers
// gets through between many with fast ones. It is a courtesy with a time
// limit and not a lock: a reducer may commit, and would wait for itself.
func (s *Store) commit(batches []Batch, amend func(next *Snapshot)) (Result, error) {
	var mine *courtesy.Hold // taken once only, as others end it after its time
	for try := range commitTries {
		s.turn.Yield(mine)
		if try >= freeTries && mine == nil {
			if mine = s.turn.Take(); mine != nil {
				defer s.turn.End(mine)
			}
		}
		if result, done, err := s.try(batches, amend); done {
			return result, err
		}
	}
	return Result{Snapshot: s.Snapshot()}, ErrBusy
}

// try makes one attempt; done is false when it must be made again.
func (s *Store) try(batches []Batch, amend func(*Snapshot)) (result Result, done bool, err error) {
	base := s.published.Load()
	d := s.schema.draft(base)
	defer d.release()
	result.Snapshot = base
	if err := d.decide(batches); err != nil {
		return result, true, err
	}
	refused := slices.ContainsFunc(d.rejected, func(r Rejection) bool { return batches[r.Index].Required })
	if refused || len(d.steps) == 0 && (amend == nil || len(d.rejected) > 0) {
		result.Rejected = d.rejected
		return result, true, nil
	}
	if err := d.apply(batches); err != nil {
		return result, true, err
	}
	before, next, deliver, err := s.publish(d, batches, amend)
	if err != nil {
		return result, true, err
	}
	if deliver {
		s.feed.Drain()
	}
	return Result{next, before, true, d.rejected}, next != nil, nil
}

// publish makes the draft the current state, unless something it depends on
// changed since its base. No user code runs here. deliver says that the caller
// is to drain the queue.
func (s *Store) publish(d *draft, batches []Batch, amend func(*Snapshot)) (now, next *Snapshot, deliver bool, err error) {
	if s.persist != nil {
		s.order.Lock()
		defer s.order.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.published.Load()
	if !d.standsOn(now) {
		return nil, nil, false, nil
	}
	next = d.assemble(now)
	if amend != nil {
		amend(next)
	}
	for i := range d.stamps {
		d.stamps[i].rev = next.rev
	}
	if s.persist != nil && !quiet(batches) {
		if err := s.save(now, next, d.notes(batches)); err != nil {
			return nil, nil, false, err
		}
	}
	s.published.Store(next)
	if s.limit > 0 {
		if len(s.history) == s.limit {
			s.history[0] = nil
			s.history = s.history[1:]
		}
		s.history = append(s.history, now)
	}
	return now, next, s.enqueue(now, next, d, batches), nil
}

// save persists a commit without the lock, which the caller holds before and after.
// Nobody else publishes meanwhile, since that takes the order.
func (s *Store) save(now, next *Snapshot, notes []any) error {
	s.mu.Unlock()
	defer s.mu.Lock() // also when Persist panics or ends the goroutine
	_, err := guard("persist", func() (struct{}, error) {
		d, err := DeltaOf(now, next)
		if err == nil {
			err = s.persist(next, d, notes)
		}
		return struct{}{}, err
	})
	return err
}

// notes returns the notes of the accepted batches, in order.
func (d *draft) notes(batches []Batch) (notes []any) {
	lost := d.rejected
	for i := range batches {
		switch {
		case len(lost) > 0 && lost[0].Index == i:
			lost = lost[1:]
		case batches[i].Note != nil:
			notes = append(notes, batches[i].Note)
		}
	}
	return notes
}

func quiet(batches []Batch) bool { return len(batches) == 1 && batches[0].quiet }
