package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/internal/notices"
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Timeout is how long Open waits for a file that is open elsewhere; 0 is 3 seconds,
	// less than 0 is for ever.
	Timeout time.Duration
	// MaxBytes limits each record, snapshot and effect body; 0 is 64 MiB. It is at most
	// 1 GiB.
	MaxBytes int
	// NoSync leaves out the syncs: a loss of power may then lose commits or the file. It
	// is for tests, to see what syncs are good for; Caps tells of it.
	NoSync bool
	// TrustFile leaves out the reading of the whole file by Open, which takes about as
	// long as to copy the file, and checks its size and meta pages only. Damage to the
	// structure of a file that is trusted may be found late or may end the process.
	TrustFile bool
	// Now is the clock of leases, claims and effects that wait; nil is time.Now. It must
	// be safe for concurrent use.
	Now func() time.Time
}

const (
	defaultTimeout = 3 * time.Second
	defaultBytes   = 64 << 20
	mostBytes      = 1 << 30
)

// Journal is an open store. It implements [store.Journal], [store.Leaser],
// [store.Historian], [store.Queue] and [store.Notifier], and is safe for concurrent use.
// Open makes one; it must be closed.
type Journal struct {
	path     string
	now      func() time.Time
	maxBytes int
	synced   bool
	db       *bbolt.DB
	file     *os.File // what db writes to
	outbox   error    // damage found by Open, which stops claims
	board    notices.Board

	mu      sync.Mutex
	queue   []*request
	closed  bool
	failed  error         // why no more writes are taken
	changed chan struct{} // closed and replaced by each change that somebody waits for
	waiting int

	wake chan struct{} // tells the writer that the queue or closed has changed
	done chan struct{} // closed when the writer has ended
}

var (
	_ store.Journal   = (*Journal)(nil)
	_ store.Leaser    = (*Journal)(nil)
	_ store.Historian = (*Journal)(nil)
	_ store.Queue     = (*Journal)(nil)
	_ store.Notifier  = (*Journal)(nil)
)

// Open opens the store in the file of that path, and makes it when there is no such
// file. The folder must be there. Errors: ErrLocked; *CorruptError (store.ErrCorrupt)
// for a file that is damaged or no store; those of the file system.
func Open(path string, o Options) (*Journal, error) {
	if o.MaxBytes < 0 || o.MaxBytes > mostBytes {
		return nil, fmt.Errorf("bolt: Options.MaxBytes is %d; want 0 to %d", o.MaxBytes, mostBytes)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, err
		}
	}
	report, err := inspect(path, o.Timeout, !o.TrustFile)
	if err != nil {
		return nil, err
	}
	j := &Journal{
		path:     path,
		now:      o.Now,
		maxBytes: o.MaxBytes,
		synced:   !o.NoSync,
		outbox:   report.outboxDamage(),
		changed:  make(chan struct{}),
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	j.db, j.file, err = openFile(path, bbolt.Options{Timeout: timeout(o.Timeout), NoSync: o.NoSync})
	if err != nil {
		return nil, err
	}
	go j.write()
	return j, nil
}

// timeout translates Options.Timeout to what bbolt takes.
func timeout(d time.Duration) time.Duration {
	switch {
	case d == 0:
		return defaultTimeout
	case d < 0:
		return 0
	}
	return d
}

// openFile opens a file that is known to be sound, or new.
func openFile(path string, o bbolt.Options) (db *bbolt.DB, file *os.File, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			// bbolt has the file open and locked, and no way to let go of it.
			_ = file.Close()
			db, file, err = nil, nil, panicked(path, v)
		}
	}()
	o.FreelistType = bbolt.FreelistMapType
	o.NoStatistics = true
	o.OpenFile = func(name string, flag int, perm os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, perm)
		file = f
		return f, err
	}
	db, err = bbolt.Open(path, 0o600, &o)
	switch {
	case err == nil:
		return db, file, nil
	case errors.Is(err, berrors.ErrTimeout):
		return nil, nil, fmt.Errorf("%w: %s", ErrLocked, path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, nil, &CorruptError{Path: path, Offset: 0, Reason: err.Error()}
	}
	return nil, nil, fmt.Errorf("bolt: open %s: %w", path, err)
}

