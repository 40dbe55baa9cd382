package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Codec turns values into JSON and back, for Export and Import. The zero
// Codec uses encoding/json. Encode must return valid JSON (put binary data
// into a JSON string); Decode must not keep its argument. Both must be safe
// for concurrent use. A value given to Encode must not be changed.
type Codec[V any] struct {
	Encode func(V) ([]byte, error)
	Decode func([]byte) (V, error)
}

func (c Codec[V]) encode(v V) ([]byte, error) {
	if c.Encode == nil {
		return json.Marshal(v)
	}
	raw, err := c.Encode(v)
	if err != nil {
		return nil, err
	}
	return compact(raw)
}

func (c Codec[V]) decode(raw []byte) (V, error) {
	if c.Decode != nil {
		return c.Decode(bytes.Clone(raw))
	}
	var v V
	err := json.Unmarshal(raw, &v)
	return v, err
}

// decode decodes raw of a version that is not newer than the key's.
func (o Options[V]) decode(raw []byte, version int) (V, error) {
	switch {
	case version == o.Version:
		return o.Codec.decode(raw)
	case o.Migrate == nil:
		var zero V
		return zero, fmt.Errorf("version %d is older than %d and the key has no Migrate function", version, o.Version)
	}
	return o.Migrate(version, bytes.Clone(raw))
}

func refuseNewer(version, known int) error {
	if version <= known {
		return nil
	}
	return fmt.Errorf("%w: it is version %d, this program knows %d", ErrNewerVersion, version, known)
}

// compact checks that raw is one JSON value and takes the white space out.
func compact(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return b.Bytes(), nil
}

// entry is one entry of a table or map.
type entry[K cmp.Ordered, V any] struct {
	key   K
	value V
}

// encodeAll writes a JSON array of the values, or of [key, value] pairs.
func encodeAll[K, V any](all iter.Seq2[K, V], c Codec[V], pairs bool) ([]byte, error) {
	var parts [][]byte
	for k, v := range all {
		part, err := c.encode(v)
		if err == nil && pairs {
			var key []byte
			key, err = json.Marshal(k)
			part = array(key, part)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %v: %w", k, err)
		}
		parts = append(parts, part)
	}
	return array(parts...), nil
}

func array(parts ...[]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
}

// decodeAll decodes each element of a JSON array.
func decodeAll[T any](raw []byte, decode func([]byte) (T, error)) ([]T, error) {
	parts, err := elements(raw)
	items := make([]T, len(parts))
	for i, part := range parts {
		if items[i], err = decode(part); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return items, err
}

// decodeEntries decodes an array of values that own their keys, or without own
// of [key, value] pairs.
func decodeEntries[K cmp.Ordered, V any](raw []byte, decode func([]byte) (V, error), own func(V) K) ([]entry[K, V], error) {
	return decodeAll(raw, func(raw []byte) (e entry[K, V], err error) {
		if own != nil {
			e.value, err = decode(raw)
			e.key = own(e.value)
			return e, err
		}
		pair, err := elements(raw)
		if err == nil && len(pair) != 2 {
			err = fmt.Errorf("it has %d parts, want a key and a value", len(pair))
		}
		if err == nil {
			err = json.Unmarshal(pair[0], &e.key)
		}
		if err == nil {
			e.value, err = decode(pair[1])
		}
		return e, err
	})
}

// elements splits a JSON array.
func elements(raw []byte) ([]json.RawMessage, error) {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil, errors.New("want a JSON array, have null")
	}
	var items []json.RawMessage
	err := json.Unmarshal(raw, &items)
	return items, err
}
