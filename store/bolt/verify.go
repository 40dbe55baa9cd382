package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Report is what Verify found in a file.
type Report struct {
	Bytes     int64 // size of the file
	Pages     int   // in use, of PageSize bytes
	FreePages int
	PageSize  int
	Threads   int
	Records   int
	Snapshots int
	Effects   int
	// Faults is everything that is damaged, at most 1000 of each sort. Faults of the
	// structure come first, then those of values, then what does not fit together.
	Faults []*CorruptError
	// Stale is what is wrong with the meta page that is not in use. It is there after a
	// crash in the middle of a commit, which lost nothing that was acknowledged, and
	// also when the newest meta page was damaged, which lost the newest commit.
	Stale *CorruptError

	structure int // how many of Faults are of the structure
}

// Verify reads a store that is not open and reports all damage. It changes nothing and
// maps nothing but the meta pages into memory, so that no file can end the process. The error joins the
// faults, and is of the kind store.ErrCorrupt, or it says why the file could not be
// read. Of the options it uses Timeout.
func Verify(path string, o Options) (Report, error) {
	r, err := read(path, o.Timeout, true, true)
	if err != nil {
		return r, err
	}
	faults := make([]error, len(r.Faults))
	for i, f := range r.Faults {
		faults[i] = f
	}
	return r, errors.Join(faults...)
}

// inspect is what Open looks at: damage to the structure is an error.
func inspect(path string, wait time.Duration, whole bool) (Report, error) {
	r, err := read(path, wait, whole, false)
	if err != nil {
		return r, err
	}
	if r.structure > 0 {
		return r, r.Faults[0]
	}
	for _, f := range r.Faults {
		if f.Bucket == string(bucketCounters) {
			return r, f
		}
	}
	return r, nil
}

// outboxDamage returns the first fault of an effect's value, or nil.
func (r Report) outboxDamage() error {
	for _, f := range r.Faults {
		for _, name := range [][]byte{bucketEffects, bucketReady, bucketWaiting, bucketDead} {
			if f.Bucket == string(name) {
				return f
			}
		}
	}
	return nil
}

func read(path string, wait time.Duration, whole, deep bool) (r Report, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return r, fmt.Errorf("bolt: %w", err)
	}
	r.Bytes = info.Size()
	if r.Bytes == 0 {
		return r, &CorruptError{Path: path, Offset: 0, Reason: "the file is empty, and a store never is"}
	}
	// No process may write meanwhile. Where even the meta pages are damaged, bbolt does not
	// open the file, here as elsewhere, and nobody writes.
	lock, _, lockErr := openFile(path, bbolt.Options{ReadOnly: true, Timeout: timeout(wait)})
	if errors.Is(lockErr, ErrLocked) {
		return r, lockErr
	}
	if lockErr == nil {
		defer lock.Close()
	}
	file, err := os.Open(path)
	if err != nil {
		return r, fmt.Errorf("bolt: %w", err)
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return r, fmt.Errorf("bolt: %w", err)
	}
	r.Bytes = info.Size()
	m, stale, damage := readMeta(file, r.Bytes, path)
	if damage != nil {
		return r, damage
	}
	if lockErr != nil {
		return r, lockErr
	}
	r.Stale, r.PageSize = stale, m.pageSize
	if whole {
		r.read(file, path, m, deep)
	}
	return r, nil
}

// read walks the file.
func (r *Report) read(file *os.File, path string, m meta, deep bool) {
	a := newAudit(path, deep)
	w := newWalk(file, path, m, a.value)
	w.all()
	a.roots = w.roots
	r.Pages, r.FreePages = w.pages, w.free
	r.Threads, r.Records, r.Snapshots, r.Effects = a.count(bucketThreads), a.count(bucketRecords), a.count(bucketSnapshots), a.count(bucketEffects)
	r.structure = len(w.faults)
	r.Faults = append(w.faults, a.faults...)
	if deep && len(r.Faults) == 0 {
		a.compare()
		r.Faults = append(r.Faults, a.faults...)
	}
}

// kindOf returns the kind of the values of a bucket.
func kindOf(bucket []byte) kind {
	for k, name := range map[kind][]byte{
		kindCounters: bucketCounters, kindThread: bucketThreads, kindRecord: bucketRecords,
		kindSnapshot: bucketSnapshots, kindEffect: bucketEffects,
	} {
		if bytes.Equal(bucket, name) {
			return k
		}
	}
	return kindIndex
}
