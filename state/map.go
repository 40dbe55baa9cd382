package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/tidwall/btree"
)

// Map is a persistent sorted map: an immutable value, from which With and
// Without make others that share its memory. The zero Map is empty and ready.
// Maps are safe for concurrent use, including several goroutines deriving from
// one map. Values must not be changed in place.
//
// The first entries stand in a slice, the others in a tree, so that a small map
// needs no tree and taking the first entry, as from a queue, mostly copies nothing.
// A few entries that were taken so stay in memory, until others stand first.
type Map[K cmp.Ordered, V any] struct {
	head  []pair[K, V]           // never written to
	tree  *btree.Map[K, *box[V]] // what is behind the head; nil for nothing
	own   bool                   // the tree was made by whoever is making this map
	clone func(V) V
}

type pair[K cmp.Ordered, V any] struct {
	key K
	box *box[V]
}

const (
	headSize  = 16 // a larger one is not written anew for each entry that is set
	headTaken = 64 // of the tree for a new head, so that this seldom comes
)

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

// derived returns the map for set and remove, which do not reach m.
func (m Map[K, V]) derived() Map[K, V] {
	m.own = false
	return m
}

// trunk returns the tree to change it.
func (m *Map[K, V]) trunk() *btree.Map[K, *box[V]] {
	if !m.own {
		m.tree, m.own = derive(m.tree), true
	}
	return m.tree
}

// find returns the place of k in the head, which is its end for what is behind it.
func (m *Map[K, V]) find(k K) (at int, found bool) {
	end := len(m.head)
	for at < end {
		if middle := int(uint(at+end) / 2); m.head[middle].key < k {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at, at < len(m.head) && m.head[at].key == k
}

// box returns nil for an entry that is not there.
func (m Map[K, V]) box(k K) *box[V] {
	switch at, found := m.find(k); {
	case found:
		return m.head[at].box
	case at < len(m.head) || m.tree == nil || unordered(k):
		return nil
	}
	b, _ := m.tree.Get(k)
	return b
}

// set puts an entry into a derived map.
func (m *Map[K, V]) set(k K, b *box[V]) {
	at, found := m.find(k)
	if at == len(m.head) && (at == headSize || m.tree != nil) {
		m.trunk().Set(k, b)
		return
	}
	rest := at
	if found {
		rest++
	}
	m.head = slices.Concat(m.head[:at], []pair[K, V]{{k, b}}, m.head[rest:])
	if len(m.head) > headSize {
		for _, e := range m.head[headSize:] {
			m.trunk().Set(e.key, e.box)
		}
		m.head = slices.Clone(m.head[:headSize])
	}
}

// remove takes an entry out of a derived map, if it is there.
func (m *Map[K, V]) remove(k K) {
	switch at, found := m.find(k); {
	case found && at == 0:
		m.head = m.head[1:]
	case found:
		m.head = slices.Concat(m.head[:at], m.head[at+1:])
	case m.box(k) != nil: // btree copies the path also to a key that it then does not find
		m.trunk().Delete(k)
	}
	if m.tree == nil {
		return
	}
	if len(m.head) == 0 {
		m.head = make([]pair[K, V], min(headTaken, m.tree.Len()))
		for i := range m.head {
			m.head[i].key, m.head[i].box, _ = m.trunk().PopMin()
		}
	}
	if m.tree.Len() == 0 {
		m.tree, m.own = nil, false
	}
}

// cursor walks a map by ascending key. It stands on an entry while ok.
type cursor[K cmp.Ordered, V any] struct {
	pair[K, V]
	ok   bool
	head []pair[K, V] // what of it is to come
	tree btree.MapIter[K, *box[V]]
}

func (m Map[K, V]) cursor() *cursor[K, V] {
	c := &cursor[K, V]{head: m.head}
	if m.tree != nil {
		c.tree = m.tree.Iter()
	}
	c.next()
	return c
}

func (c *cursor[K, V]) next() {
	if c.ok = len(c.head) > 0; c.ok {
		c.pair, c.head = c.head[0], c.head[1:]
	} else if c.ok = c.tree.Next(); c.ok {
		c.pair = pair[K, V]{c.tree.Key(), c.tree.Value()}
	}
}

// unordered reports a key that has no place in an order (a NaN).
func unordered[K cmp.Ordered](k K) bool { return k != k }

// Len returns the number of entries.
func (m Map[K, V]) Len() int {
	if m.tree == nil {
		return len(m.head)
	}
	return len(m.head) + m.tree.Len()
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
	m.set(k, b)
	return m
}

// Without returns the map without k.
func (m Map[K, V]) Without(k K) Map[K, V] {
	if m.box(k) != nil {
		m = m.derived()
		m.remove(k)
	}
	return m
}

// All yields the entries by ascending key.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.each(0, nil, yield) }
}

// From yields the entries whose key is not less than start, by ascending key.
func (m Map[K, V]) From(start K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if at, _ := m.find(start); !unordered(start) {
			m.each(at, &start, yield)
		}
	}
}

// each yields what is in the head from a place on, and then in the tree from a key on.
func (m *Map[K, V]) each(at int, start *K, yield func(K, V) bool) {
	for _, e := range m.head[at:] {
		if !yield(e.key, copied(m.clone, e.box.value)) {
			return
		}
	}
	if m.tree == nil {
		return
	}
	entry := func(k K, b *box[V]) bool { return yield(k, copied(m.clone, b.value)) }
	if start == nil {
		m.tree.Scan(entry)
	} else {
		m.tree.Ascend(*start, entry)
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
		if unordered(e.key) || !repeated && m.box(e.key) != nil {
			return fmt.Errorf("entry %v stands twice or has no order", e.key)
		}
		m.set(e.key, &box[V]{value: e.value})
	}
	return nil
}
