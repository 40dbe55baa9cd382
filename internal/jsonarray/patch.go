package jsonarray

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Append returns the array with the parts of another one behind its own.
func Append(raw, added []byte) ([]byte, error) {
	return Replace(raw, added, []byte("[]"), func([]byte) []byte { return nil })
}

// Replace returns the array with the parts of added behind those of its own parts whose
// key none of added has, and none of the array of keys in gone is. A part for which key
// returns nil stays.
func Replace(raw, added, gone []byte, key func(part []byte) []byte) ([]byte, error) {
	var parts, more, keys []json.RawMessage
	var err error
	for _, read := range []struct {
		from []byte
		to   *[]json.RawMessage
	}{{raw, &parts}, {added, &more}, {gone, &keys}} {
		if *read.to, err = Split(read.from); err != nil {
			return nil, err
		}
	}
	for _, part := range more {
		keys = append(keys, key(part))
	}
	replaced := func(part json.RawMessage) bool {
		k := key(part)
		same := func(other json.RawMessage) bool { return bytes.Equal(k, other) }
		return k != nil && slices.ContainsFunc(keys, same)
	}
	var all [][]byte
	for _, part := range slices.Concat(slices.DeleteFunc(parts, replaced), more) {
		all = append(all, part)
	}
	return Join(all...), nil
}

// PairKey is the key of a [key, value] pair, and any other part itself.
func PairKey(part []byte) []byte {
	if pair, err := Split(part); err == nil && len(pair) == 2 {
		return pair[0]
	}
	return part
}
