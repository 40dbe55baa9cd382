package engine

import "github.com/ddd26017/fixpoint/store"

// The contract of the stores that keep threads is in package store. These are its
// types under the names that they have here.
type (
	// Journal keeps threads where they outlive the process.
	Journal = store.Journal
	// JournalCommit is one atomic unit: a record, its effects and what it settles.
	JournalCommit = store.Commit
	// JournalEffect is an outbox entry.
	JournalEffect = store.Effect
	// EffectRef identifies an outbox entry for ever.
	EffectRef = store.EffectRef
	// JournalImage is what a store keeps of a thread. It belongs to the caller.
	JournalImage = store.Image
	// JournalRecord is one commit after the snapshot.
	JournalRecord = store.Record
	// JournalCaps says what an acknowledged commit means.
	JournalCaps = store.Caps
	// PrunePolicy says what may be dropped of a thread's past.
	PrunePolicy = store.PrunePolicy
	// Leaser is implemented by journals that several owners may use.
	Leaser = store.Leaser
	// Historian is implemented by journals that can show a thread's past.
	Historian = store.Historian
	// Lease is the right to append to a thread.
	Lease = store.Lease
	// Outbox is implemented by journals that keep effects until they are settled.
	Outbox = store.Outbox
	// Claim is an effect that is being delivered.
	Claim = store.Claim
	// Settlement is the outcome of a delivery; the zero value means done.
	Settlement = store.Settlement
	// JournalConflict says where the thread is instead.
	JournalConflict = store.Conflict
	// LeaseHeld says who has the lease and until when.
	LeaseHeld = store.LeaseHeld
)

// The kinds of errors that stores return.
var (
	// ErrNoRevision is returned for a revision that a thread does not hold any more, or
	// never had.
	ErrNoRevision = store.ErrNoRevision
	// ErrJournalConflict is the kind of *JournalConflict.
	ErrJournalConflict = store.ErrConflict
	// ErrFenced means that somebody else took over.
	ErrFenced = store.ErrFenced
	// ErrUnknownOutcome means that a commit may or may not have landed. Repeat it with
	// the same id; never decide by a read.
	ErrUnknownOutcome = store.ErrUnknownOutcome
	// ErrCorrupt means that what a store holds cannot be trusted.
	ErrCorrupt = store.ErrCorrupt
	// ErrBehind means that a store could not show as new a state as was asked for.
	ErrBehind = store.ErrBehind
	// ErrLeaseHeld is the kind of *LeaseHeld.
	ErrLeaseHeld = store.ErrLeaseHeld
	// ErrJournalClosed is returned by a journal that was closed, or that refuses
	// writes since a sync failed.
	ErrJournalClosed = store.ErrClosed
	// ErrTooLarge is returned for a record beyond JournalCaps.MaxBytes.
	ErrTooLarge = store.ErrTooLarge
)

// ParseEffectRef reads what EffectRef.String wrote. The thread may itself contain
// slashes.
func ParseEffectRef(text string) (EffectRef, error) { return store.ParseEffectRef(text) }
