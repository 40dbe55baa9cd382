package state

import "cmp"

// entries is the cell of a table: the live entries, and when others died.
type entries[K cmp.Ordered, V any] struct {
	at   *stamp // last change of any entry
	born *stamp // last change of live entries without a stamp, which were imported
	live Map[K, V]
	dead *graves[K]
}

func (e *entries[K, V]) mark() *stamp { return e.at }
func (e *entries[K, V]) holds() bool  { return e.live.Len() > 0 }

// lastChangeOf is the last change of entry k in a table's cell.
func lastChangeOf[K cmp.Ordered, V any](c cell, k K) *stamp {
	e, ok := c.(*entries[K, V])
	if !ok {
		return lastChange(c)
	}
	if b := e.live.box(k); b != nil {
		return cmp.Or(b.mark(), e.born)
	}
	return e.dead.last(k)
}

// remove takes an entry out of an open cell.
func (e *entries[K, V]) remove(k K, at *stamp) {
	// btree copies the path also to a key that it then does not find.
	if e.live.box(k) != nil {
		e.live.tree.Delete(k)
	}
	e.dead = e.dead.with(k, at, gravesKept+e.live.Len()/8)
}

// graves remember when entries were removed, so that a late write to one is a
// conflict. That memory is two generations of bounded size: what falls out of
// it counts as removed at floor, which is never too early, so a write may be
// rejected without need but not slip by. A grave of an entry that lives again
// has no meaning. Graves never change.
type graves[K cmp.Ordered] struct {
	floor      *stamp // last change of what is in no generation; nil for never
	turned     *stamp // last change of what is in the old generation
	young, old Map[K, struct{}]
}

const gravesKept = 64

func (g *graves[K]) last(k K) *stamp {
	for _, m := range []Map[K, struct{}]{g.young, g.old} {
		if b := m.box(k); b != nil {
			return b.mark()
		}
	}
	return g.floor
}

func (g *graves[K]) with(k K, at *stamp, limit int) *graves[K] {
	next := *g
	next.young = g.young.with(k, boxed(at, struct{}{}))
	if next.young.Len() > limit {
		next = graves[K]{floor: cmp.Or(g.turned, g.floor), turned: at, old: next.young}
	}
	return &next
}
