package state

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
)

// AnyKey is a key of any type: a [Key], [Log], [Set] or [Table]. Only this
// package implements it. Two handles are the same key when they are equal,
// which is a matter of identity and not of names.
type AnyKey interface {
	Name() string
	Scope() Scope
	Merge() MergeStrategy
	key() *def
}

// handle is what the handles of all kinds of keys consist of.
type handle struct{ d *def }

// nowhere stands for zero handles. No schema has it, so that committing an
// update of one is an error and not silence. It never changes.
var nowhere = &def{plain: true}

func (h handle) key() *def {
	if h.d == nil {
		return nowhere
	}
	return h.d
}

// Name returns the name the key was made with.
func (h handle) Name() string { return h.key().name }

// Scope returns how long the value lives.
func (h handle) Scope() Scope { return h.key().scope }

// Merge returns whether several batches may update the key in one commit. For
// a [Table], which is Exclusive, and a [Set], where it is about adding, the
// strategy holds entry by entry.
func (h handle) Merge() MergeStrategy { return h.key().merge }

// Reset returns the update that takes the key back to its initial value, which
// for a [Log], [Set] or [Table] is empty. It touches the whole key, every
// entry present or not, exclusively, whatever the key's merge strategy.
func (h handle) Reset() Update { return Update{d: h.key(), verb: verbReset} }

// def is the erased part of a key.
type def struct {
	name      string
	hint      atomic.Int32 // 1 + slot in the first schema that took the key
	scope     Scope
	merge     MergeStrategy
	ordered   bool // updates of a rejected batch hold back later ones
	shared    bool
	plain     bool // reads as it is stored: neither Clone nor Initial
	transient bool
	version   int
	faults    error // why the key cannot be registered
	handle    AnyKey
	impl      behaviour
}

// behaviour is what a kind of key does, apart from applying updates.
type behaviour interface {
	value(c cell) any                                      // a value for others to keep
	encode(c cell) ([]byte, error)                         // JSON of a cell that holds a value
	decode(raw []byte, version int) (importOp, error)      // the reverse
	diff(before, after cell, yield func(Change) bool) bool // false when yield said stop
	delta(before, after cell, e *DeltaEntry) error         // of two cells that hold values
	patch(cur cell, e DeltaEntry) (importOp, error)        // the reverse, on a private store
}

// KeyConfig configures [NewKey]. The zero value, when V and U are the same
// type, is a run-scoped key that keeps the last write.
//
// All functions must be pure and safe for concurrent use. They may be called
// more than once for one update, and must not change their arguments in place
// unless Clone is given.
type KeyConfig[V, U any] struct {
	// Scope is how long the value lives.
	Scope Scope
	// Merge says whether several batches may update the key in one commit.
	Merge MergeStrategy
	// Ordered is for Commutative keys whose value depends on the order of
	// updates, such as a log: a batch waits behind a rejected one that touches
	// the key too. It is implied when Apply is nil.
	Ordered bool
	// Initial is the value before any write. Reading it commits nothing.
	Initial func() V
	// Apply returns the value after an update. It may be nil when U and V are
	// the same type: the last write wins.
	Apply func(V, U) V
	// Check refuses a value, for instance an illegal change of status. The
	// commit then fails with an *ApplyError that wraps the refusal.
	Check func(old, next V) error
	// Clone copies a value that shares memory. With Clone, every value handed
	// out or taken in is a copy, and Apply may work in place.
	Clone func(V) V
	// CloneUpdate is Clone for updates. When nil and U is V, Clone is used.
	CloneUpdate func(U) U
	// Shared promises that no value or update is ever changed in place.
	Shared bool
	// Codec is used by Export and Import.
	Codec Codec[V]
	// Version is the version of the encoded form.
	Version int
	// Migrate decodes data of an older version.
	Migrate func(from int, raw []byte) (V, error)
	// Transient keeps the key out of every export.
	Transient bool
}

// Options configures the ready-made keys. The zero value is useful.
//
// For [Log], [Set] and [Table] the fields are about one element: Check sees
// the entry's old value (zero when there is none) and the new one, and Clone,
// Codec and Migrate handle one element. Initial is used by [Cell],
// [Counter] and [ProfileKey] only.
type Options[V any] struct {
	// Scope is how long the value lives.
	Scope Scope
	// Initial is the value before any write.
	Initial func() V
	// Check refuses a value.
	Check func(old, next V) error
	// Clone copies a value that shares memory.
	Clone func(V) V
	// Shared promises that no value is ever changed in place.
	Shared bool
	// Codec is used by Export and Import.
	Codec Codec[V]
	// Version is the version of the encoded form.
	Version int
	// Migrate decodes data of an older version.
	Migrate func(from int, raw []byte) (V, error)
	// Transient keeps the key out of every export.
	Transient bool
}

