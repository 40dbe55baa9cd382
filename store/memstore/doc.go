// Package memstore keeps threads in memory. It is a complete store: journal,
// leases, outbox, queue and notices, with the promises that package store makes to
// callers in one process, and nothing that outlives it. Use it in tests, and to embed
// an engine that wants leases or an outbox and no files:
//
//	journal := memstore.New(memstore.Options{})
//	defer journal.Close()
//	revision, err := journal.Append(ctx, store.Commit{ID: id, Thread: "t1", Record: record})
//
// # Ownership and concurrency
//
// A store is safe for concurrent use. It copies every byte slice on the way in
// and on the way out, so callers may reuse theirs.
//
// # Time
//
// Leases, claims and effects that wait are measured by [Options.Now]. Nothing
// happens by itself when time passes: a lease or claim that ran out is noticed
// by the next call that asks for it.
package memstore
