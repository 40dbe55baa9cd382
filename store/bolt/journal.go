package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/store"
)

// Append implements [store.Journal]. A zero ID is never recognised as a repeat; others
// are as long as the record is kept. An epoch other than the thread's, newer ones
// included, is fenced off.
func (j *Journal) Append(ctx context.Context, c store.Commit) (uint64, error) {
	if err := j.checkCommit(c); err != nil {
		return 0, err
	}
	revision := c.Base + 1
	recordKey := revisionKey(c.Thread, revision)
	record := encodeRecord(recordKey, c.Thread, store.Record{Revision: revision, ID: c.ID, Time: c.Time, Record: c.Record})
	var snapshot []byte
	if c.Snapshot != nil {
		snapshot = encodeSnapshot(recordKey, c.Thread, revision, c.Time, c.Snapshot)
	}
	effects, size := j.copyEffects(c, revision)
	id, base, epoch, key, settles := c.ID, c.Base, c.Epoch, c.Thread, slices.Clone(c.Settles)

	err := j.update(ctx, len(record)+len(snapshot)+size, func(tx *txn) (bool, error) {
		t, found, err := tx.thread(key)
		if err != nil {
			return false, err
		}
		if found {
			if err := tx.checkTip(key, t); err != nil {
				return false, err
			}
			if repeat, err := tx.made(key, t, revision, id); repeat || err != nil {
				return false, err
			}
		}
		switch {
		case epoch != t.epoch:
			return false, errFenced(key, epoch, t.epoch)
		case base != t.revision:
			return false, &store.Conflict{Thread: key, Base: base, Have: t.revision}
		}
		settled, err := tx.effects(settles)
		if err != nil {
			return false, err
		}
		t.revision, t.lastID = revision, id
		t.first = max(t.first, 1)
		if snapshot != nil {
			t.snapshotAt = revision
			err = tx.bucket(bucketSnapshots).Put(recordKey, snapshot)
		}
		return true, errors.Join(err,
			tx.bucket(bucketRecords).Put(recordKey, record),
			tx.putThread(key, t),
			tx.dropEffects(settled),
			tx.addEffects(effects))
	})
	if err != nil {
		return 0, err
	}
	return revision, nil
}

// checkCommit refuses what the store has no room for.
func (j *Journal) checkCommit(c store.Commit) error {
	err := errors.Join(checkName("thread id", c.Thread), j.checkSize("record", c.Record), j.checkSize("snapshot", c.Snapshot))
	for _, e := range c.Effects {
		err = errors.Join(err, checkName("lane", e.Lane), j.checkSize("effect", e.Body))
	}
	return err
}

func (j *Journal) checkSize(what string, b []byte) error {
	if len(b) > j.maxBytes {
		return fmt.Errorf("bolt: a %s of %d bytes, and the limit is %d; raise Options.MaxBytes: %w", what, len(b), j.maxBytes, store.ErrTooLarge)
	}
	return nil
}

// made reports whether the commit with this id made that revision.
func (x *txn) made(id string, t thread, revision uint64, commit [16]byte) (bool, error) {
	if commit == [16]byte{} || revision < t.first || revision > t.revision {
		return false, nil
	}
	r, err := x.record(id, revision)
	return r.ID == commit && err == nil, err
}

