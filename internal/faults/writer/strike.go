package writer

// Strike is what a writer does to itself, without rights or tools.
type Strike string

// The strikes. Each is in force from then on. Where a process cannot filter its own
// system calls, the store's file is replaced instead, or the process ends at once.
const (
	// Nothing is the zero value.
	Nothing Strike = ""
	// SyncFails lets each sync fail with EIO; what was written stays.
	SyncFails Strike = "sync fails"
	// WritesVanish puts the null device in the place of the store's file, which forgets
	// what is written and fails each sync.
	WritesVanish Strike = "writes vanish"
	// DiskFull lets each write to a file fail with ENOSPC.
	DiskFull Strike = "disk full"
	// The others end the process when it comes to: a write of data, a write of the page
	// that makes a commit count, a sync, a change of the file's size, or the next
	// acknowledgement, which is not told.
	DieAtData   Strike = "die at data"
	DieAtMeta   Strike = "die at meta"
	DieAtSync   Strike = "die at sync"
	DieAtResize Strike = "die at resize"
	DieAtAnswer Strike = "die at answer"
)
