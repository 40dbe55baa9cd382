package bolt

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Acquire implements [store.Leaser].
func (j *Journal) Acquire(ctx context.Context, id, owner string, ttl time.Duration) (store.Lease, error) {
	if err := errors.Join(checkName("thread id", id), checkName("owner", owner)); err != nil {
		return store.Lease{}, err
	}
	now := j.now().UTC().Round(0)
	var commit [16]byte
	_, _ = rand.Read(commit[:]) // never fails
	lease := new(store.Lease)
	err := j.update(ctx, 256, func(tx *txn) (bool, error) {
		t, found, err := tx.thread(id)
		if err == nil && found {
			err = tx.checkTip(id, t)
		}
		if err != nil {
			return false, err
		}
		if t.leaseEpoch != 0 && t.owner != owner && now.Before(t.until) {
			return false, &store.LeaseHeld{Thread: id, Owner: t.owner, Until: t.until}
		}
		t.revision++
		t.first = max(t.first, 1)
		t.epoch, t.leaseEpoch = t.revision, t.revision
		t.lastID, t.owner, t.until = commit, owner, now.Add(ttl)
		*lease = store.Lease{Thread: id, Owner: owner, Epoch: t.epoch, Until: t.until}
		key := revisionKey(id, t.revision)
		record := encodeRecord(key, id, store.Record{Revision: t.revision, ID: commit, Time: now})
		return true, errors.Join(tx.bucket(bucketRecords).Put(key, record), tx.putThread(id, t))
	})
	if err != nil {
		return store.Lease{}, err
	}
	return *lease, nil
}

// Renew implements [store.Leaser]. A lease that ran out can be renewed as long as
// nobody else took it; one that was released cannot.
func (j *Journal) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	now := j.now().UTC().Round(0)
	l.Until = now.Add(ttl)
	err := j.update(ctx, 256, func(tx *txn) (bool, error) {
		t, _, err := tx.thread(l.Thread)
		if err != nil {
			return false, err
		}
		if l.Epoch == 0 || t.leaseEpoch != l.Epoch || t.owner != l.Owner {
			return false, errFenced(l.Thread, l.Epoch, t.epoch)
		}
		t.until = l.Until
		return true, tx.putThread(l.Thread, t)
	})
	if err != nil {
		return store.Lease{}, err
	}
	return l, nil
}

// Release implements [store.Leaser]. The epoch stays, so that whoever comes next has to
// acquire the lease or to know the epoch from a load.
func (j *Journal) Release(ctx context.Context, l store.Lease) error {
	return j.update(ctx, 256, func(tx *txn) (bool, error) {
		t, _, err := tx.thread(l.Thread)
		if err != nil {
			return false, err
		}
		if l.Epoch == 0 || t.epoch != l.Epoch {
			return false, errFenced(l.Thread, l.Epoch, t.epoch)
		}
		t.leaseEpoch, t.owner, t.until = 0, "", time.Time{}
		return true, tx.putThread(l.Thread, t)
	})
}
