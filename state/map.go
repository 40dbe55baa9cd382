package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"

	"github.com/tidwall/btree"
)

// Map is a persistent sorted map: an immutable value, from which With and
// Without make others that share its memory. The zero Map is empty and ready.
// Maps are safe for concurrent use, including several goroutines deriving from
// one map. Values must not be changed in place.
type Map[K cmp.Ordered, V any] struct {
	tree  *btree.Map[K, *box[V]]
	clone func(V) V
}

// Len returns the number of entries.
func (m Map[K, V]) Len() int {
	if m.tree == nil {
		return 0
	}
	return m.tree.Len()
}

// Get returns the value of k, and whether there is one.
func (m Map[K, V]) Get(k K) (V, bool) {
	if m.tree != nil && !unordered(k) {
		if b, ok := m.tree.Get(k); ok {
			return m.out(b.value), true
		}
	}
	var zero V
	return zero, false
}

// With returns the map with k set to v. It panics on a NaN, which has no place
// in an order.
func (m Map[K, V]) With(k K, v V) Map[K, V] {
	if unordered(k) {
		panic("state: NaN cannot be a key of a map")
	}
	m.tree = derive(m.tree)
	m.tree.Set(k, &box[V]{value: m.out(v)})
	return m
}

// Without returns the map without k.
func (m Map[K, V]) Without(k K) Map[K, V] {
	if m.tree == nil || unordered(k) {
		return m
	}
	if _, ok := m.tree.Get(k); !ok {
		return m
	}
	m.tree = derive(m.tree)
	m.tree.Delete(k)
	return m
}

// All yields the entries by ascending key.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.tree != nil {
			m.tree.Scan(func(k K, b *box[V]) bool { return yield(k, m.out(b.value)) })
		}
	}
}

// From yields the entries whose key is not less than start, by ascending key.
func (m Map[K, V]) From(start K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.tree != nil && !unordered(start) {
			m.tree.Ascend(start, func(k K, b *box[V]) bool { return yield(k, m.out(b.value)) })
		}
	}
}

func (m Map[K, V]) out(v V) V {
	if m.clone != nil {
		return m.clone(v)
	}
	return v
}

// MarshalJSON writes an object when keys are strings, else an array of
// [key, value] pairs; sorted by key in both cases.
func (m Map[K, V]) MarshalJSON() ([]byte, error) {
	if !textual[K]() {
		return encodePairs(m.All(), func(v V) ([]byte, error) { return json.Marshal(v) })
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for k, v := range m.All() {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		// Through string, so that a key type's own JSON form does not matter.
		name, err := json.Marshal(reflect.ValueOf(k).String())
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON replaces the map by what MarshalJSON wrote.
func (m *Map[K, V]) UnmarshalJSON(data []byte) error {
	next := Map[K, V]{clone: m.clone}
	tree := btree.NewMap[K, *box[V]](degree)
	if textual[K]() {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return err
		}
		for name, raw := range fields {
			var v V
			if err := json.Unmarshal(raw, &v); err != nil {
				return err
			}
			tree.Set(reflect.ValueOf(name).Convert(reflect.TypeFor[K]()).Interface().(K), &box[V]{value: v})
		}
	} else {
		err := decodePairs(data, func(raw []byte) (V, error) {
			var v V
			return v, json.Unmarshal(raw, &v)
		}, func(k K, v V) bool {
			_, taken := tree.Set(k, &box[V]{value: v})
			return !taken
		})
		if err != nil {
			return err
		}
	}
	next.tree = tree
	*m = next
	return nil
}

func textual[K any]() bool { return reflect.TypeFor[K]().Kind() == reflect.String }

// encodePairs writes [[k,v],...].
func encodePairs[K cmp.Ordered, V any](all iter.Seq2[K, V], encode func(V) ([]byte, error)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for k, v := range all {
		key, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		value, err := encode(v)
		if err != nil {
			return nil, fmt.Errorf("entry %s: %w", key, err)
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteByte('[')
		b.Write(key)
		b.WriteByte(',')
		b.Write(value)
		b.WriteByte(']')
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

// decodePairs is the reverse; put reports false for a key it already has.
func decodePairs[K cmp.Ordered, V any](data []byte, decode func([]byte) (V, error), put func(K, V) bool) error {
	pairs, err := elements(data)
	if err != nil {
		return err
	}
	for i, raw := range pairs {
		pair, err := elements(raw)
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if len(pair) != 2 {
			return fmt.Errorf("entry %d has %d parts, want a key and a value", i, len(pair))
		}
		var k K
		if err := json.Unmarshal(pair[0], &k); err != nil {
			return fmt.Errorf("entry %d: key: %w", i, err)
		}
		v, err := decode(pair[1])
		if err != nil {
			return fmt.Errorf("entry %s: %w", pair[0], err)
		}
		if unordered(k) || !put(k, v) {
			return fmt.Errorf("entry %s stands twice or has no order", pair[0])
		}
	}
	return nil
}