// Load implements [store.Journal].
func (j *Journal) Load(ctx context.Context, id string, atLeast uint64) (store.Image, error) {
	for {
		// The way to hear of changes has to be there before the look, or one would be missed.
		j.mu.Lock()
		changed := j.changed
		j.waiting++
		j.mu.Unlock()
		image, err := j.load(ctx, id, atLeast)
		if err == nil && image.Revision < atLeast {
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		j.mu.Lock()
		j.waiting--
		j.mu.Unlock()
		if err != nil && ctx.Err() != nil && atLeast > 0 {
			return store.Image{}, errors.Join(fmt.Errorf("bolt: thread %s did not reach revision %d in time: %w", id, atLeast, store.ErrBehind), err)
		}
		if err != nil || image.Revision >= atLeast {
			return image, err
		}
	}
}

// load reads a thread once. When it is not at atLeast, only the revision is right.
func (j *Journal) load(ctx context.Context, id string, atLeast uint64) (image store.Image, err error) {
	err = j.view(ctx, func(tx *txn) error {
		t, found, err := tx.thread(id)
		if err != nil || !found || t.revision < atLeast {
			image.Revision = t.revision
			return err
		}
		image, err = tx.image(id, t, t.revision, t.snapshotAt)
		return err
	})
	if err != nil {
		return store.Image{}, err
	}
	return image, nil
}

// LoadAt returns a thread as it was at a revision: the newest snapshot up to it and the
// records after that. It fails for a revision that is not kept, because it was pruned
// or never existed.
func (j *Journal) LoadAt(ctx context.Context, id string, revision uint64) (image store.Image, err error) {
	err = j.view(ctx, func(tx *txn) error {
		t, found, err := tx.thread(id)
		if err != nil {
			return err
		}
		if !found || revision < t.first || revision > t.revision {
			return fmt.Errorf("bolt: revision %d of thread %s: %w", revision, id, store.ErrNoRevision)
		}
		at, err := tx.snapshotBefore(id, revision)
		if err != nil {
			return err
		}
		image, err = tx.image(id, t, revision, at)
		return err
	})
	if err != nil {
		return store.Image{}, err
	}
	return image, nil
}

// snapshotBefore returns the revision of the newest snapshot up to a revision; 0: none.
func (x *txn) snapshotBefore(id string, revision uint64) (uint64, error) {
	prefix := nameKey(id)
	c := x.bucket(bucketSnapshots).Cursor()
	key, _ := c.Seek(revisionKey(id, revision))
	if at, ok := revisionOf(key, prefix); ok && at == revision {
		return at, nil
	}
	if key == nil {
		key, _ = c.Last()
	} else {
		key, _ = c.Prev()
	}
	at, _ := revisionOf(key, prefix)
	return at, nil
}

// image copies a thread up to a revision, from a snapshot on.
func (x *txn) image(id string, t thread, upTo, snapshotAt uint64) (image store.Image, err error) {
	image = store.Image{Revision: upTo, Epoch: t.epoch, SnapshotAt: snapshotAt}
	if snapshotAt > 0 {
		key := revisionKey(id, snapshotAt)
		raw := x.bucket(bucketSnapshots).Get(key)
		if raw == nil {
			return image, x.damage(bucketSnapshots, id, snapshotAt, "the snapshot is missing")
		}
		payload, err := x.open(bucketSnapshots, kindSnapshot, key, raw, id, snapshotAt)
		if err != nil {
			return image, err
		}
		_, state, ok := decodeSnapshot(payload)
		if !ok {
			return image, x.damage(bucketSnapshots, id, snapshotAt, "the snapshot is too short")
		}
		image.Snapshot = append(make([]byte, 0, len(state)), state...)
	}
	if err := x.checkTip(id, t); err != nil {
		return image, err
	}
	if err := x.tail(id, max(snapshotAt, t.first), &image); err != nil {
		return image, err
	}
	if upTo == t.revision && image.LastID != t.lastID {
		return image, x.damage(bucketRecords, id, upTo, "the newest record has another id than the thread's entry")
	}
	return image, nil
}

// tail reads the records from first up to the image's revision, without a gap.
func (x *txn) tail(id string, first uint64, image *store.Image) error {
	prefix := nameKey(id)
	c := x.bucket(bucketRecords).Cursor()
	key, raw := c.Seek(revisionKey(id, first))
	for next := first; next <= image.Revision; next++ {
		if at, ok := revisionOf(key, prefix); !ok || at != next {
			return x.damage(bucketRecords, id, next, "the record is missing")
		}
		r, err := x.openRecord(id, next, key, raw)
		if err != nil {
			return err
		}
		image.LastID = r.ID
		if next > image.SnapshotAt {
			r.Record = append(make([]byte, 0, len(r.Record)), r.Record...)
			image.Tail = append(image.Tail, r)
		}
		key, raw = c.Next()
	}
	return nil
}

// Threads implements [store.Journal].
func (j *Journal) Threads(ctx context.Context, after string, limit int) (ids []string, err error) {
	err = j.view(ctx, func(tx *txn) error {
		c, records := tx.bucket(bucketThreads).Cursor(), tx.bucket(bucketRecords).Cursor()
		from := nameKey(after)
		key, raw := c.Seek(from)
		if after == "" {
			key, raw = c.First()
			from = nil
		} else if bytes.Equal(key, from) {
			key, raw = c.Next()
			from = append(from, bytes.Repeat([]byte{0xff}, 9)...) // behind all its records
		}
		for ; key != nil && len(ids) < limit; key, raw = c.Next() {
			v, reason := openValue(kindThread, key, raw)
			if reason != "" {
				return tx.damage(bucketThreads, v.thread, v.revision, reason)
			}
			// Every thread has a record, so the next record is one of the next thread.
			if record, _ := records.Seek(from); !bytes.HasPrefix(record, key) {
				return tx.damage(bucketThreads, v.thread, v.revision, "a thread before this one has records and no entry, or this one has none")
			}
			ids = append(ids, v.thread)
			from = append(bytes.Clone(key), bytes.Repeat([]byte{0xff}, 9)...)
		}
		if record, _ := records.Seek(from); key == nil && record != nil && limit > 0 {
			return tx.damage(bucketThreads, "", 0, "the last thread that has records has no entry")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}
