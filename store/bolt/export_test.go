package bolt

import (
	"bytes"
	"context"
	"runtime"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ddd26017/fixpoint/store"
)

// BreakFile closes the file under a store, so that its next write fails.
func (j *Journal) BreakFile() error { return j.file.Close() }

// Transactions returns how many transactions the file has seen.
func (j *Journal) Transactions() (n int) {
	_ = j.db.View(func(tx *bbolt.Tx) error {
		n = tx.ID()
		return nil
	})
	return n
}

// Hold stops the writer until release is called; held says that it has stopped.
func (j *Journal) Hold() (held <-chan struct{}, release func()) {
	stopped, goOn := make(chan struct{}), make(chan struct{})
	r := &request{done: make(chan error, 1), apply: func(*txn) (bool, error) {
		close(stopped)
		<-goOn
		return false, nil
	}}
	j.enqueue(r)
	return stopped, func() { close(goOn) }
}

// AwaitQueue returns when so many requests wait for the writer.
func (j *Journal) AwaitQueue(n int) {
	for {
		j.mu.Lock()
		queued := len(j.queue)
		j.mu.Unlock()
		if queued >= n {
			return
		}
		runtime.Gosched()
	}
}

// ForgetDue makes an effect one of a version that did not write since when it is due.
func (j *Journal) ForgetDue(ref store.EffectRef) error {
	return j.update(context.Background(), 0, func(tx *txn) (bool, error) {
		e, _, err := tx.effect(ref)
		if err != nil {
			return false, err
		}
		e.due, e.body = time.Time{}, bytes.Clone(e.body)
		return true, tx.putEffect(e)
	})
}

// Unindex takes an effect out of the index.
func (j *Journal) Unindex(ref store.EffectRef) error {
	return j.update(context.Background(), 0, func(tx *txn) (bool, error) {
		e, _, err := tx.effect(ref)
		if err != nil {
			return false, err
		}
		return true, tx.dropIndex(e)
	})
}

// Crash hands the writer a request that panics after it has written.
func (j *Journal) Crash() error {
	r := &request{done: make(chan error, 1), apply: func(tx *txn) (bool, error) {
		_ = tx.putThread("half", thread{revision: 7, first: 1})
		panic("half-way")
	}}
	j.enqueue(r)
	return <-r.done
}

func (j *Journal) enqueue(r *request) {
	j.mu.Lock()
	j.queue = append(j.queue, r)
	j.mu.Unlock()
	j.signal()
}

// DecodeAny reads a value as each kind, and returns how many took it.
func DecodeAny(key, raw []byte) (taken int) {
	a := newAudit("fuzz", true)
	for _, bucket := range buckets {
		before := len(a.faults)
		a.value(bucket, element{key: key, value: raw})
		if len(a.faults) == before {
			taken++
		}
	}
	a.compare()
	return taken
}

// SealAny gives a payload the header of each kind and the right checksum, so that
// decoding gets past it.
func SealAny(key, payload []byte, thread string, revision uint64) (values [][]byte) {
	for k := kindCounters; k <= kindIndex; k++ {
		values = append(values, seal(key, append(newValue(k, thread, revision, len(payload)), payload...)))
	}
	return values
}

// NameKey and CutName are the two ways of a name in a key.
func NameKey(name string) []byte { return nameKey(name) }

// CutName undoes NameKey.
func CutName(key []byte) (string, []byte, bool) { return cutName(key) }