func (o Options[V]) def(name string, merge MergeStrategy) def {
	return def{
		name: name, scope: o.Scope, merge: merge, version: o.Version,
		shared: o.Shared, plain: o.Clone == nil && o.Initial == nil, transient: o.Transient,
	}
}

// Key is a typed slot of state with values of type V and updates of type U.
// It is a small comparable handle, made once as a package-level value and
// registered with any number of stores. It is safe for concurrent use. The
// zero Key reads as a zero V and cannot be registered.
type Key[V, U any] struct{ handle }

// Cell is an Exclusive key that keeps the last write.
type Cell[V any] = Key[V, V]

// Counter is a Commutative key whose updates are added to its value.
type Counter = Key[int64, int64]

type keyDef[V, U any] struct {
	def
	o     Options[V]
	apply func(V, U) (V, error) // nil when there is none
	last  bool                  // apply is plain last write
	bare  bool                  // last, and nothing copies or checks: an update is the next cell
	roomy bool                  // an update has room for the next cell
	take  func(U) U             // copies an update that comes in or goes out; may be nil
	give  func(U) U             // copies one for an apply that may change it; may be nil

	// tail encodes what was appended, if the later value is the earlier one with
	// something appended; extend is the reverse. Both are nil for most keys.
	tail   func(earlier, later V) (raw []byte, ok bool, err error)
	extend func(earlier, more V) V
}

// NewKey makes a key. It registers nothing: faults of the configuration are
// reported by [NewStore] and [NewSchema].
func NewKey[V, U any](name string, c KeyConfig[V, U]) Key[V, U] {
	return newKey(name, c, Options[V]{
		Scope: c.Scope, Initial: c.Initial, Check: c.Check, Clone: c.Clone, Shared: c.Shared,
		Codec: c.Codec, Version: c.Version, Migrate: c.Migrate, Transient: c.Transient,
	})
}

// NewCell makes a Cell.
func NewCell[V any](name string, o Options[V]) Cell[V] { return newKey(name, KeyConfig[V, V]{}, o) }

// NewCounter makes a Counter.
func NewCounter(name string, o Options[int64]) Counter {
	add := func(v, u int64) int64 { return v + u }
	return newKey(name, KeyConfig[int64, int64]{Merge: Commutative, Apply: add}, o)
}

// newKey takes from c only what o does not have.
func newKey[V, U any](name string, c KeyConfig[V, U], o Options[V]) Key[V, U] {
	d := &keyDef[V, U]{def: o.def(name, c.Merge), o: o, take: c.CloneUpdate}
	d.ordered = c.Merge == Commutative && (c.Ordered || c.Apply == nil)
	if same, ok := any(o.Clone).(func(U) U); ok && d.take == nil {
		d.take = same
	}
	if user := c.Apply; user != nil {
		d.apply, d.give = func(v V, u U) (V, error) { return user(v, u), nil }, d.take
	} else {
		d.apply, d.last = any(lastWrite[V]).(func(V, U) (V, error))
	}
	d.bare = d.last && d.take == nil && o.Check == nil
	d.roomy = reflect.TypeFor[U]().Size() <= roomy
	d.faults = errors.Join(d.invalid(), d.aliasing(aliasText[V](), "value", o.Clone != nil), d.aliasing(aliasText[U](), "update", d.take != nil || d.last))
	if d.apply == nil {
		d.faults = errors.Join(d.faults, fmt.Errorf("%w: %q needs Apply, since its values and updates differ in type", ErrInvalidKey, name))
	}
	k := Key[V, U]{handle{&d.def}}
	d.handle, d.impl = k, d
	return k
}

func lastWrite[V any](_, next V) (V, error) { return next, nil }

// Get returns the value in s: the last one committed, else the initial one.
// A nil snapshot and one of a store without this key give the initial value.
// The value is the caller's own if the key has Clone; otherwise it must not be
// changed in place. Get never panics unless the key's own functions do.
func (k Key[V, U]) Get(s *Snapshot) V {
	v, _ := k.Lookup(s)
	return v
}

