package bolt

import (
	"encoding/binary"
	"hash/crc32"
)

// kind is the bucket that a value is for.
type kind uint8

const (
	kindCounters kind = iota + 1
	kindThread
	kindRecord
	kindSnapshot
	kindEffect
	kindIndex // in ready, waiting and dead
)

// A value is a header and a payload:
//
//	0      format, 1
//	1      kind
//	2..5   CRC-32C of the key and of the value without these four bytes
//	6..9   length of the payload
//	10..17 revision
//	18..19 length of the thread's id
//	20..   the thread's id, then the payload
//
// All numbers are big-endian. The checksum covers the key, so that a value that turns
// up under another key is found out, and a key that was damaged too.
const (
	valueFormat = 1
	valueHeader = 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newValue makes the header of a value with room for the payload, which is to be
// appended before seal is called.
func newValue(k kind, thread string, revision uint64, room int) []byte {
	v := make([]byte, valueHeader, valueHeader+len(thread)+room)
	v[0], v[1] = valueFormat, byte(k)
	binary.BigEndian.PutUint64(v[10:], revision)
	binary.BigEndian.PutUint16(v[18:], uint16(len(thread)))
	return append(v, thread...)
}

// seal completes a value for its key.
func seal(key, value []byte) []byte {
	thread := int(binary.BigEndian.Uint16(value[18:]))
	binary.BigEndian.PutUint32(value[6:], uint32(len(value)-valueHeader-thread))
	binary.BigEndian.PutUint32(value[2:], checksum(key, value))
	return value
}

func checksum(key, value []byte) uint32 {
	sum := crc32.Update(0, castagnoli, key)
	sum = crc32.Update(sum, castagnoli, value[:2])
	return crc32.Update(sum, castagnoli, value[6:])
}

// value is one that was read. Its payload is that of the file: copy what leaves a
// transaction.
type value struct {
	thread   string
	revision uint64
	payload  []byte
}

// openValue checks a value. On failure reason is not empty, and thread and revision
// are what the header claims, if it can be read.
func openValue(k kind, key, raw []byte) (v value, reason string) {
	if len(raw) < valueHeader {
		return v, "the value is shorter than its header"
	}
	v.revision = binary.BigEndian.Uint64(raw[10:])
	rest := raw[valueHeader:]
	n := int(binary.BigEndian.Uint16(raw[18:]))
	if n > len(rest) || n > MaxName {
		return v, "the value is shorter than its thread id"
	}
	v.thread, v.payload = string(rest[:n]), rest[n:]
	switch {
	case checksum(key, raw) != binary.BigEndian.Uint32(raw[2:]):
		return v, "the checksum does not fit"
	case raw[0] != valueFormat:
		return v, "the value has a format that this version does not know"
	case kind(raw[1]) != k:
		return v, "the value belongs into another bucket"
	case uint32(len(v.payload)) != binary.BigEndian.Uint32(raw[6:]):
		return v, "the value has another length than its header says"
	}
	return v, ""
}
