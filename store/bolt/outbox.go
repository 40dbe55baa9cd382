package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// copyEffects prepares the effects of a commit; their order is given out later.
func (j *Journal) copyEffects(c store.Commit, revision uint64) (effects []effect, size int) {
	if len(c.Effects) == 0 {
		return nil, 0
	}
	now := j.now().UTC().Round(0)
	for i, e := range c.Effects {
		f := effect{
			ref:       store.EffectRef{Thread: c.Thread, Revision: revision, Index: uint32(i)},
			notBefore: e.NotBefore, lane: e.Lane, body: bytes.Clone(e.Body),
		}
		f.schedule(e.NotBefore, now)
		effects = append(effects, f)
		size += len(e.Body) + 256
	}
	return effects, size
}

// schedule says from when on an effect can be claimed.
func (e *effect) schedule(at, now time.Time) {
	e.where, e.due = isReady, now
	if at.After(now) {
		e.where, e.due = isWaiting, at
	}
}

// effect returns an entry of the outbox; found is false for one that is not there. Its
// body is not copied.
func (x *txn) effect(ref store.EffectRef) (e effect, found bool, err error) {
	key := effectKey(ref.Thread, ref.Revision, ref.Index)
	raw := x.bucket(bucketEffects).Get(key)
	if raw == nil {
		return e, false, nil
	}
	e, err = x.openEffect(ref, key, raw)
	return e, true, err
}

func (x *txn) openEffect(ref store.EffectRef, key, raw []byte) (effect, error) {
	payload, err := x.open(bucketEffects, kindEffect, key, raw, ref.Thread, ref.Revision)
	if err != nil {
		return effect{}, err
	}
	e, ok := decodeEffect(ref, payload)
	if !ok {
		return e, x.damage(bucketEffects, ref.Thread, ref.Revision, "the effect makes no sense")
	}
	return e, nil
}

// effects returns those entries that are there.
func (x *txn) effects(refs []store.EffectRef) (effects []effect, err error) {
	for i, ref := range refs {
		if len(ref.Thread) > MaxName || slices.Contains(refs[:i], ref) {
			continue
		}
		e, found, err := x.effect(ref)
		if err != nil {
			return nil, err
		}
		if found {
			effects = append(effects, e)
		}
	}
	return effects, nil
}

// effectsOf returns all entries of a thread.
func (x *txn) effectsOf(id string) (effects []effect, err error) {
	prefix := nameKey(id)
	c := x.bucket(bucketEffects).Cursor()
	for key, raw := c.Seek(prefix); bytes.HasPrefix(key, prefix); key, raw = c.Next() {
		rest := key[len(prefix):]
		if len(rest) != 12 {
			return nil, x.damage(bucketEffects, id, 0, "the key has another length")
		}
		ref := store.EffectRef{Thread: id, Revision: binary.BigEndian.Uint64(rest), Index: binary.BigEndian.Uint32(rest[8:])}
		e, err := x.openEffect(ref, key, raw)
		if err != nil {
			return nil, err
		}
		effects = append(effects, e)
	}
	return effects, nil
}

func (x *txn) addEffects(effects []effect) error {
	if len(effects) == 0 {
		return nil
	}
	n, err := x.counters()
	for _, e := range effects {
		n.order++
		e.order = n.order
		err = errors.Join(err, x.putEffect(e))
	}
	return errors.Join(err, x.putCounters(n))
}

func (x *txn) putEffect(e effect) error {
	key := effectKey(e.ref.Thread, e.ref.Revision, e.ref.Index)
	bucket, at := e.index()
	return errors.Join(
		x.bucket(bucketEffects).Put(key, e.encode(key)),
		x.bucket(bucket).Put(at, encodeIndex(at, e.ref)))
}

func (x *txn) dropEffects(effects []effect) (err error) {
	for _, e := range effects {
		err = errors.Join(err, x.dropIndex(e), x.bucket(bucketEffects).Delete(effectKey(e.ref.Thread, e.ref.Revision, e.ref.Index)))
	}
	return err
}

func (x *txn) dropIndex(e effect) error {
	bucket, at := e.index()
	return x.bucket(bucket).Delete(at)
}

