package state

import (
	"cmp"
	"fmt"
	"iter"
)

// Table is a persistent sorted map in the state whose unit of conflict is the
// entry: batches that write different entries do not conflict, though the
// table is Exclusive. It is a small comparable handle, safe for concurrent
// use. The zero Table reads as empty and cannot be registered.
type Table[K cmp.Ordered, V any] struct{ d *tableDef[K, V] }

// tableDef serves tables and, with set, sets: tables of empty values.
type tableDef[K cmp.Ordered, V any] struct {
	def
	o     Options[V]
	set   bool
	elems Options[K] // options of a set
}

// NewTable makes a table. Faults of its options are reported by [NewStore].
// Options.Initial is not used.
func NewTable[K cmp.Ordered, V any](name string, o Options[V]) Table[K, V] {
	d := &tableDef[K, V]{o: o, def: def{
		name: name, scope: o.Scope, shared: o.Shared, hidden: o.Transient, version: o.Version,
	}}
	t := Table[K, V]{d}
	d.def.handle, d.def.impl = t, d
	return t
}

// Name returns the name the table was made with.
func (t Table[K, V]) Name() string { return t.key().nameOf() }

// Scope returns how long the entries live.
func (t Table[K, V]) Scope() Scope { return t.key().scopeOf() }

// Merge returns Exclusive, which for a table holds per entry.
func (t Table[K, V]) Merge() MergeStrategy { return t.key().mergeOf() }

func (t Table[K, V]) key() *def {
	if t.d == nil {
		return nil
	}
	return &t.d.def
}

func (t Table[K, V]) in(s *Snapshot) *entries[K, V] {
	if t.d == nil {
		return nil
	}
	return entriesOf[K, V](s.cell(&t.d.def))
}

func entriesOf[K cmp.Ordered, V any](c cell) *entries[K, V] {
	e, _ := c.(*entries[K, V])
	return e
}

// Get returns the value of entry k in s, and whether there is one. The value
// is the caller's own if the table has Clone.
func (t Table[K, V]) Get(s *Snapshot, k K) (V, bool) {
	if b, ok := t.in(s).get(k); ok {
		return t.d.copied(b.value), true
	}
	var zero V
	return zero, false
}

// Has reports whether s has an entry k.
func (t Table[K, V]) Has(s *Snapshot, k K) bool {
	_, ok := t.in(s).get(k)
	return ok
}

// Len returns the number of entries in s.
func (t Table[K, V]) Len(s *Snapshot) int { return t.in(s).len() }

// View returns the entries in s as a Map, in constant time.
func (t Table[K, V]) View(s *Snapshot) Map[K, V] {
	if t.d == nil {
		return Map[K, V]{}
	}
	return t.d.view(t.in(s))
}

// All yields the entries in s by ascending key.
func (t Table[K, V]) All(s *Snapshot) iter.Seq2[K, V] { return t.View(s).All() }

// From yields the entries in s whose key is not less than start, by ascending
// key.
func (t Table[K, V]) From(s *Snapshot, start K) iter.Seq2[K, V] { return t.View(s).From(start) }

// ChangedAt returns the revision at which entry k was last put or deleted, or
// the table reset; 0 for never. For an entry deleted long ago it may be later
// than that.
func (t Table[K, V]) ChangedAt(s *Snapshot, k K) uint64 { return t.in(s).changed(k).revision() }

// Put returns the update that sets entry k to v. It touches that entry
// exclusively.
func (t Table[K, V]) Put(k K, v V) Update {
	if t.d == nil {
		return unregistered()
	}
	o := &entryOp[K, V]{d: t.d, verb: verbPut, one: k, value: t.d.copied(v)}
	return Update{d: &t.d.def, kind: kindEntryExclusive, op: o}
}

// Delete returns the update that removes entry k. It touches that entry
// exclusively, also when there is none.
func (t Table[K, V]) Delete(k K) Update {
	if t.d == nil {
		return unregistered()
	}
	o := &entryOp[K, V]{d: t.d, verb: verbDelete, one: k}
	return Update{d: &t.d.def, kind: kindEntryExclusive, op: o}
}

// Reset returns the update that removes every entry. It touches all of them
// exclusively, present or not.
func (t Table[K, V]) Reset() Update { return resetUpdate(t.key()) }

func (d *tableDef[K, V]) copied(v V) V {
	if d.o.Clone != nil {
		return d.o.Clone(v)
	}
	return v
}

func (d *tableDef[K, V]) view(e *entries[K, V]) Map[K, V] {
	if e == nil {
		return Map[K, V]{clone: d.o.Clone}
	}
	return Map[K, V]{tree: e.live, clone: d.o.Clone}
}

func (d *tableDef[K, V]) cleared(at *stamp) cell { return &entries[K, V]{at: at, floor: at} }

func (d *tableDef[K, V]) holds(c cell) bool { return entriesOf[K, V](c).len() > 0 }

