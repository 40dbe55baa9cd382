// Package store is the contract between an engine and what keeps its threads: a
// [Journal] of commits, and what a journal may offer besides: leases ([Leaser]), the
// past ([Historian]) and effects that wait for their delivery ([Outbox]).
//
//	revision, err := journal.Append(ctx, store.Commit{ID: id, Thread: "t1", Record: record})
//	if errors.Is(err, store.ErrUnknownOutcome) {
//		revision, err = journal.Append(ctx, same) // the same id: it lands at most once
//	}
//
// Callers know the same types by their names in package engine, such as
// engine.JournalCommit. The stores are in folders below this one, and
// storetest.Run tells whether another store keeps the contract.
//
// The package imports the standard library only, so a store that is written
// against it links nothing of the engine.
package store
