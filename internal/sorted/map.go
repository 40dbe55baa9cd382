package sorted

import (
	"cmp"
	"slices"
)

// Map is a sorted map from keys to pointers, none of which is nil. The zero Map is
// empty and ready. A *V must have no method Copy or IsoCopy that returns a *V: btree
// would call it, in silence.
//
// Set and Delete are for one goroutine, which made the map or got it from Derive. Once
// others may see it, or have a copy of the struct, only the other methods are allowed:
// they are safe for concurrent use, including several goroutines deriving from one map.
//
// The first entries stand in a slice, the others in a tree, so that a small map
// needs no tree and taking the first entry, as from a queue, mostly copies nothing.
// A few entries that were taken so stay in memory, until others stand first.
type Map[K cmp.Ordered, V any] struct {
	head []pair[K, V] // never written to
	tree *trunk[K, V] // what is behind the head; nil for nothing
	own  bool         // the tree was made by whoever is making this map
}

type pair[K cmp.Ordered, V any] struct {
	key   K
	value *V
}

const (
	headSize  = 16 // a larger one is not written anew for each entry that is set
	headTaken = 64 // of the tree for a new head, so that this seldom comes
)

// Unordered reports a key that has no place in an order (a NaN). It is in no map.
func Unordered[K cmp.Ordered](k K) bool { return k != k }

// Derive returns a map with the entries of m, for Set and Delete, which do not reach m.
func (m Map[K, V]) Derive() Map[K, V] {
	m.own = false
	return m
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int {
	if m.tree == nil {
		return len(m.head)
	}
	return len(m.head) + m.tree.Len()
}

// Get returns nil for an entry that is not there.
func (m *Map[K, V]) Get(k K) *V {
	switch at, found := m.find(k); {
	case found:
		return m.head[at].value
	case at < len(m.head) || m.tree == nil || Unordered(k):
		return nil
	}
	v, _ := m.tree.Get(k)
	return v
}

// Set puts an entry into the map, instead of the one that k has. k must have an order.
func (m *Map[K, V]) Set(k K, v *V) {
	at, found := m.find(k)
	if at == len(m.head) && (at == headSize || m.tree != nil) {
		m.trunk().Set(k, v)
		return
	}
	rest := at
	if found {
		rest++
	}
	m.head = slices.Concat(m.head[:at], []pair[K, V]{{k, v}}, m.head[rest:])
	if len(m.head) > headSize {
		for _, e := range m.head[headSize:] {
			m.trunk().Set(e.key, e.value)
		}
		m.head = slices.Clone(m.head[:headSize])
	}
}

// Delete takes an entry out of the map, if it is there.
func (m *Map[K, V]) Delete(k K) {
	switch at, found := m.find(k); {
	case found && at == 0:
		m.head = m.head[1:]
	case found:
		m.head = slices.Concat(m.head[:at], m.head[at+1:])
	case m.Get(k) != nil: // btree copies the path also to a key that it then does not find
		m.trunk().Delete(k)
	}
	if m.tree == nil {
		return
	}
	if len(m.head) == 0 {
		m.head = make([]pair[K, V], min(headTaken, m.tree.Len()))
		for i := range m.head {
			m.head[i].key, m.head[i].value, _ = m.trunk().PopMin()
		}
	}
	if m.tree.Len() == 0 {
		m.tree, m.own = nil, false
	}
}

// Each calls yield with the entries by ascending key, while it returns true.
func (m *Map[K, V]) Each(yield func(K, *V) bool) { m.each(0, nil, yield) }

// EachFrom is Each for the entries whose key is not less than start.
func (m *Map[K, V]) EachFrom(start K, yield func(K, *V) bool) {
	if at, _ := m.find(start); !Unordered(start) {
		m.each(at, &start, yield)
	}
}

// each yields what is in the head from a place on, and then in the tree from a key on.
func (m *Map[K, V]) each(at int, start *K, yield func(K, *V) bool) {
	for _, e := range m.head[at:] {
		if !yield(e.key, e.value) {
			return
		}
	}
	if m.tree == nil {
		return
	}
	if start == nil {
		m.tree.Scan(yield)
	} else {
		m.tree.Ascend(*start, yield)
	}
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

// trunk returns the tree to change it.
func (m *Map[K, V]) trunk() *trunk[K, V] {
	if !m.own {
		m.tree, m.own = derive(m.tree), true
	}
	return m.tree
}
