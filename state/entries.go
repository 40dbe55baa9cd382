package state

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"
)

// entries is the cell of a table. Besides the live entries it remembers when
// removed ones were removed, so that a late write to one is a conflict. That
// memory is bounded: what falls out of it counts as removed at floor, which is
// never too early, so a write may be rejected without need but not slip by.
type entries[K cmp.Ordered, V any] struct {
	at     *stamp // last change of any entry
	floor  *stamp // last change of what is in neither tree; nil for never
	live   *btree.Map[K, *box[V]]
	graves *btree.Map[K, *stamp]
}

const gravesKept = 128

func (e *entries[K, V]) mark() *stamp { return e.at }

func (e *entries[K, V]) len() int {
	if e == nil || e.live == nil {
		return 0
	}
	return e.live.Len()
}

func (e *entries[K, V]) get(k K) (*box[V], bool) {
	if e == nil || e.live == nil || unordered(k) {
		return nil, false
	}
	return e.live.Get(k)
}

// changed is the last change of entry k.
func (e *entries[K, V]) changed(k K) *stamp {
	if e == nil {
		return nil
	}
	if b, ok := e.get(k); ok {
		return b.at
	}
	if e.graves != nil && !unordered(k) {
		if at, ok := e.graves.Get(k); ok {
			return at
		}
	}
	return e.floor
}

// draft returns a private copy of e, or an empty one for nil.
func (e *entries[K, V]) draft() *entries[K, V] {
	if e == nil {
		return &entries[K, V]{live: derive[K, *box[V]](nil)}
	}
	next := &entries[K, V]{floor: e.floor, live: derive(e.live)}
	if e.graves != nil {
		next.graves = derive(e.graves)
	}
	return next
}

// put sets an entry of a draft.
func (e *entries[K, V]) put(k K, v V, at *stamp) {
	e.live.Set(k, &box[V]{at, v})
	if e.graves != nil {
		drop(e.graves, k)
	}
}

// drop deletes k. It looks first, because btree copies the path to a key that
// it then does not find.
func drop[K cmp.Ordered, V any](tree *btree.Map[K, V], k K) {
	if _, ok := tree.Get(k); ok {
		tree.Delete(k)
	}
}

// remove takes an entry out of a draft.
func (e *entries[K, V]) remove(k K, at *stamp) {
	drop(e.live, k)
	if e.graves == nil {
		e.graves = derive[K, *stamp](nil)
	}
	e.graves.Set(k, at)
	if e.graves.Len() > gravesKept+e.live.Len()/4 {
		e.forget()
	}
}

// forget drops the older half of the graves.
func (e *entries[K, V]) forget() {
	// A stamp without a revision is of the commit being built, so the newest.
	age := func(s *stamp) uint64 { return s.rev - 1 }
	stamps := make([]*stamp, 0, e.graves.Len())
	e.graves.Scan(func(_ K, s *stamp) bool {
		stamps = append(stamps, s)
		return true
	})
	slices.SortFunc(stamps, func(a, b *stamp) int { return cmp.Compare(age(a), age(b)) })
	cut := stamps[len(stamps)/2]
	kept := derive[K, *stamp](nil)
	e.graves.Scan(func(k K, s *stamp) bool {
		if age(s) > age(cut) {
			kept.Set(k, s)
		}
		return true
	})
	e.graves, e.floor = kept, cut
}

func (e *entries[K, V]) has(k K) bool {
	_, ok := e.get(k)
	return ok
}

// sortedEntries walks the live entries by ascending key.
type sortedEntries[K cmp.Ordered, V any] struct {
	it  btree.MapIter[K, *box[V]]
	key K
	box *box[V]
	ok  bool
}

func (s *sortedEntries[K, V]) start(e *entries[K, V]) {
	if e.len() > 0 {
		s.it = e.live.Iter()
		s.ok = s.it.First()
		s.load()
	}
}

func (s *sortedEntries[K, V]) next() {
	s.ok = s.it.Next()
	s.load()
}

func (s *sortedEntries[K, V]) load() {
	if s.ok {
		s.key, s.box = s.it.Key(), s.it.Value()
	}
}
