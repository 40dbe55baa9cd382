package state

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/ddd26017/fixpoint/internal/pushseq"
	"github.com/ddd26017/fixpoint/internal/sorted"
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
func (t Table[K, V]) Has(s *Snapshot, k K) bool {
	view := t.View(s)
	return view.box(k) != nil
}

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
	d, ok := t.key().impl.(*tableDef[K, V])
	if !ok {
		return t.Reset() // of nowhere
	}
	o := &putOp[K, V]{d: d, key: k}
	o.box.value = copied(d.o.Clone, v)
	return Update{t.d, o, verbPut}
}

// Delete returns the update that removes entry k. It touches that entry
// exclusively, also when there is none.
func (t Table[K, V]) Delete(k K) Update { return t.update(verbDelete, k) }

func (t Table[K, V]) update(v verb, keys ...K) Update {
	d, ok := t.key().impl.(*tableDef[K, V])
	if !ok {
		return t.Reset() // of nowhere
	}
	o := &tableOp[K, V]{d: d, verb: v}
	o.keys = append(o.one[:0], keys...)
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
	return slices.AppendSeq(make([]K, 0, view.Len()), pushseq.Keys(view.All()))
}

func (d *tableDef[K, V]) encode(c cell) ([]byte, error) {
	return encodeAll(d.view(c).All(), d.o.Codec, d.own == nil)
}

func (d *tableDef[K, V]) decode(raw []byte, version int) (importOp, error) {
	list, err := decodeEntries(raw, func(raw []byte) (V, error) { return d.o.decode(raw, version) }, d.own)
	if err != nil {
		return nil, err
	}
	live := Map[K, V]{clone: d.o.Clone}
	err = live.fill(list, d.own != nil)
	return func(at *stamp) cell { return &entries[K, V]{at: at, since: at, live: live} }, err
}

func (d *tableDef[K, V]) diff(before, after cell, yield func(Change) bool) bool {
	old, now := d.view(before), d.view(after)
	return old.entries.Diff(&now.entries, func(k K, was, is *box[V]) bool {
		c := Change{Key: d.handle, Entry: k, Had: was != nil, Has: is != nil}
		if d.own != nil && c.Had && c.Has {
			return true
		}
		if c.Had && d.own == nil {
			c.Before = copied(d.o.Clone, was.value)
		}
		if c.Has && d.own == nil {
			c.After = copied(d.o.Clone, is.value)
		}
		return yield(c)
	})
}

// open returns the entries of a cell for a draft to change.
func (d *tableDef[K, V]) open(cur cell, owned bool, at *stamp) *entries[K, V] {
	next, ok := cur.(*entries[K, V])
	switch {
	case !ok:
		next = &entries[K, V]{since: lastChange(cur), live: d.view(nil)}
	case !owned:
		own := *next
		own.live = own.live.derived()
		next = &own
	}
	next.at = at
	return next
}

// put sets an entry of open ones, if it may be.
func (d *tableDef[K, V]) put(e *entries[K, V], k K, b *box[V]) error {
	if sorted.Unordered(k) {
		return errUnordered
	}
	if check := d.o.Check; check != nil {
		old, _ := e.live.Get(k)
		if err := check(old, copied(d.o.Clone, b.value)); err != nil {
			return err
		}
	}
	e.live.entries.Set(k, b)
	return nil
}

var errUnordered = fmt.Errorf("%w: NaN has no place in an order", ErrInvalidKey)

// putOp sets an entry of a table.
type putOp[K cmp.Ordered, V any] struct {
	d   *tableDef[K, V]
	key K
	box box[V] // of the entry that the first apply makes
}

func (o *putOp[K, V]) count() int                   { return 1 }
func (o *putOp[K, V]) entry(int) any                { return o.key }
func (o *putOp[K, V]) entries() any                 { return []K{o.key} }
func (o *putOp[K, V]) arg() any                     { return copied(o.d.o.Clone, o.box.value) }
func (o *putOp[K, V]) changed(c cell, _ int) *stamp { return lastChangeOf[K, V](c, o.key) }

func (o *putOp[K, V]) apply(cur cell, owned bool, at *stamp) (cell, error) {
	b := &o.box
	if !b.at.CompareAndSwap(nil, at) {
		b = boxed(at, b.value)
	}
	next := o.d.open(cur, owned, at)
	return next, o.d.put(next, o.key, b)
}

// tableOp deletes entries of a table, or adds or removes elements of a set.
type tableOp[K cmp.Ordered, V any] struct {
	d    *tableDef[K, V]
	verb verb
	keys []K
	one  [1]K // backs keys when that is enough
}

func (o *tableOp[K, V]) count() int                   { return len(o.keys) }
func (o *tableOp[K, V]) entry(i int) any              { return o.keys[i] }
func (o *tableOp[K, V]) entries() any                 { return slices.Clone(o.keys) }
func (o *tableOp[K, V]) arg() any                     { return nil }
func (o *tableOp[K, V]) changed(c cell, i int) *stamp { return lastChangeOf[K, V](c, o.keys[i]) }

func (o *tableOp[K, V]) apply(cur cell, owned bool, at *stamp) (cell, error) {
	next := o.d.open(cur, owned, at)
	for _, k := range o.keys {
		if o.verb == verbAdd {
			v, _ := any(k).(V) // an element of a set is its own key
			if err := o.d.put(next, k, boxed(at, v)); err != nil {
				return nil, err
			}
			continue
		}
		if sorted.Unordered(k) {
			return nil, errUnordered
		}
		next.live.entries.Delete(k)
		next.dead.Note(k, at)
	}
	return next, nil
}
