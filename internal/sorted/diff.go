package sorted

import (
	"cmp"

	"github.com/tidwall/btree"
)

// Diff yields what differs from m to later by ascending key: the keys whose pointers
// are not the same, and nil for an entry that one of the two does not have. It reports
// whether it came to the end, and costs a step for each entry of both.
func (m *Map[K, V]) Diff(later *Map[K, V], yield func(k K, was, is *V) bool) bool {
	left, right := m.cursor(), later.cursor()
	for left.ok || right.ok {
		var k K
		var was, is *V
		first := left.ok && (!right.ok || left.key <= right.key)
		second := right.ok && (!left.ok || right.key <= left.key)
		if first {
			k, was = left.key, left.value
			left.next()
		}
		if second {
			k, is = right.key, right.value
			right.next()
		}
		if was != is && !yield(k, was, is) {
			return false
		}
	}
	return true
}

// cursor walks a map by ascending key. It stands on an entry while ok.
type cursor[K cmp.Ordered, V any] struct {
	pair[K, V]
	ok   bool
	head []pair[K, V] // what of it is to come
	tree btree.MapIter[K, *V]
}

func (m *Map[K, V]) cursor() *cursor[K, V] {
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