// create makes an empty store. The file appears under its name only when it is
// complete and synced, so that a crash leaves no half of one.
func create(path string) error {
	folder := filepath.Dir(path)
	temp, err := os.CreateTemp(folder, filepath.Base(path)+".new-*")
	if err != nil {
		return fmt.Errorf("bolt: create %s: %w", path, err)
	}
	defer os.Remove(temp.Name())
	_ = temp.Close()
	db, _, err := openFile(temp.Name(), bbolt.Options{Timeout: defaultTimeout})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketCounters).Put(keyCounters, counters{}.encode())
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("bolt: create %s: %w", path, err)
	}
	// A link, unlike a rename, does not replace a store that somebody else has made
	// meanwhile.
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		if err := os.Rename(temp.Name(), path); err != nil {
			return fmt.Errorf("bolt: create %s: %w", path, err)
		}
	}
	return syncFolder(folder)
}

// syncFolder makes a new file's name survive a loss of power, where folders can be
// synced.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("bolt: sync %s: %w", folder, err)
	}
	defer f.Close()
	_ = f.Sync() // not every system can
	return nil
}

// Caps implements [store.Journal].
func (j *Journal) Caps() store.Caps {
	return store.Caps{Synced: j.synced, Replicas: 1, MaxBytes: j.maxBytes}
}

// Path returns the path of the file, as it was given to Open.
func (j *Journal) Path() string { return j.path }

// Close finishes the write that is under way, fails those behind it, waits for reads,
// and closes the file. A second call returns store.ErrClosed.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return errClosed()
	}
	j.closed = true
	j.broadcast()
	j.board.Close()
	j.mu.Unlock()
	j.signal()
	<-j.done
	if err := j.closeFile(); err != nil {
		return fmt.Errorf("bolt: close %s: %w", j.path, err)
	}
	return nil
}

// closeFile closes the file when all reads have ended. After a panic in the middle of a
// transaction bbolt may hold a lock of its own for ever; then the file is closed under it,
// which lets others open it.
func (j *Journal) closeFile() error {
	j.mu.Lock()
	broken := errors.Is(j.failed, store.ErrCorrupt)
	j.mu.Unlock()
	if !broken {
		return j.db.Close()
	}
	closed := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				closed <- panicked(j.path, v)
			}
		}()
		closed <- j.db.Close()
	}()
	patience := time.NewTimer(defaultTimeout)
	defer patience.Stop()
	select {
	case err := <-closed:
		return err
	case <-patience.C:
		return errors.Join(errors.New("bbolt does not let go of the file"), j.file.Close())
	}
}

// view runs a read. fn must not keep what it got from the transaction.
func (j *Journal) view(ctx context.Context, fn func(tx *txn) error) (err error) {
	if err := j.open(ctx); err != nil {
		return err
	}
	// The file may be cut or a page be damaged while it is mapped.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = panicked(j.path, v)
		}
	}()
	err = j.db.View(func(tx *bbolt.Tx) error { return fn(&txn{tx: tx, path: j.path}) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return errClosed()
	}
	return err
}

// open says why nothing is done, or nil.
func (j *Journal) open(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("bolt: not done: %w", context.Cause(ctx))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errClosed()
	}
	return nil
}

// panicked makes an error of a panic inside bbolt, which is how it reports pages that
// make no sense.
func panicked(path string, v any) error {
	return &CorruptError{Path: path, Offset: -1, Reason: fmt.Sprintf("reading it failed with: %v", v)}
}

// broadcast lets the waiting loads look again. The lock is held.
func (j *Journal) broadcast() {
	if j.waiting > 0 {
		close(j.changed)
		j.changed = make(chan struct{})
	}
}
