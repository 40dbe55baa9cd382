package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Journal keeps threads where they outlive the process: an append-only chain of
// commits per thread, with compare-and-set on its revision. All methods are safe
// for concurrent use, also by several processes where Caps says so.
//
// It is made of standard-library types only, so that a store needs no more of
// this module than this package. storetest.Run checks that one keeps its promises.
type Journal interface {
	// Append adds one commit and returns the thread's new revision, Base + 1. When it
	// returns without error the commit is kept as Caps promises.
	//
	// A repeat with the ID of the commit that made revision Base + 1 gives the same
	// answer and changes nothing; that is how an unknown outcome is resolved.
	// Otherwise: *Conflict (ErrConflict) when the thread is not at Base;
	// ErrFenced when Epoch is older than the thread's; ErrUnknownOutcome when the
	// commit may or may not have landed; ErrCorrupt when what is stored cannot be
	// trusted.
	Append(ctx context.Context, c Commit) (revision uint64, err error)

	// Load returns what is kept of a thread: its newest snapshot and the records
	// after it. It never answers with less than atLeast, but waits, and returns
	// ErrBehind when ctx ends. A thread that was never written has revision 0.
	Load(ctx context.Context, thread string, atLeast uint64) (Image, error)

	// Threads returns one page of the ids of the threads kept, sorted, those after
	// the given id, at most limit of them.
	Threads(ctx context.Context, after string, limit int) ([]string, error)

	// Prune drops records and snapshots that policy allows to go. The newest
	// snapshot and all records after it always stay.
	Prune(ctx context.Context, thread string, policy PrunePolicy) error

	// Delete drops a thread and all its effects. Deleting one that is not there is
	// no error.
	Delete(ctx context.Context, thread string) error

	Caps() Caps

	// Close releases the store. Later calls return ErrClosed.
	Close() error
}

// Commit is one atomic unit: a record, its effects and what it settles.
// The store may keep the byte slices only until Append returned.
type Commit struct {
	ID       [16]byte
	Thread   string
	Base     uint64 // revision that the thread must be at; 0 for a new thread
	Epoch    uint64 // of the lease; 0 without one
	Time     time.Time
	Record   []byte // what changed; its first byte is the format version
	Snapshot []byte // optional: the whole state after Record
	Effects  []Effect
	Settles  []EffectRef // effects that are done; one that is not in the outbox is none
}

// Effect is an outbox entry.
type Effect struct {
	Lane      string
	NotBefore time.Time // zero: at once
	Body      []byte
}

// EffectRef identifies an outbox entry for ever; its text is the idempotency key
// that a receiver deduplicates by.
type EffectRef struct {
	Thread   string
	Revision uint64
	Index    uint32
}

// String returns "thread/revision/index".
func (r EffectRef) String() string {
	return r.Thread + "/" + strconv.FormatUint(r.Revision, 10) + "/" + strconv.FormatUint(uint64(r.Index), 10)
}

// ParseEffectRef reads what String wrote. The thread may itself contain slashes.
func ParseEffectRef(text string) (EffectRef, error) {
	rest, index, ok1 := cutLast(text)
	thread, revision, ok2 := cutLast(rest)
	n, err1 := strconv.ParseUint(index, 10, 32)
	rev, err2 := strconv.ParseUint(revision, 10, 64)
	ref := EffectRef{Thread: thread, Revision: rev, Index: uint32(n)}
	if !ok1 || !ok2 || err1 != nil || err2 != nil || ref.String() != text {
		return EffectRef{}, fmt.Errorf("store: %q is no effect reference; want thread/revision/index", text)
	}
	return ref, nil
}

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

// Image is what a store keeps of a thread. It belongs to the caller.
type Image struct {
	Revision   uint64
	Epoch      uint64
	LastID     [16]byte // of the commit that made Revision
	Snapshot   []byte   // nil: the thread is its records from the first on
	SnapshotAt uint64   // revision of Snapshot
	Tail       []Record
}

// Record is one commit after the snapshot. Lease commits have an empty Record.
type Record struct {
	Revision uint64
	ID       [16]byte
	Time     time.Time
	Record   []byte
}

// Caps says what an acknowledged commit means.
type Caps struct {
	Synced       bool // it survives a loss of power
	Replicas     int  // machines that have it; 1 for a local store, 0 for memory
	MultiProcess bool // several processes may use the store at once
	MaxBytes     int  // largest record or snapshot; 0: no limit
}

