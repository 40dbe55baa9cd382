package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"

	"github.com/ddd26017/fixpoint/internal/sorted"
)

// Map is a persistent sorted map: an immutable value, from which With and
// Without make others that share its memory. The zero Map is empty and ready.
// Maps are safe for concurrent use, including several goroutines deriving from
// one map. Values must not be changed in place.
type Map[K cmp.Ordered, V any] struct {
	entries sorted.Map[K, box[V]]
	clone   func(V) V
}

// derived returns the map with entries to be changed, which does not reach m.
func (m Map[K, V]) derived() Map[K, V] {
	m.entries = m.entries.Derive()
	return m
}

// box returns nil for an entry that is not there.
func (m *Map[K, V]) box(k K) *box[V] { return m.entries.Get(k) }

// Len returns the number of entries.
func (m Map[K, V]) Len() int { return m.entries.Len() }

// Get returns the value of k, and whether there is one.
func (m Map[K, V]) Get(k K) (V, bool) {
	if b := m.box(k); b != nil {
		return copied(m.clone, b.value), true
	}
	var zero V
	return zero, false
}

// With returns the map with k set to v. It panics on a NaN, which has no place
// in an order.
func (m Map[K, V]) With(k K, v V) Map[K, V] {
	if sorted.Unordered(k) {
		panic("state: NaN cannot be a key of a map")
	}
	m = m.derived()
	m.entries.Set(k, &box[V]{value: copied(m.clone, v)})
	return m
}

// Without returns the map without k.
func (m Map[K, V]) Without(k K) Map[K, V] {
	if m.box(k) != nil {
		m = m.derived()
		m.entries.Delete(k)
	}
	return m
}

// All yields the entries by ascending key.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.each(nil, yield) }
}

// From yields the entries whose key is not less than start, by ascending key.
func (m Map[K, V]) From(start K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.each(&start, yield) }
}

// each yields the entries from a key on, or all.
func (m *Map[K, V]) each(start *K, yield func(K, V) bool) {
	entry := func(k K, b *box[V]) bool { return yield(k, copied(m.clone, b.value)) }
	if start == nil {
		m.entries.Each(entry)
	} else {
		m.entries.EachFrom(*start, entry)
	}
}

// MarshalJSON writes an object when keys are strings, else an array of
// [key, value] pairs; sorted by key in both cases.
func (m Map[K, V]) MarshalJSON() ([]byte, error) {
	if reflect.TypeFor[K]().Kind() == reflect.String {
		return json.Marshal(maps.Collect(m.All()))
	}
	return encodeAll(m.All(), Codec[V]{}, true)
}

// UnmarshalJSON replaces the map by what MarshalJSON wrote.
func (m *Map[K, V]) UnmarshalJSON(data []byte) error {
	var list []entry[K, V]
	var err error
	if key := reflect.TypeFor[K](); key.Kind() == reflect.String {
		// Through string, so that a key type's own JSON form does not matter.
		var fields map[string]V
		err = json.Unmarshal(data, &fields)
		for name, v := range fields {
			list = append(list, entry[K, V]{reflect.ValueOf(name).Convert(key).Interface().(K), v})
		}
	} else {
		list, err = decodeEntries[K](data, Codec[V]{}.decode, nil)
	}
	next := Map[K, V]{clone: m.clone}
	if err == nil {
		err = next.fill(list, false)
	}
	if err == nil {
		*m = next
	}
	return err
}

// fill puts entries into a derived map.
func (m *Map[K, V]) fill(entries []entry[K, V], repeated bool) error {
	for _, e := range entries {
		if sorted.Unordered(e.key) || !repeated && m.box(e.key) != nil {
			return fmt.Errorf("entry %v stands twice or has no order", e.key)
		}
		m.entries.Set(e.key, &box[V]{value: e.value})
	}
	return nil
}
