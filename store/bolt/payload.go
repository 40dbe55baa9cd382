package bolt

import (
	"encoding/binary"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// counters are the numbers that the store gave out last.
type counters struct {
	order uint64 // of an effect
	token uint64 // of a claim
}

func (c counters) encode() []byte {
	v := newValue(kindCounters, "", 0, 16)
	v = binary.BigEndian.AppendUint64(v, c.order)
	v = binary.BigEndian.AppendUint64(v, c.token)
	return seal(keyCounters, v)
}

func decodeCounters(p []byte) (c counters, ok bool) {
	r := reader{p}
	c.order, c.token = r.uint64(), r.uint64()
	return c, r.end()
}

// thread is what the store knows of a thread besides its records. Its revision is in
// the value's header.
type thread struct {
	revision   uint64
	epoch      uint64
	snapshotAt uint64
	first      uint64 // oldest record that is kept
	leaseEpoch uint64 // 0: nobody has the lease
	until      time.Time
	lastID     [16]byte
	owner      string
}

func (t thread) encode(key []byte, id string) []byte {
	v := newValue(kindThread, id, t.revision, 60+len(t.owner))
	for _, n := range []uint64{t.epoch, t.snapshotAt, t.first, t.leaseEpoch} {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	v = appendTime(v, t.until)
	v = append(v, t.lastID[:]...)
	return seal(key, append(v, t.owner...))
}

func decodeThread(revision uint64, p []byte) (t thread, ok bool) {
	r := reader{p}
	t.revision = revision
	t.epoch, t.snapshotAt, t.first, t.leaseEpoch = r.uint64(), r.uint64(), r.uint64(), r.uint64()
	t.until, t.lastID = r.time(), r.id()
	if r.rest == nil {
		return t, false
	}
	t.owner = string(r.rest)
	return t, t.revision > 0 && t.first > 0 && t.first <= t.revision && t.snapshotAt <= t.revision &&
		(t.first == 1 || t.first <= t.snapshotAt) && t.epoch <= t.revision
}

func encodeRecord(key []byte, id string, r store.Record) []byte {
	v := newValue(kindRecord, id, r.Revision, 16+timeSize+len(r.Record))
	v = append(v, r.ID[:]...)
	v = appendTime(v, r.Time)
	return seal(key, append(v, r.Record...))
}

// decodeRecord does not copy the record's bytes.
func decodeRecord(revision uint64, p []byte) (rec store.Record, ok bool) {
	r := reader{p}
	rec.Revision, rec.ID, rec.Time, rec.Record = revision, r.id(), r.time(), r.rest
	return rec, r.rest != nil
}

func encodeSnapshot(key []byte, id string, revision uint64, at time.Time, state []byte) []byte {
	v := newValue(kindSnapshot, id, revision, timeSize+len(state))
	return seal(key, append(appendTime(v, at), state...))
}

// decodeSnapshot does not copy the state.
func decodeSnapshot(p []byte) (at time.Time, state []byte, ok bool) {
	r := reader{p}
	at = r.time()
	return at, r.rest, r.rest != nil
}

// The places of an effect.
const (
	isReady uint8 = iota + 1
	isWaiting
	isDead
)

// effect is an outbox entry. Where it is decides which bucket has its index entry.
type effect struct {
	ref       store.EffectRef
	where     uint8
	attempts  uint32
	order     uint64
	token     uint64 // of the claim that runs or ran out; 0: none
	due       time.Time
	notBefore time.Time
	lane      string
	err       string
	body      []byte
}

func (e effect) encode(key []byte) []byte {
	v := newValue(kindEffect, e.ref.Thread, e.ref.Revision, 64+len(e.lane)+len(e.err)+len(e.body))
	v = append(v, e.where)
	v = binary.BigEndian.AppendUint32(v, e.attempts)
	v = binary.BigEndian.AppendUint64(v, e.order)
	v = binary.BigEndian.AppendUint64(v, e.token)
	v = appendTime(appendTime(v, e.due), e.notBefore)
	v = binary.BigEndian.AppendUint32(v, uint32(len(e.lane)))
	v = append(v, e.lane...)
	v = binary.BigEndian.AppendUint32(v, uint32(len(e.err)))
	v = append(v, e.err...)
	return seal(key, append(v, e.body...))
}

// decodeEffect does not copy the body.
func decodeEffect(ref store.EffectRef, p []byte) (e effect, ok bool) {
	r := reader{p}
	e.ref = ref
	e.where, e.attempts, e.order, e.token = r.uint8(), r.uint32(), r.uint64(), r.uint64()
	e.due, e.notBefore = r.time(), r.time()
	e.lane = string(r.take(int(r.uint32())))
	e.err = string(r.take(int(r.uint32())))
	e.body = r.rest
	return e, r.rest != nil && e.where >= isReady && e.where <= isDead
}

// index returns the bucket and the key of the effect's index entry.
func (e effect) index() (bucket, key []byte) {
	switch e.where {
	case isReady:
		return bucketReady, orderKey(e.lane, e.order)
	case isWaiting:
		return bucketWaiting, dueKey(e.lane, e.due, e.order)
	default:
		return bucketDead, orderKey(e.lane, e.order)
	}
}

func encodeIndex(key []byte, ref store.EffectRef) []byte {
	v := newValue(kindIndex, ref.Thread, ref.Revision, 4)
	return seal(key, binary.BigEndian.AppendUint32(v, ref.Index))
}

func decodeIndex(v value) (ref store.EffectRef, ok bool) {
	r := reader{v.payload}
	return store.EffectRef{Thread: v.thread, Revision: v.revision, Index: r.uint32()}, r.end()
}

// reader reads a payload. Its rest is nil once it was too short.
type reader struct{ rest []byte }

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest = nil
		return nil
	}
	head := r.rest[:n]
	r.rest = r.rest[n:]
	return head
}

func (r *reader) end() bool { return r.rest != nil && len(r.rest) == 0 }

func (r *reader) uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) time() time.Time {
	if b := r.take(timeSize); b != nil {
		return readTime(b)
	}
	return time.Time{}
}

func (r *reader) id() (id [16]byte) {
	copy(id[:], r.take(16))
	return id
}
