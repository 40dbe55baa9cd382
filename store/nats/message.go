package nats

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal adds a checksum that also covers the name of what the bytes are about, so that a
// value that is found in the wrong place is not believed.
func seal(name string, b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, sum(name, b))
}

func sum(name string, b []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(name), castagnoli), castagnoli, b)
}

// unseal takes the checksum off.
func unseal(name string, b []byte) (rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, false
	}
	rest = b[:len(b)-4]
	return rest, binary.BigEndian.Uint32(b[len(b)-4:]) == sum(name, rest)
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

func appendBytes(b, p []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(p))), p...)
}

// reader reads what the append functions wrote. After the first fault it yields zeros, and
// end reports it.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) time() time.Time {
	sec, size := binary.Varint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return time.Time{}
	}
	r.rest = r.rest[size:]
	nsec := r.uint()
	if nsec >= 1e9 {
		r.bad = true
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}

// take returns the next n bytes without copying them.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	p := r.rest[:n:n]
	r.rest = r.rest[n:]
	return p
}

func (r *reader) bytes() []byte { return r.take(r.uint()) }

func (r *reader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) id() (id [16]byte) {
	copy(id[:], r.take(16))
	return id
}

func (r *reader) end() bool { return !r.bad && len(r.rest) == 0 }

// formatVersion is the first byte of every payload and state.
const formatVersion = 1

// What a message in a thread's journal is.
const (
	isCommit byte = iota + 1
	isLease       // the commit that took a lease
	isDeletion
)

// trailLength is how many earlier messages of its thread each message knows. It decides how
// many can be fetched at once.
const trailLength = 32

// head is what a message in a thread's journal says besides its record. The last one of a
// thread is the thread's head. The zero head is that of a thread that is not there.
type head struct {
	seq      uint64 // of the message
	kind     byte
	revision uint64
	epoch    uint64
	id       [16]byte
	time     time.Time
	// The newest snapshot before this message, and the message that has it.
	snapshotAt, snapshotSeq uint64
	// The messages of the revisions before this one, newest first.
	trail []uint64
}

// entry is a whole message of a thread's journal.
type entry struct {
	head
	hasSnapshot      bool
	record, snapshot blob
}

// blob is a record, a snapshot or the body of an effect: in the message itself, or in parts
// of their own.
type blob struct {
	inline []byte
	parts  int
	size   uint64
	sum    uint32 // CRC-32C of all
}

// newest returns the newest snapshot up to this message, and the message that has it.
func (e *entry) newest() (at, seq uint64) {
	if e.hasSnapshot {
		return e.revision, e.seq
	}
	return e.snapshotAt, e.snapshotSeq
}

// next is the head that comes after this one, but for its seq.
func (e *entry) next(kind byte, id [16]byte, epoch uint64, at time.Time) head {
	h := head{kind: kind, revision: e.revision + 1, epoch: epoch, id: id, time: at}
	h.snapshotAt, h.snapshotSeq = e.newest()
	if e.revision > 0 {
		h.trail = slices.Concat([]uint64{e.seq}, e.trail[:min(len(e.trail), trailLength-1)])
	}
	return h
}

func appendBlob(b []byte, v blob) []byte {
	b = binary.AppendUvarint(b, uint64(v.parts))
	if v.parts > 0 {
		b = binary.AppendUvarint(b, v.size)
		return binary.BigEndian.AppendUint32(b, v.sum)
	}
	return appendBytes(b, v.inline)
}

func (r *reader) blob() (v blob) {
	v.parts = int(min(r.uint(), 1<<20))
	if v.parts == 0 {
		v.inline = r.bytes()
		return v
	}
	v.size = r.uint()
	if p := r.take(4); p != nil {
		v.sum = binary.BigEndian.Uint32(p)
	}
	return v
}

// encode writes all but the message's own seq.
func (e *entry) encode(thread string) []byte {
	b := make([]byte, 0, 200+8*len(e.trail)+len(e.record.inline)+len(e.snapshot.inline))
	b = append(b, formatVersion, e.kind)
	b = binary.AppendUvarint(b, e.revision)
	b = binary.AppendUvarint(b, e.epoch)
	b = append(b, e.id[:]...)
	b = appendTime(b, e.time)
	b = binary.AppendUvarint(b, e.snapshotAt)
	b = binary.AppendUvarint(b, e.snapshotSeq)
	b = binary.AppendUvarint(b, uint64(len(e.trail)))
	above := uint64(0) // the first is whole, the others are distances
	for i, seq := range e.trail {
		if i == 0 {
			b = binary.AppendUvarint(b, seq)
		} else {
			b = binary.AppendUvarint(b, above-seq)
		}
		above = seq
	}
	b = appendBlob(b, e.record)
	if e.hasSnapshot {
		b = appendBlob(append(b, 1), e.snapshot)
	} else {
		b = append(b, 0)
	}
	return seal(thread, b)
}

