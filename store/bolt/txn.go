package bolt

import (
	"bytes"

	"go.etcd.io/bbolt"

	"github.com/ddd26017/fixpoint/store"
)

// txn is a transaction, and what reads and writes checked values in it.
type txn struct {
	tx   *bbolt.Tx
	path string
}

func (x *txn) damage(bucket []byte, thread string, revision uint64, reason string) error {
	return &CorruptError{Path: x.path, Bucket: string(bucket), Thread: thread, Revision: revision, Offset: -1, Reason: reason}
}

// bucket returns one of the buckets. Without it bbolt panics, which becomes an error.
func (x *txn) bucket(name []byte) *bbolt.Bucket {
	b := x.tx.Bucket(name)
	if b == nil {
		panic("the bucket " + string(name) + " is missing")
	}
	return b
}

// open checks a value of a thread at a revision.
func (x *txn) open(bucket []byte, k kind, key, raw []byte, thread string, revision uint64) ([]byte, error) {
	v, reason := openValue(k, key, raw)
	if reason == "" && (v.thread != thread || revision != 0 && v.revision != revision) {
		reason = "the value is one of another thread or revision"
	}
	if reason != "" {
		return nil, x.damage(bucket, thread, revision, reason)
	}
	return v.payload, nil
}

// thread returns what is known of a thread; found is false for one that is not there.
func (x *txn) thread(id string) (t thread, found bool, err error) {
	key := nameKey(id)
	raw := x.bucket(bucketThreads).Get(key)
	if raw == nil {
		if next, _ := x.bucket(bucketRecords).Cursor().Seek(key); bytes.HasPrefix(next, key) {
			return t, false, x.damage(bucketThreads, id, 0, "the thread has records and no entry")
		}
		return t, false, nil
	}
	payload, err := x.open(bucketThreads, kindThread, key, raw, id, 0)
	if err != nil {
		return t, false, err
	}
	v, _ := openValue(kindThread, key, raw)
	t, ok := decodeThread(v.revision, payload)
	if !ok {
		return t, false, x.damage(bucketThreads, id, v.revision, "the entry of the thread makes no sense")
	}
	return t, true, nil
}

// checkTip makes sure that the newest record of a thread is the one of its revision.
func (x *txn) checkTip(id string, t thread) error {
	prefix := nameKey(id)
	c := x.bucket(bucketRecords).Cursor()
	key, _ := c.Seek(revisionKey(id, t.revision))
	if revision, ok := revisionOf(key, prefix); !ok || revision != t.revision {
		return x.damage(bucketRecords, id, t.revision, "the record is missing")
	}
	if key, _ = c.Next(); bytes.HasPrefix(key, prefix) {
		return x.damage(bucketThreads, id, t.revision, "the thread has newer records than its entry says")
	}
	return nil
}

func (x *txn) putThread(id string, t thread) error {
	key := nameKey(id)
	return x.bucket(bucketThreads).Put(key, t.encode(key, id))
}

// record returns one record of a thread, which is not copied.
func (x *txn) record(id string, revision uint64) (store.Record, error) {
	key := revisionKey(id, revision)
	raw := x.bucket(bucketRecords).Get(key)
	if raw == nil {
		return store.Record{}, x.damage(bucketRecords, id, revision, "the record is missing")
	}
	return x.openRecord(id, revision, key, raw)
}

func (x *txn) openRecord(id string, revision uint64, key, raw []byte) (store.Record, error) {
	payload, err := x.open(bucketRecords, kindRecord, key, raw, id, revision)
	if err != nil {
		return store.Record{}, err
	}
	r, ok := decodeRecord(revision, payload)
	if !ok {
		return r, x.damage(bucketRecords, id, revision, "the record is too short")
	}
	return r, nil
}

// counters returns the numbers given out so far.
func (x *txn) counters() (counters, error) {
	payload, err := x.open(bucketCounters, kindCounters, keyCounters, x.bucket(bucketCounters).Get(keyCounters), "", 0)
	if err != nil {
		return counters{}, err
	}
	c, ok := decodeCounters(payload)
	if !ok {
		return c, x.damage(bucketCounters, "", 0, "the counters have another length")
	}
	return c, nil
}

func (x *txn) putCounters(c counters) error {
	return x.bucket(bucketCounters).Put(keyCounters, c.encode())
}

// keys copies the keys that begin with a prefix.
func (x *txn) keys(bucket, prefix []byte) (keys [][]byte) {
	c := x.bucket(bucket).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// remove deletes keys.
func (x *txn) remove(bucket []byte, keys [][]byte) error {
	b := x.bucket(bucket)
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