func (d *tableDef[K, V]) read(c cell) (any, bool) {
	view := d.view(entriesOf[K, V](c))
	if !d.set {
		return view, d.holds(c)
	}
	items := make([]K, 0, view.Len())
	for k := range view.All() {
		items = append(items, k)
	}
	return items, d.holds(c)
}

func (d *tableDef[K, V]) encode(c cell) ([]byte, error) {
	view := d.view(entriesOf[K, V](c))
	if !d.set {
		return encodePairs(view.All(), d.o.Codec.encode)
	}
	return encodeArray(func(yield func(K) bool) {
		for k := range view.All() {
			if !yield(k) {
				return
			}
		}
	}, d.elems.Codec)
}

func (d *tableDef[K, V]) decode(raw []byte, version int) (importOp, error) {
	built := (*entries[K, V])(nil).draft()
	if d.set {
		items, err := decodeArray(raw, func(raw []byte) (K, error) {
			return decodeVersion(d.elems.Codec, version, d.version, d.elems.Migrate, raw)
		})
		if err != nil {
			return nil, err
		}
		for _, k := range items {
			if unordered(k) {
				return nil, errNaN
			}
			built.live.Set(k, &box[V]{})
		}
	} else {
		err := decodePairs(raw, func(raw []byte) (V, error) {
			return decodeVersion(d.o.Codec, version, d.version, d.o.Migrate, raw)
		}, func(k K, v V) bool {
			_, taken := built.live.Set(k, &box[V]{value: v})
			return !taken
		})
		if err != nil {
			return nil, err
		}
	}
	return func(at *stamp) cell {
		// Built anew each time, since an import may be tried more than once.
		next := &entries[K, V]{at: at, floor: at, live: derive[K, *box[V]](nil)}
		built.live.Scan(func(k K, b *box[V]) bool {
			next.live.Set(k, &box[V]{at, b.value})
			return true
		})
		return next
	}, nil
}

func (d *tableDef[K, V]) inspect(c cell, visit func(any)) {
	if e := entriesOf[K, V](c); e.len() > 0 {
		e.live.Scan(func(k K, b *box[V]) bool {
			visit(&k)
			visit(&b.value)
			return true
		})
	}
}

func (d *tableDef[K, V]) diff(before, after cell, yield func(Change) bool) bool {
	a, b := entriesOf[K, V](before), entriesOf[K, V](after)
	var left, right sortedEntries[K, V]
	left.start(a)
	right.start(b)
	for left.ok || right.ok {
		c := Change{Key: d.handle}
		order := 0
		switch {
		case !right.ok:
			order = -1
		case !left.ok:
			order = 1
		default:
			order = cmp.Compare(left.key, right.key)
		}
		var before, after *box[V]
		if order <= 0 {
			c.Entry, before, c.Had = left.key, left.box, true
			left.next()
		}
		if order >= 0 {
			c.Entry, after, c.Has = right.key, right.box, true
			right.next()
		}
		if before == after || d.set && c.Had && c.Has {
			continue
		}
		if before != nil && !d.set {
			c.Before = d.copied(before.value)
		}
		if after != nil && !d.set {
			c.After = d.copied(after.value)
		}
		if !yield(c) {
			return false
		}
	}
	return true
}

// entry verbs
const (
	verbPut    = "put"
	verbDelete = "delete"
	verbAdd    = "add"
	verbRemove = "remove"
)

// entryOp changes entries of a table or elements of a set.
type entryOp[K cmp.Ordered, V any] struct {
	d     *tableDef[K, V]
	verb  string
	one   K
	many  []K // instead of one, for a set update
	value V
}

var errNaN = fmt.Errorf("%w: NaN has no place in an order", ErrInvalidKey)

func (o *entryOp[K, V]) name() string { return o.verb }

func (o *entryOp[K, V]) entry() any {
	if o.many == nil {
		return o.one
	}
	return append([]K(nil), o.many...)
}

func (o *entryOp[K, V]) arg() any {
	if o.verb != verbPut {
		return nil
	}
	return o.d.copied(o.value)
}

func (o *entryOp[K, V]) apply(cur cell, owned bool, at *stamp) (cell, error) {
	next := entriesOf[K, V](cur)
	if !owned || next == nil || next.live == nil {
		next = next.draft()
	}
	next.at = at
	if o.many == nil {
		return next, o.applyOne(next, o.one, at)
	}
	for _, k := range o.many {
		if err := o.applyOne(next, k, at); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func (o *entryOp[K, V]) applyOne(next *entries[K, V], k K, at *stamp) error {
	if unordered(k) {
		return errNaN
	}
	switch o.verb {
	case verbDelete, verbRemove:
		next.remove(k, at)
		return nil
	case verbAdd:
		if check := o.d.elems.Check; check != nil {
			var old K
			if next.has(k) {
				old = k
			}
			if err := check(old, k); err != nil {
				return err
			}
		}
	default:
		if check := o.d.o.Check; check != nil {
			var old V
			if b, ok := next.get(k); ok {
				old = o.d.copied(b.value)
			}
			if err := check(old, o.d.copied(o.value)); err != nil {
				return err
			}
		}
	}
	next.put(k, o.value, at)
	return nil
}
