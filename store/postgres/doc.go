// Package postgres keeps threads in a Postgres database, where many processes on many
// machines share them. It is a complete store: journal, leases, history, outbox, queue and
// notices. The server must be Postgres 13 or newer.
//
//	journal, err := postgres.Open(ctx, "postgres://app@db1,db2/app?target_session_attrs=read-write", postgres.Options{})
//	if err != nil {
//		return err
//	}
//	defer journal.Close()
//
// # What an acknowledged commit means
//
// A commit, its effects and what it settles are one statement, and one round trip. When it
// is acknowledged it is on the disk of the primary, and of as many standbys as the server's
// synchronous_standby_names demands; [Journal.Caps] tells, [Journal.Status] tells more. With
// no standbys there, a failover loses what the new primary had not yet got.
//
// Sessions have synchronous_commit at least on, unless [Options.Commit] says otherwise. Caps
// says Synced only if the server has fsync and full_page_writes on too.
//
// # Unknown outcomes
//
// When a connection breaks in the middle of a commit nobody knows what became of it. Then
// the store sends the commit again, with the same id, for as long as [Options.Patience] and
// the context allow; after that the error is [store.ErrUnknownOutcome], and the caller may
// go on in the same way. The answer to a repeat waits for the standbys as the first one
// should have done. A caller whose context ends gets the same error, and the statement goes
// on without it.
//
// Failover works by a connection string that names all hosts, with
// target_session_attrs=read-write. A server that is a standby or read-only is refused with
// [ErrNotPrimary], and so is a former primary, once this store has seen the new one. A
// process that has not seen it can be led to a former primary that runs on: its commits wait
// for standbys for ever, but it shows what it has. Whatever does the failover has to stop the
// former primary.
//
// # Reads
//
// Load is one statement on the primary, and shows all commits that were acknowledged before.
// It may also show one that is not acknowledged yet and that a failover then loses: one
// whose wait for the standbys was broken off, or cut short by a restart of the primary.
// Appends on top of it are acknowledged only when the standbys have it too.
//
// # Clocks
//
// The server's clock decides when leases and claims run out and when an effect is due: for
// leases the clock at that moment, for claims the start of the statement. NotBefore and
// RetryAt are compared with it, to the microsecond, so the clocks of those who make them
// should not be far off. No promise but these times depends on a clock.
//
// # Tables
//
// The tables are in a schema of their own. Open makes them and brings them up to date under
// a lock; it refuses those of a newer version of this package. Names are of type bytea,
// because they may hold any bytes: look at them with encode(thread, 'escape'). Every record,
// snapshot and effect has a checksum, because servers check their pages only if they were
// set up to. What is damaged is reported as [store.ErrCorrupt], with its place.
//
// # Connections
//
// The store has a pool of its own, and one connection more when somebody listens. The
// sessions are set up once, so between the store and the server there must be nothing that
// shares connections between transactions, such as PgBouncer in that mode.
//
// A notice goes through NOTIFY, as text in parts of less than 8000 bytes, on a channel whose
// name is made of schema and topic.
//
// # Ownership and concurrency
//
// A store is safe for concurrent use. Byte slices are copied on the way in and out.
package postgres
