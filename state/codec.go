package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/ddd26017/fixpoint/internal/jsonarray"
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
	return jsonarray.Encode(all, c.encode, pairs)
}

// decodeEntries decodes an array of values that own their keys, or without own
// of [key, value] pairs.
func decodeEntries[K cmp.Ordered, V any](raw []byte, decode func([]byte) (V, error), own func(V) K) ([]entry[K, V], error) {
	return jsonarray.Decode(raw, func(raw []byte) (e entry[K, V], err error) {
		if own == nil {
			e.key, e.value, err = jsonarray.Pair[K](raw, decode)
			return e, err
		}
		e.value, err = decode(raw)
		e.key = own(e.value)
		return e, err
	})
}
