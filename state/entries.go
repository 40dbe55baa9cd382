package state

import (
	"cmp"

	"github.com/ddd26017/fixpoint/internal/vector"
)

// entries is the cell of a table: the live entries, and when others were removed, so
// that a late write to one is a conflict. A removal that is forgotten counts as later than
// it was, so a write may be rejected without need but not slip by. What is remembered of an
// entry that lives again has no meaning.
type entries[K cmp.Ordered, V any] struct {
	at    *stamp // last change of any entry
	since *stamp // last import or reset, before which nothing is remembered
	live  Map[K, V]
	dead  vector.Recent[K, *stamp]
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
		return cmp.Or(b.mark(), e.since) // what was imported has no stamp
	}
	return cmp.Or(e.dead.Last(k), e.since)
}