// decodeEntry reads what encode wrote. It keeps the bytes.
func decodeEntry(thread string, seq uint64, b []byte) (*entry, bool) {
	b, ok := unseal(thread, b)
	r := &reader{rest: b}
	if !ok || r.byte() != formatVersion {
		return nil, false
	}
	e := &entry{}
	e.seq, e.kind = seq, r.byte()
	e.revision, e.epoch, e.id, e.time = r.uint(), r.uint(), r.id(), r.time()
	e.snapshotAt, e.snapshotSeq = r.uint(), r.uint()
	n := r.uint()
	if n > trailLength || e.kind < isCommit || e.kind > isDeletion {
		return nil, false
	}
	above := seq
	for i := range n {
		next := r.uint()
		if i > 0 {
			next = above - next
		}
		if next == 0 || next >= above {
			return nil, false
		}
		e.trail = append(e.trail, next)
		above = next
	}
	e.record = r.blob()
	e.hasSnapshot = r.byte() == 1
	if e.hasSnapshot {
		e.snapshot = r.blob()
	}
	ok = r.end() && (e.kind == isDeletion) == (e.revision == 0) && e.epoch <= e.revision && uint64(len(e.trail)) <= max(e.revision, 1)-1
	return e, ok
}

// lease is the payload of a lease's subject.
type lease struct {
	owner string
	epoch uint64
	free  bool // it was released
	until time.Time
	nonce [16]byte // of the call that wrote it
}

func (l lease) encode(thread string) []byte {
	b := []byte{formatVersion}
	b = binary.AppendUvarint(b, l.epoch)
	b = appendTime(b, l.until)
	b = append(b, l.nonce[:]...)
	b = appendBytes(b, []byte(l.owner))
	if l.free {
		return seal(thread, append(b, 1))
	}
	return seal(thread, append(b, 0))
}

func decodeLease(thread string, b []byte) (l lease, ok bool) {
	b, ok = unseal(thread, b)
	r := &reader{rest: b}
	if !ok || r.byte() != formatVersion {
		return l, false
	}
	l.epoch, l.until, l.nonce, l.owner = r.uint(), r.time(), r.id(), string(r.bytes())
	l.free = r.byte() == 1
	return l, r.end()
}

// The states of an effect.
const (
	isWaiting byte = iota + 1 // until its due time
	isClaimed                 // until its due time
	isDead
	isGone // settled; the message goes away by itself
)

// state is what a message of an effect's subject says in its header.
type state struct {
	kind      byte
	lane      string
	notBefore time.Time
	due       time.Time
	attempts  int
	bodySeq   uint64   // of the message that has the body; 0: this one
	body      blob     // whole in the message that has it, elsewhere the number of its parts
	of        uint64   // the claim that this settles; 0: none
	nonce     [16]byte // of the call that wrote it
}

func (s state) encode(name string) []byte {
	b := []byte{formatVersion, s.kind}
	b = appendTime(appendTime(b, s.notBefore), s.due)
	b = binary.AppendUvarint(b, uint64(s.attempts))
	b = binary.AppendUvarint(b, s.bodySeq)
	b = binary.AppendUvarint(b, uint64(s.body.parts))
	b = binary.AppendUvarint(b, s.body.size)
	b = binary.BigEndian.AppendUint32(b, s.body.sum)
	b = binary.AppendUvarint(b, s.of)
	b = append(b, s.nonce[:]...)
	b = appendBytes(b, []byte(s.lane))
	return seal(name, b)
}

func decodeState(name string, b []byte) (s state, ok bool) {
	b, ok = unseal(name, b)
	r := &reader{rest: b}
	if !ok || r.byte() != formatVersion {
		return s, false
	}
	s.kind, s.notBefore, s.due = r.byte(), r.time(), r.time()
	s.attempts, s.bodySeq = int(min(r.uint(), 1<<31-1)), r.uint()
	s.body.parts, s.body.size = int(min(r.uint(), 1<<20)), r.uint()
	if p := r.take(4); p != nil {
		s.body.sum = binary.BigEndian.Uint32(p)
	}
	s.of, s.nonce, s.lane = r.uint(), r.id(), string(r.bytes())
	return s, r.end() && s.kind >= isWaiting && s.kind <= isGone
}
