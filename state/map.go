package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"

	"github.com/tidwall/btree"
)

// Map is a persistent sorted map: an immutable value, from which With and
// Without make others that share its memory. The zero Map is empty and ready.
// Maps are safe for concurrent use, including several goroutines deriving from
// one map. Values must not be changed in place.
type Map[K cmp.Ordered, V any] struct {
	tree  *btree.Map[K, *box[V]] // nil when empty, or frozen
	clone func(V) V
}

// degree halves the bytes of a copy-on-write commit against btree's default 32.
const degree = 8

// derive returns a private tree that starts out equal to frozen. It is the one way this package makes a tree from another,
// because the plain ones are traps:
//
//   - frozen.Copy() writes to frozen, so two goroutines doing it race;
//   - a struct copy of a tree shares its copy-on-write identity, so that
//     setting a value in one changes the other;
//   - Set and the Mut methods on a published tree race with its readers.
//
// Copying the header first means that only the local header is written to.
// Values are always boxed in pointers, since btree calls a Copy method that it
// finds on a value.
func derive[K cmp.Ordered, V any](frozen *btree.Map[K, V]) *btree.Map[K, V] {
	if frozen == nil {
		return btree.NewMap[K, V](degree)
	}
	local := *frozen
	return local.Copy()
}

// derived returns the map with a private tree, which may be changed in place.
func (m Map[K, V]) derived() Map[K, V] {
	m.tree = derive(m.tree)
	return m
}

// box returns nil for an entry that is not there.
func (m Map[K, V]) box(k K) *box[V] {
	if m.tree == nil || unordered(k) {
		return nil
	}
	b, _ := m.tree.Get(k)
	return b
}

// unordered reports a key that has no place in an order (a NaN).
func unordered[K cmp.Ordered](k K) bool { return k != k }

// Len returns the number of entries.
func (m Map[K, V]) Len() int {
	if m.tree == nil {
		return 0
	}
	return m.tree.Len()
}

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
func (m Map[K, V]) With(k K, v V) Map[K, V] { return m.with(k, &box[V]{value: copied(m.clone, v)}) }

func (m Map[K, V]) with(k K, b *box[V]) Map[K, V] {
	if unordered(k) {
		panic("state: NaN cannot be a key of a map")
	}
	m = m.derived()
	m.tree.Set(k, b)
	return m
}

// Without returns the map without k.
func (m Map[K, V]) Without(k K) Map[K, V] {
	if m.box(k) != nil {
		m = m.derived()
		m.tree.Delete(k)
	}
	return m
}

// All yields the entries by ascending key.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.tree != nil {
			m.tree.Scan(func(k K, b *box[V]) bool { return yield(k, copied(m.clone, b.value)) })
		}
	}
}

// From yields the entries whose key is not less than start, by ascending key.
func (m Map[K, V]) From(start K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.tree != nil && !unordered(start) {
			m.tree.Ascend(start, func(k K, b *box[V]) bool { return yield(k, copied(m.clone, b.value)) })
		}
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
	next := Map[K, V]{clone: m.clone}.derived()
	if err == nil {
		err = next.fill(list, false)
	}
	if err == nil {
		*m = next
	}
	return err
}

// fill puts entries into a private map.
func (m Map[K, V]) fill(entries []entry[K, V], repeated bool) error {
	for _, e := range entries {
		if unordered(e.key) || m.box(e.key) != nil && !repeated {
			return fmt.Errorf("entry %v stands twice or has no order", e.key)
		}
		m.tree.Set(e.key, &box[V]{value: e.value})
	}
	return nil
}
