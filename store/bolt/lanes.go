package bolt

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Lanes implements [store.Queue]. It reads two entries of the index a lane, however many
// effects there are.
func (j *Journal) Lanes(ctx context.Context, prefix string) (names []string, err error) {
	err = j.look(ctx, func(tx *txn) error {
		for _, bucket := range [][]byte{bucketReady, bucketWaiting} {
			if names, err = tx.lanes(bucket, prefix, names); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// lanes adds the lanes of one bucket of the index. It goes from the first entry of a
// lane to where the next lane begins.
func (x *txn) lanes(bucket []byte, prefix string, names []string) ([]string, error) {
	start := nameKey(prefix)
	start = start[:len(start)-2] // without its end it begins the keys of all names that start with it
	c := x.bucket(bucket).Cursor()
	key, raw := c.Seek(start)
	for key != nil && bytes.HasPrefix(key, start) {
		if _, err := x.indexed(bucket, key, raw); err != nil {
			return nil, err
		}
		name, _, ok := cutName(key)
		if !ok {
			return nil, x.damage(bucket, "", 0, "the key makes no sense")
		}
		names = append(names, name)
		next := nameKey(name)
		next[len(next)-1]++ // behind all keys of this lane, before those of the next
		key, raw = c.Seek(next)
	}
	return names, nil
}

// Depth implements [store.Queue]. It looks at all effects of the lane.
func (j *Journal) Depth(ctx context.Context, lane string) (d store.Depth, err error) {
	now := j.now().UTC().Round(0)
	err = j.look(ctx, func(tx *txn) error {
		for _, bucket := range [][]byte{bucketReady, bucketWaiting, bucketDead} {
			prefix := nameKey(lane)
			c := tx.bucket(bucket).Cursor()
			for key, raw := c.Seek(prefix); bytes.HasPrefix(key, prefix); key, raw = c.Next() {
				e, err := tx.indexed(bucket, key, raw)
				if err != nil {
					return err
				}
				if e.due.IsZero() { // it is from a version that did not write since when a ready one is
					e.due = tx.committed(e.ref)
				}
				e.count(&d, now)
			}
		}
		return nil
	})
	if err != nil {
		return store.Depth{}, err
	}
	return d, nil
}

// count adds an effect to what is in its lane.
func (e effect) count(d *store.Depth, now time.Time) {
	switch {
	case e.where == isDead:
		d.Dead++
	case e.where == isReady || !e.due.After(now):
		d.Due++
		if d.Oldest.IsZero() || !e.due.IsZero() && e.due.Before(d.Oldest) {
			d.Oldest = e.due
		}
	case e.token != 0:
		d.Claimed++
	default:
		d.Waiting++
	}
}

// committed returns the time of an effect's commit; zero for one that is not kept any
// more.
func (x *txn) committed(ref store.EffectRef) time.Time {
	if x.bucket(bucketRecords).Get(revisionKey(ref.Thread, ref.Revision)) == nil {
		return time.Time{}
	}
	r, _ := x.record(ref.Thread, ref.Revision) // one that is damaged is reported by who needs it
	return r.Time
}

// Dead implements [store.Queue].
func (j *Journal) Dead(ctx context.Context, lane string, limit int) (effects []store.DeadEffect, err error) {
	err = j.look(ctx, func(tx *txn) error {
		prefix := nameKey(lane)
		c := tx.bucket(bucketDead).Cursor()
		for key, raw := c.Seek(prefix); bytes.HasPrefix(key, prefix) && len(effects) < limit; key, raw = c.Next() {
			e, err := tx.indexed(bucketDead, key, raw)
			if err != nil {
				return err
			}
			f := e.journal()
			f.Body = bytes.Clone(f.Body)
			effects = append(effects, store.DeadEffect{Ref: e.ref, Effect: f, Attempts: int(e.attempts), Error: e.err})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return effects, nil
}

// look runs a read of the outbox.
func (j *Journal) look(ctx context.Context, fn func(tx *txn) error) error {
	if j.outbox != nil {
		return j.outbox
	}
	return j.view(ctx, fn)
}

// Requeue implements [store.Queue]. The effect takes the place that its commit has among
// those of its lane.
func (j *Journal) Requeue(ctx context.Context, ref store.EffectRef) error {
	if j.outbox != nil {
		return j.outbox
	}
	missing := fmt.Errorf("bolt: effect %s: %w", ref, store.ErrNoEffect)
	if len(ref.Thread) > MaxName {
		return missing
	}
	now := j.now().UTC().Round(0)
	return j.update(ctx, 1024, func(tx *txn) (bool, error) {
		e, found, err := tx.effect(ref)
		if err != nil {
			return false, err
		}
		if !found || e.where != isDead {
			return false, missing
		}
		bucket, key := e.index()
		if _, err := tx.indexed(bucket, key, tx.bucket(bucket).Get(key)); err != nil {
			return false, err
		}
		if err := tx.dropIndex(e); err != nil {
			return true, err
		}
		e.body = bytes.Clone(e.body)
		e.attempts, e.token, e.err = 0, 0, ""
		e.schedule(now, now)
		return true, tx.putEffect(e)
	})
}
