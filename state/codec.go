package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// decodeVersion decodes raw of version from for a key of version to, by
// migrate when it is older.
func decodeVersion[V any](c Codec[V], from, to int, migrate func(int, []byte) (V, error), raw []byte) (V, error) {
	var zero V
	switch {
	case from == to:
		return c.decode(raw)
	case from > to:
		return zero, newerVersion(from, to)
	case migrate == nil:
		return zero, fmt.Errorf("version %d is older than %d and the key has no Migrate function", from, to)
	}
	return migrate(from, bytes.Clone(raw))
}

func newerVersion(from, to int) error {
	return fmt.Errorf("%w: it is version %d, this program knows %d", ErrNewerVersion, from, to)
}

// compact checks that raw is one JSON value and takes the white space out.
func compact(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return b.Bytes(), nil
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