// Lookup is Get, and reports whether the value was written or imported, and
// not reset since.
func (k Key[V, U]) Lookup(s *Snapshot) (V, bool) {
	key := k.key()
	c := s.cell(key)
	if !key.plain {
		return key.impl.(*keyDef[V, U]).current(c), holds(c)
	}
	if b, ok := c.(*box[V]); ok {
		return b.value, true
	}
	var zero V
	return zero, false
}

// With returns the update u. The update keeps its own copy of u if the key has
// a way to copy it.
func (k Key[V, U]) With(u U) Update { return k.update(verbApply, u) }

func (k Key[V, U]) update(v verb, u U) Update {
	d, ok := k.key().impl.(*keyDef[V, U])
	if !ok {
		return k.Reset() // of nowhere
	}
	if d.bare {
		return Update{k.d, &box[U]{value: u}, v} // U is V
	}
	u = copied(d.take, u)
	if d.roomy {
		return Update{k.d, &roomyOp[V, U]{applyOp: applyOp[V, U]{d, u}}, v}
	}
	return Update{k.d, &applyOp[V, U]{d, u}, v}
}

// current is the value of a cell, or without one the initial value, for others
// to keep.
func (d *keyDef[V, U]) current(c cell) V {
	if b, ok := c.(*box[V]); ok {
		return copied(d.o.Clone, b.value)
	}
	if d.o.Initial == nil {
		var zero V
		return zero
	}
	return copied(d.o.Clone, d.o.Initial())
}

func copied[T any](clone func(T) T, v T) T {
	if clone == nil {
		return v
	}
	return clone(v)
}

func (d *keyDef[V, U]) value(c cell) any { return d.current(c) }

func (d *keyDef[V, U]) encode(c cell) ([]byte, error) { return d.o.Codec.encode(d.current(c)) }

func (d *keyDef[V, U]) decode(raw []byte, version int) (importOp, error) {
	v, err := d.o.decode(raw, version)
	return func(at *stamp) cell { return boxed(at, v) }, err
}

func (d *keyDef[V, U]) diff(before, after cell, yield func(Change) bool) bool {
	had, has := holds(before), holds(after)
	return !had && !has || yield(Change{d.handle, nil, d.value(before), d.value(after), had, has})
}

// apply makes b the cell, or a copy if it is one somewhere, or was.
func (b *box[V]) apply(_ cell, _ bool, at *stamp) (cell, error) {
	if b.at.CompareAndSwap(nil, at) {
		return b, nil
	}
	return boxed(at, b.value), nil
}

func (b *box[V]) arg() any { return b.value }

// applyOp is an update of a key that is not made of entries nor bare.
type applyOp[V, U any] struct {
	d *keyDef[V, U]
	u U
}

func (o *applyOp[V, U]) apply(cur cell, owned bool, at *stamp) (cell, error) {
	return o.put(cur, owned, at, nil)
}

// put writes to a box of the draft, to spare when there is none, or to a new one.
func (o *applyOp[V, U]) put(cur cell, owned bool, at *stamp, spare *roomyOp[V, U]) (cell, error) {
	d := o.d
	var v V
	if !d.last {
		v = d.current(cur)
	}
	next, err := d.apply(v, copied(d.give, o.u))
	if err == nil && d.o.Check != nil {
		err = d.o.Check(d.current(cur), copied(d.o.Clone, next))
	}
	if err != nil {
		return nil, err
	}
	b, ok := cur.(*box[V])
	switch {
	case ok && owned:
	case spare != nil && spare.used.CompareAndSwap(false, true):
		b = &spare.cell
	default:
		b = &box[V]{}
	}
	b.at.Store(at)
	b.value = next
	return b, nil
}

func (o *applyOp[V, U]) arg() any { return copied(o.d.take, o.u) }

// roomyOp has room for the cell of the first apply, so that an update is one
// allocation. The cell keeps the whole update alive, so it is for small ones.
type roomyOp[V, U any] struct {
	applyOp[V, U]
	used atomic.Bool // cell is somewhere in a state, or was
	cell box[V]
}

// roomy is the most bytes of a U that a cell may keep alive beside its value.
const roomy = 24

func (o *roomyOp[V, U]) apply(cur cell, owned bool, at *stamp) (cell, error) {
	return o.put(cur, owned, at, o)
}
