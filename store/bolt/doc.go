// Package bolt keeps threads in one file. It is the embedded store: journal, leases,
// outbox, queue and notices for one process at a time, on bbolt, without C.
//
//	store, err := bolt.Open("threads.db", bolt.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// # What an acknowledged commit means
//
// It was written and synced: it survives a crash of the process and, if the disk
// keeps what it says it has, a loss of power. Commits of different threads that come
// at the same time share one sync; a lone commit waits for nobody.
//
// After a write or sync failed the outcome of that commit is unknown, and the store
// refuses all further writes with [store.ErrClosed] until it is opened again.
// Reads go on.
//
// # Damage
//
// bbolt checks its two meta pages only. So this package keeps a checksum, a length and
// the thread and revision with every value, and Open reads the whole file once before
// bbolt maps it into memory: sizes, page headers, keys, order, free list, and the
// checksum of each value. A file whose structure is damaged is refused with
// [store.ErrCorrupt]; where only values are, the store opens, and calls for the
// threads concerned fail. Nothing damaged is returned as data. [Verify] reports all
// that is wrong, with positions.
//
// The newest commit is lost without an error if the meta page that it wrote is damaged
// afterwards, because that looks like a crash in the middle of that commit.
//
// # Concurrency and ownership
//
// A store is safe for concurrent use. One goroutine writes; it belongs to the store and
// ends with Close. Byte slices are copied on the way in and out. Another process that
// opens the same file waits for Options.Timeout and gets [ErrLocked].
package bolt
