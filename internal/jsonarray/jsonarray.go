package jsonarray

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Join returns the array of the parts, each of which must be JSON.
func Join(parts ...[]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
}

// Split returns the parts of an array, which are the caller's. Null is no array.
func Split(raw []byte) ([]json.RawMessage, error) {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil, errors.New("want a JSON array, have null")
	}
	var items []json.RawMessage
	err := json.Unmarshal(raw, &items)
	return items, err
}

// Encode returns the array of the values, or of [key, value] pairs, whose keys are
// written with encoding/json. encode must return JSON. The error names the key.
func Encode[K, V any](all iter.Seq2[K, V], encode func(V) ([]byte, error), pairs bool) ([]byte, error) {
	var parts [][]byte
	for k, v := range all {
		part, err := encode(v)
		if err == nil && pairs {
			var key []byte
			key, err = json.Marshal(k)
			part = Join(key, part)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %v: %w", k, err)
		}
		parts = append(parts, part)
	}
	return Join(parts...), nil
}

// Decode decodes each part of an array. The error says which part was at fault.
func Decode[T any](raw []byte, decode func([]byte) (T, error)) ([]T, error) {
	parts, err := Split(raw)
	items := make([]T, len(parts))
	for i, part := range parts {
		if items[i], err = decode(part); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return items, err
}

// Pair decodes a [key, value] pair, its key with encoding/json.
func Pair[K, V any](raw []byte, decode func([]byte) (V, error)) (key K, value V, err error) {
	pair, err := Split(raw)
	if err == nil && len(pair) != 2 {
		err = fmt.Errorf("it has %d parts, want a key and a value", len(pair))
	}
	if err == nil {
		err = json.Unmarshal(pair[0], &key)
	}
	if err == nil {
		value, err = decode(pair[1])
	}
	return key, value, err
}

// Walk calls member, which reads one member, at each of the array or object that
// comes next in dec. With an error it returns where the member begins that it is
// about, in bytes of the input.
func Walk(dec *json.Decoder, open json.Delim, member func() error) (at int64, err error) {
	at = dec.InputOffset()
	token, err := dec.Token()
	if err == nil && token != open {
		err = fmt.Errorf("want %v, have %v", open, token)
	}
	for err == nil && dec.More() {
		at = dec.InputOffset()
		err = member()
	}
	if err == nil {
		_, err = dec.Token()
	}
	return at, err
}

// Members is Walk for an object: it calls member with the name of each, to read its
// value. A name that stands twice is an error.
func Members(dec *json.Decoder, member func(name string) error) (at int64, err error) {
	seen := map[json.Token]bool{}
	return Walk(dec, '{', func() error {
		name, err := dec.Token()
		if err == nil && seen[name] {
			err = fmt.Errorf("field %q stands twice", name)
		}
		if err != nil {
			return err
		}
		seen[name] = true
		return member(name.(string)) // a member's name is nothing else
	})
}