// Claim implements [store.Outbox]. Effects come in the order of their commits. One
// that is claimed or waits does not hold up those behind it.
func (j *Journal) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]store.Claim, error) {
	if j.outbox != nil {
		return nil, j.outbox
	}
	if err := checkName("lane", lane); err != nil {
		return nil, err
	}
	now := j.now().UTC().Round(0)
	claims := new([]store.Claim)
	err := j.update(ctx, 4096, func(tx *txn) (bool, error) {
		*claims = nil
		due, err := tx.due(lane, now, limit)
		if err != nil || len(due) == 0 {
			return false, err
		}
		n, err := tx.counters()
		if err != nil {
			return false, err
		}
		for _, e := range due {
			err = errors.Join(err, tx.dropIndex(e))
			n.token++
			e.token, e.where, e.due = n.token, isWaiting, now.Add(ttl)
			e.attempts++
			e.body = bytes.Clone(e.body)
			err = errors.Join(err, tx.putEffect(e))
			*claims = append(*claims, store.Claim{Ref: e.ref, Effect: e.journal(), Attempts: int(e.attempts), Token: e.token})
		}
		return true, errors.Join(err, tx.putCounters(n))
	})
	if err != nil {
		return nil, err
	}
	return *claims, nil
}

// journal returns what the commit emitted. The body is not copied.
func (e effect) journal() store.Effect {
	return store.Effect{Lane: e.lane, NotBefore: e.notBefore, Body: e.body}
}

// due returns the first effects of a lane that can be handed out. It looks at as many
// ready ones as are wanted and at all that waited and are due by now.
func (x *txn) due(lane string, now time.Time, limit int) (effects []effect, err error) {
	type candidate struct {
		bucket, key, raw []byte
		order            uint64
	}
	var all []candidate
	prefix := nameKey(lane)
	ready := x.bucket(bucketReady).Cursor()
	for key, raw := ready.Seek(prefix); bytes.HasPrefix(key, prefix) && len(all) < limit; key, raw = ready.Next() {
		all = append(all, candidate{bucketReady, key, raw, lastOrder(key)})
	}
	end := appendTime(bytes.Clone(prefix), now.Add(1))
	waiting := x.bucket(bucketWaiting).Cursor()
	for key, raw := waiting.Seek(prefix); key != nil && limit > 0 && bytes.Compare(key, end) < 0; key, raw = waiting.Next() {
		all = append(all, candidate{bucketWaiting, key, raw, lastOrder(key)})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	for _, c := range all[:min(len(all), max(limit, 0))] {
		e, err := x.indexed(c.bucket, c.key, c.raw)
		if err != nil {
			return nil, err
		}
		effects = append(effects, e)
	}
	return effects, nil
}

// indexed returns the effect of an index entry. Its body is not copied.
func (x *txn) indexed(bucket, key, raw []byte) (e effect, err error) {
	v, reason := openValue(kindIndex, key, raw)
	ref, ok := decodeIndex(v)
	if reason != "" || !ok {
		return e, x.damage(bucket, v.thread, v.revision, "the index entry makes no sense: "+reason)
	}
	e, found, err := x.effect(ref)
	if err != nil {
		return e, err
	}
	if in, at := e.index(); !found || !bytes.Equal(in, bucket) || !bytes.Equal(at, key) {
		return e, x.damage(bucket, v.thread, v.revision, "the index entry and the effect do not fit")
	}
	return e, nil
}

// lastOrder returns the order at the end of an index key.
func lastOrder(key []byte) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key[len(key)-8:])
}

// Settle implements [store.Outbox]. A claim that ran out still counts until somebody
// else claims the effect. An effect that is gone is settled, so to settle it as done
// again is no error, and neither is to give it up again.
func (j *Journal) Settle(ctx context.Context, c store.Claim, how store.Settlement) error {
	if err := errors.Join(checkName("thread id", c.Ref.Thread), j.checkSize("settlement's error", []byte(how.Error))); err != nil {
		return err
	}
	done := !how.Dead && how.RetryAt.IsZero()
	now := j.now().UTC().Round(0)
	return j.update(ctx, 1024, func(tx *txn) (bool, error) {
		e, found, err := tx.effect(c.Ref)
		switch {
		case err != nil:
			return false, err
		case !found && done:
			return false, nil
		case !found || e.token != c.Token || e.token == 0:
			return false, fmt.Errorf("bolt: effect %s was settled or claimed by somebody else: %w", c.Ref, store.ErrFenced)
		case e.where == isDead && !how.Dead:
			return false, fmt.Errorf("bolt: effect %s was given up; requeue it: %w", c.Ref, store.ErrFenced)
		case e.where == isDead:
			return false, nil
		case done:
			return true, tx.dropEffects([]effect{e})
		}
		drop := tx.dropIndex(e)
		e.body = bytes.Clone(e.body)
		e.err = how.Error
		if how.Dead {
			e.where = isDead
		} else {
			e.token = 0
			e.schedule(how.RetryAt, now)
		}
		return true, errors.Join(drop, tx.putEffect(e))
	})
}
