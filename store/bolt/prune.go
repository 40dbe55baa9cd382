package bolt

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// point is a snapshot, or the beginning of a thread, from which on it can be kept.
type point struct {
	revision uint64
	time     time.Time
}

// Prune implements [store.Journal]. The beginning of a thread counts as a snapshot of
// the time of its first record, so that a policy that keeps more snapshots than there
// are, or only drops what is older than the thread, drops no record. The file does not
// become smaller; its pages are used again.
func (j *Journal) Prune(ctx context.Context, id string, p store.PrunePolicy) error {
	return j.update(ctx, 1<<16, func(tx *txn) (bool, error) {
		t, found, err := tx.thread(id)
		if err != nil || !found {
			return false, err
		}
		points, err := tx.points(id, t)
		if err != nil {
			return false, err
		}
		oldest := oldestPoint(p, points)
		if oldest == 0 || oldest == t.first && oldest == points[0].revision {
			return false, nil
		}
		snapshots := tx.keysBelow(bucketSnapshots, id, oldest)
		// The record of the snapshot's own revision stays: it has the commit's id.
		records := tx.keysBelow(bucketRecords, id, oldest)
		t.first = oldest
		return true, errors.Join(
			tx.remove(bucketSnapshots, snapshots),
			tx.remove(bucketRecords, records),
			tx.putThread(id, t))
	})
}

// oldestPoint applies a policy: it returns the oldest revision to keep. There is at
// least one point, and the newest always stays.
func oldestPoint(p store.PrunePolicy, points []point) uint64 {
	keep, newest := 0, len(points)-1
	if p.KeepSnapshots > 0 {
		keep = max(0, newest+1-p.KeepSnapshots)
	}
	for !p.Before.IsZero() && keep < newest && points[keep].time.Before(p.Before) {
		keep++
	}
	return points[keep].revision
}

// points lists the beginning of a thread, if it is still there, and its snapshots.
func (x *txn) points(id string, t thread) (points []point, err error) {
	if t.first == 1 {
		r, err := x.record(id, 1)
		if err != nil {
			return nil, err
		}
		points = append(points, point{0, r.Time})
	}
	prefix := nameKey(id)
	c := x.bucket(bucketSnapshots).Cursor()
	for key, raw := c.Seek(prefix); bytes.HasPrefix(key, prefix); key, raw = c.Next() {
		revision, _ := revisionOf(key, prefix)
		payload, err := x.open(bucketSnapshots, kindSnapshot, key, raw, id, revision)
		if err != nil {
			return nil, err
		}
		at, _, ok := decodeSnapshot(payload)
		if !ok {
			return nil, x.damage(bucketSnapshots, id, revision, "the snapshot is too short")
		}
		points = append(points, point{revision, at})
	}
	if len(points) == 0 || points[len(points)-1].revision != t.snapshotAt {
		return nil, x.damage(bucketSnapshots, id, t.snapshotAt, "the newest snapshot is missing")
	}
	return points, nil
}

// keysBelow returns the keys of a thread with revisions below one.
func (x *txn) keysBelow(bucket []byte, id string, revision uint64) (keys [][]byte) {
	prefix, end := nameKey(id), revisionKey(id, revision)
	c := x.bucket(bucket).Cursor()
	for key, _ := c.Seek(prefix); key != nil && bytes.Compare(key, end) < 0; key, _ = c.Next() {
		keys = append(keys, bytes.Clone(key))
	}
	return keys
}

// Delete implements [store.Journal]. It works on a thread with damaged records, not on
// one with damaged effects.
func (j *Journal) Delete(ctx context.Context, id string) error {
	prefix := nameKey(id)
	return j.update(ctx, 1<<16, func(tx *txn) (bool, error) {
		effects, err := tx.effectsOf(id)
		if err != nil {
			return false, err
		}
		entries, records, snapshots := tx.keys(bucketThreads, prefix), tx.keys(bucketRecords, prefix), tx.keys(bucketSnapshots, prefix)
		if len(entries)+len(records)+len(snapshots)+len(effects) == 0 {
			return false, nil
		}
		return true, errors.Join(
			tx.remove(bucketThreads, entries),
			tx.remove(bucketRecords, records),
			tx.remove(bucketSnapshots, snapshots),
			tx.dropEffects(effects))
	})
}
