package state

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
)

// Table is a persistent sorted map in the state whose unit of conflict is the
// entry: batches that write different entries do not conflict, though the
// table is Exclusive. It is a small comparable handle, safe for concurrent
// use. The zero Table reads as empty and cannot be registered.
type Table[K cmp.Ordered, V any] struct{ handle }

// tableDef serves tables and sets.
type tableDef[K cmp.Ordered, V any] struct {
	def
	o   Options[V]
	own func(V) K // the key of a set's element, which is the element; nil for a table
}

// NewTable makes a table. Faults of its options are reported by [NewStore].
// Options.Initial is not used.
func NewTable[K cmp.Ordered, V any](name string, o Options[V]) Table[K, V] {
	d := newTableDef[K](name, Exclusive, o, nil)
	t := Table[K, V]{handle{&d.def}}
	d.handle = t
	return t
}

func newTableDef[K cmp.Ordered, V any](name string, merge MergeStrategy, o Options[V], own func(V) K) *tableDef[K, V] {
	d := &tableDef[K, V]{def: o.def(name, merge), o: o, own: own}
	d.faults = errors.Join(d.invalid(), d.aliasing(aliasText[V](), "value", o.Clone != nil))
	d.impl = d
	return d
}

// Get returns the value of entry k in s, and whether there is one. The value
// is the caller's own if the table has Clone.
func (t Table[K, V]) Get(s *Snapshot, k K) (V, bool) { return t.View(s).Get(k) }

// Has reports whether s has an entry k.
func (t Table[K, V]) Has(s *Snapshot, k K) bool { return t.View(s).box(k) != nil }

// Len returns the number of entries in s.
func (t Table[K, V]) Len(s *Snapshot) int { return t.View(s).Len() }

// View returns the entries in s as a Map, in constant time.
func (t Table[K, V]) View(s *Snapshot) Map[K, V] {
	if d, ok := t.key().impl.(*tableDef[K, V]); ok {
		return d.view(s.cell(t.key()))
	}
	return Map[K, V]{}
}

// All yields the entries in s by ascending key.
func (t Table[K, V]) All(s *Snapshot) iter.Seq2[K, V] { return t.View(s).All() }

// From yields the entries in s whose key is not less than start, by ascending
// key.
func (t Table[K, V]) From(s *Snapshot, start K) iter.Seq2[K, V] { return t.View(s).From(start) }

// ChangedAt returns the revision at which entry k was last put or deleted, or
// the table reset; 0 for never. For an entry deleted long ago it may be later
// than that.
func (t Table[K, V]) ChangedAt(s *Snapshot, k K) uint64 {
	return lastChangeOf[K, V](s.cell(t.key()), k).revision()
}

// Put returns the update that sets entry k to v. It touches that entry
// exclusively.
func (t Table[K, V]) Put(k K, v V) Update {
	if d, ok := t.key().impl.(*tableDef[K, V]); ok {
		v = copied(d.o.Clone, v)
	}
	return t.update(verbPut, entry[K, V]{k, v})
}

// Delete returns the update that removes entry k. It touches that entry
// exclusively, also when there is none.
func (t Table[K, V]) Delete(k K) Update { return t.update(verbDelete, entry[K, V]{key: k}) }

func (t Table[K, V]) update(v verb, touched ...entry[K, V]) Update {
	d, ok := t.key().impl.(*tableDef[K, V])
	if !ok {
		return t.Reset() // of nowhere
	}
	o := &tableOp[K, V]{d: d, verb: v}
	o.touched = append(o.one[:0], touched...)
	return Update{t.d, o, v}
}

func (d *tableDef[K, V]) view(c cell) Map[K, V] {
	if t, ok := c.(*entries[K, V]); ok {
		return t.live
	}
	return Map[K, V]{clone: d.o.Clone}
}

func (d *tableDef[K, V]) value(c cell) any {
	view := d.view(c)
	if d.own == nil {
		return view
	}
	items := make([]K, 0, view.Len())
	for k := range view.All() {
		items = append(items, k)
	}
	return items
}

func (d *tableDef[K, V]) encode(c cell) ([]byte, error) {
	return encodeAll(d.view(c).All(), d.o.Codec, d.own == nil)
}

func (d *tableDef[K, V]) decode(raw []byte, version int) (importOp, error) {
	list, err := decodeEntries(raw, func(raw []byte) (V, error) { return d.o.decode(raw, version) }, d.own)
	if err != nil {
		return nil, err
	}
	live := Map[K, V]{clone: d.o.Clone}.derived()
	return func(at *stamp) cell {
		return &entries[K, V]{at: at, born: at, live: live, dead: &graves[K]{floor: at}}
	}, live.fill(list, d.own != nil)
}

func (d *tableDef[K, V]) diff(before, after cell, yield func(Change) bool) bool {
	left, right := d.view(before).derived().tree.Iter(), d.view(after).derived().tree.Iter()
	for had, has := left.First(), right.First(); had || has; {
		c := Change{Key: d.handle}
		c.Had = had && (!has || left.Key() <= right.Key())
		c.Has = has && (!had || right.Key() <= left.Key())
		var was, is *box[V]
		if c.Had {
			c.Entry, was = left.Key(), left.Value()
			had = left.Next()
		}
		if c.Has {
			c.Entry, is = right.Key(), right.Value()
			has = right.Next()
		}
		if was == is || d.own != nil && c.Had && c.Has {
			continue
		}
		if was != nil && d.own == nil {
			c.Before = copied(d.o.Clone, was.value)
		}
		if is != nil && d.own == nil {
			c.After = copied(d.o.Clone, is.value)
		}
		if !yield(c) {
			return false
		}
	}
	return true
}

// tableOp changes entries of a table or elements of a set.
type tableOp[K cmp.Ordered, V any] struct {
	d       *tableDef[K, V]
	verb    verb
	touched []entry[K, V]
	one     [1]entry[K, V] // backs touched when that is enough
}

func (o *tableOp[K, V]) count() int      { return len(o.touched) }
func (o *tableOp[K, V]) entry(i int) any { return o.touched[i].key }

func (o *tableOp[K, V]) entries() any {
	keys := make([]K, len(o.touched))
	for i, e := range o.touched {
		keys[i] = e.key
	}
	return keys
}

func (o *tableOp[K, V]) arg() any {
	if o.verb != verbPut {
		return nil
	}
	return copied(o.d.o.Clone, o.touched[0].value)
}

func (o *tableOp[K, V]) changed(c cell, i int) *stamp { return lastChangeOf[K, V](c, o.touched[i].key) }

func (o *tableOp[K, V]) apply(cur cell, owned bool, at *stamp) (cell, error) {
	next, ok := cur.(*entries[K, V])
	switch {
	case !ok:
		next = &entries[K, V]{live: o.d.view(nil).derived(), dead: &graves[K]{floor: lastChange(cur)}}
	case !owned:
		own := *next
		own.live = own.live.derived()
		next = &own
	}
	next.at = at
	for _, e := range o.touched {
		switch {
		case unordered(e.key):
			return nil, fmt.Errorf("%w: NaN has no place in an order", ErrInvalidKey)
		case o.verb == verbDelete || o.verb == verbRemove:
			next.remove(e.key, at)
			continue
		}
		if check := o.d.o.Check; check != nil {
			old, _ := next.live.Get(e.key)
			if err := check(old, copied(o.d.o.Clone, e.value)); err != nil {
				return nil, err
			}
		}
		next.live.tree.Set(e.key, boxed(at, e.value))
	}
	return next, nil
}
