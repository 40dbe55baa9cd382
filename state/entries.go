package state

import (
	"cmp"

	"github.com/ddd26017/fixpoint/internal/vector"
)

// entries is the cell of a table: the live entries, and when others died.
type entries[K cmp.Ordered, V any] struct {
	at    *stamp // last change of any entry
	since *stamp // last import or reset, before which nothing is remembered
	live  Map[K, V]
	dead  graves[K]
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
	return cmp.Or(e.dead.last(k), e.since)
}

// graves remember when entries were removed, so that a late write to one is a
// conflict. They are the last blocks of a list of removals: what has fallen out of
// it counts as removed at floor, which is never too early, so a write may be
// rejected without need but not slip by. A grave of an entry that lives again
// has no meaning. A copy shares its blocks, as lists do.
type graves[K cmp.Ordered] struct {
	floor *stamp                  // last removal of what is in no block; nil for never
	high  K                       // no key above it was removed, so that new ids are in no block's way
	young *vector.Block[grave[K]] // the last one, with n graves
	n     int
	old   [2]*vector.Block[grave[K]] // full ones, the latest first
}

type grave[K cmp.Ordered] struct {
	key K
	at  *stamp
}

// last is nil for what was not removed.
func (g *graves[K]) last(k K) *stamp {
	if k > g.high {
		return nil
	}
	n := g.n
	for _, b := range [...]*vector.Block[grave[K]]{g.young, g.old[0], g.old[1]} {
		for n--; b != nil && n >= 0; n-- {
			if b.Items[n].key == k {
				return b.Items[n].at
			}
		}
		n = vector.Size
	}
	return g.floor
}

// add remembers a removal, in graves that are the caller's own.
func (g *graves[K]) add(k K, at *stamp) {
	if g.n == vector.Size {
		if lost := g.old[len(g.old)-1]; lost != nil {
			g.floor = lost.Items[vector.Size-1].at
		}
		copy(g.old[1:], g.old[:])
		g.old[0], g.young, g.n = g.young, nil, 0
	}
	want := g.n + 1
	if g.old[0] != nil {
		want = vector.Size // there will be more
	}
	g.young = g.young.Claim(g.n, want)
	g.young.Items[g.n] = grave[K]{k, at}
	g.high = max(g.high, k)
	g.n++
}