// PrunePolicy says what may be dropped of a thread's past. A zero field drops
// nothing; with both, what either allows goes.
type PrunePolicy struct {
	KeepSnapshots int       // snapshots to keep, at least 1; records before the oldest kept one go
	Before        time.Time // snapshots older than this go, and the records before the oldest kept one
}

// Leaser is implemented by journals that several owners may use. Taking a lease is
// itself a commit of the thread, so it moves the revision, and a former owner's
// next append fails on that alone. The time to live only says when somebody else
// may take over; safety never depends on a clock.
type Leaser interface {
	// Acquire takes the lease. It returns *LeaseHeld (ErrLeaseHeld) while another
	// owner's runs; the same owner may take it again.
	Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (Lease, error)
	// Renew prolongs it; ErrFenced when somebody took over.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release gives it up; ErrFenced when somebody took over.
	Release(ctx context.Context, l Lease) error
}

// Historian is implemented by journals that can show a thread's past.
type Historian interface {
	// LoadAt returns a thread as it was at a revision: the newest snapshot up to it and
	// the records after that. The error is ErrNoRevision for a revision that is
	// not kept.
	LoadAt(ctx context.Context, thread string, revision uint64) (Image, error)
}

// Lease is the right to append to a thread. Epoch is the revision of the commit
// that took it.
type Lease struct {
	Thread string
	Owner  string
	Epoch  uint64
	Until  time.Time
}

// Outbox is implemented by journals that keep effects until they are settled.
type Outbox interface {
	// Claim hands out at most limit due effects of a lane, of each thread in order of
	// revision and index, and keeps others from getting them for ttl.
	Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]Claim, error)
	// Settle ends or postpones a claimed effect; ErrFenced when the claim ran out and
	// somebody else has it, or when it gave the effect up before. To settle it as done, or
	// to give it up, once more is no error, because the first answer may have got lost.
	Settle(ctx context.Context, c Claim, s Settlement) error
}

// Claim is an effect that is being delivered.
type Claim struct {
	Ref      EffectRef
	Effect   Effect
	Attempts int    // how often it was claimed, this time included
	Token    uint64 // of this claim
}

// Settlement is the outcome of a delivery; the zero value means done.
type Settlement struct {
	RetryAt time.Time // not zero: hand it out again then
	Dead    bool      // give it up, but keep it for inspection
	Error   string
}

var (
	// ErrNoRevision is returned for a revision that is not kept any more, or never was.
	ErrNoRevision = errors.New("store: the thread does not hold that revision; its history lists those it does")
	// ErrConflict is the kind of *Conflict.
	ErrConflict = errors.New("store: the thread is at another revision")
	// ErrFenced means that somebody else took over.
	ErrFenced = errors.New("store: fenced off: another owner took over")
	// ErrUnknownOutcome means that a commit may or may not have landed. Repeat it with
	// the same id; never decide by a read.
	ErrUnknownOutcome = errors.New("store: the outcome of the commit is unknown")
	// ErrCorrupt means that what a store holds cannot be trusted.
	ErrCorrupt = errors.New("store: the store is corrupt")
	// ErrBehind means that a store could not show as new a state as was asked for.
	ErrBehind = errors.New("store: the store is behind")
	// ErrLeaseHeld is the kind of *LeaseHeld.
	ErrLeaseHeld = errors.New("store: another owner has the lease")
	// ErrClosed is returned by a journal that was closed, or that refuses
	// writes since a sync failed.
	ErrClosed = errors.New("store: the journal is closed")
	// ErrTooLarge is returned for a record beyond Caps.MaxBytes.
	ErrTooLarge = errors.New("store: the record is too large for the store")
)

// Conflict says where the thread is instead.
type Conflict struct {
	Thread     string
	Base, Have uint64
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("store: thread %s is at revision %d, not at %d; load it again", e.Thread, e.Have, e.Base)
}

// Is reports whether target is ErrConflict.
func (e *Conflict) Is(target error) bool { return target == ErrConflict }

// LeaseHeld says who has the lease and until when.
type LeaseHeld struct {
	Thread, Owner string
	Until         time.Time
}

func (e *LeaseHeld) Error() string {
	return fmt.Sprintf("store: thread %s is leased to %s until %s", e.Thread, e.Owner, e.Until.Format(time.RFC3339))
}

// Is reports whether target is ErrLeaseHeld.
func (e *LeaseHeld) Is(target error) bool { return target == ErrLeaseHeld }
