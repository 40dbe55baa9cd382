package memstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/internal/notices"
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Now is the clock; nil is time.Now. It must be safe for concurrent use.
	Now func() time.Time
	// MaxBytes limits each record, snapshot and effect body; 0 or less is no limit.
	MaxBytes int
}

// Store is a journal in memory. It implements [store.Journal], [store.Leaser],
// [store.Historian], [store.Queue] and [store.Notifier], and is safe for concurrent use.
// Make one with New.
type Store struct {
	now      func() time.Time
	maxBytes int
	board    notices.Board

	mu      sync.Mutex
	closed  bool
	threads map[string]*thread
	outbox  outbox
	changed chan struct{} // closed and replaced by each commit that somebody waits for
	waiting int
}

var (
	_ store.Journal   = (*Store)(nil)
	_ store.Leaser    = (*Store)(nil)
	_ store.Historian = (*Store)(nil)
	_ store.Queue     = (*Store)(nil)
	_ store.Notifier  = (*Store)(nil)
)

// thread is what is kept of one thread. Its records are those of the revisions
// first to revision, without a gap.
type thread struct {
	revision  uint64
	epoch     uint64
	lease     store.Lease // no owner: free
	first     uint64
	records   []store.Record
	snapshots []snapshot // oldest first
}

type snapshot struct {
	revision uint64
	time     time.Time
	state    []byte
}

// New returns an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{
		now:      o.Now,
		maxBytes: max(o.MaxBytes, 0),
		threads:  map[string]*thread{},
		outbox:   newOutbox(),
		changed:  make(chan struct{}),
	}
}

// Caps says that nothing survives the process.
func (s *Store) Caps() store.Caps { return store.Caps{MaxBytes: s.maxBytes} }

// Close makes all later calls fail with [store.ErrClosed], a second
// Close included, and ends those who listen. What the store holds stays until it is
// garbage; see Reopen.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.closed = true
	s.wake()
	s.board.Close()
	return nil
}

// Reopen undoes Close, so that a test can restart what uses the store. Leases
// and claims are as they were. On a store that is open it does nothing.
func (s *Store) Reopen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = false
}

// lock enters the store, unless it is closed or ctx has ended.
func (s *Store) lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("memstore: not done: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	return nil
}

// wake lets the waiting loads look again. The lock is held.
func (s *Store) wake() {
	if s.waiting > 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *Store) checkSize(what string, b []byte) error {
	if s.maxBytes > 0 && len(b) > s.maxBytes {
		return fmt.Errorf("memstore: a %s of %d bytes, and the limit is %d; raise Options.MaxBytes: %w", what, len(b), s.maxBytes, store.ErrTooLarge)
	}
	return nil
}

func (s *Store) checkSizes(c store.Commit) error {
	err := errors.Join(s.checkSize("record", c.Record), s.checkSize("snapshot", c.Snapshot))
	for _, e := range c.Effects {
		err = errors.Join(err, s.checkSize("effect", e.Body))
	}
	return err
}

// newID makes the id of a commit that the store itself adds.
func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// add appends a record. The lock is held; the record's bytes are the store's own.
func (t *thread) add(id [16]byte, at time.Time, record []byte) {
	t.revision++
	if t.first == 0 {
		t.first = t.revision
	}
	t.records = append(t.records, store.Record{Revision: t.revision, ID: id, Time: at, Record: record})
}

// made reports whether the commit with this id made that revision.
func (t *thread) made(revision uint64, id [16]byte) bool {
	if id == [16]byte{} || revision < t.first || revision > t.revision || t.first == 0 {
		return false
	}
	return t.records[revision-t.first].ID == id
}

// image copies what a load of the thread up to a revision returns.
func (t *thread) image(upTo uint64) store.Image {
	i := store.Image{Revision: upTo, Epoch: t.epoch, LastID: t.records[upTo-t.first].ID}
	for _, s := range slices.Backward(t.snapshots) {
		if s.revision <= upTo {
			i.Snapshot, i.SnapshotAt = copyBytes(s.state), s.revision
			break
		}
	}
	for _, r := range t.records {
		if r.Revision > i.SnapshotAt && r.Revision <= upTo {
			r.Record = copyBytes(r.Record)
			i.Tail = append(i.Tail, r)
		}
	}
	return i
}

// copyBytes copies b; unlike slices.Clone it leaves no room behind the copy.
func copyBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	c := make([]byte, len(b))
	copy(c, b)
	return c
}

var errClosed = fmt.Errorf("memstore: the store was closed: %w", store.ErrClosed)
