package state

import (
	"sync"
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

// def is the erased part of a key.
type def struct {
	name    string
	scope   Scope
	merge   MergeStrategy
	ordered bool // updates of a rejected batch hold back later ones
	shared  bool
	hidden  bool // transient: never exported
	version int
	handle  AnyKey
	impl    behaviour

	hint atomic.Int32 // 1 + slot in the first schema that took the key

	once   sync.Once
	faults error
}

// behaviour is what a kind of key does, apart from applying updates.
type behaviour interface {
	faulty() error                                           // why it cannot be registered
	cleared(at *stamp) cell                                  // the cell after a reset
	holds(c cell) bool                                       // whether c holds a value
	read(c cell) (any, bool)                                 // a value for others to keep
	encode(c cell) ([]byte, error)                           // JSON of a cell that holds a value
	decode(raw []byte, version int) (importOp, error)        // the reverse
	diff(before, after cell, yield func(Change) bool) bool   // false when yield said stop
	inspect(c cell, visit func(root any /* pointer to V */)) // every value, for a seal
}

func (d *def) check() error {
	d.once.Do(func() { d.faults = d.impl.faulty() })
	return d.faults
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

// Key is a typed slot of state with values of type V and updates of type U.
// It is a small comparable handle, made once as a package-level value and
// registered with any number of stores. It is safe for concurrent use. The
// zero Key reads as a zero V and cannot be registered.
type Key[V, U any] struct{ d *keyDef[V, U] }

type keyDef[V, U any] struct {
	def
	cfg     KeyConfig[V, U]
	apply   func(V, U) (V, error) // nil when there is none
	last    bool                  // apply is plain last write
	tame    bool                  // apply leaves its update alone
	cloneUp func(U) U
	verb    string
}

// NewKey makes a key. It registers nothing: faults of the configuration are
// reported by [NewStore] and [NewSchema].
func NewKey[V, U any](name string, c KeyConfig[V, U]) Key[V, U] {
	d := &keyDef[V, U]{cfg: c, cloneUp: c.CloneUpdate, verb: "apply"}
	if user := c.Apply; user != nil {
		d.apply = func(v V, u U) (V, error) { return user(v, u), nil }
	} else if same, ok := any(lastWrite[V]).(func(V, U) (V, error)); ok {
		d.apply, d.last = same, true
	}
	if d.cloneUp == nil {
		if same, ok := any(c.Clone).(func(U) U); ok {
			d.cloneUp = same
		}
	}
	d.def = def{
		name: name, scope: c.Scope, merge: c.Merge,
		ordered: c.Merge == Commutative && (c.Ordered || c.Apply == nil),
		shared:  c.Shared, hidden: c.Transient, version: c.Version,
	}
	return d.handleAs(d)
}

// handleAs closes the loop between the erased and the typed half.
func (d *keyDef[V, U]) handleAs(impl behaviour) Key[V, U] {
	k := Key[V, U]{d}
	d.def.handle, d.def.impl = k, impl
	return k
}

func lastWrite[V any](_, next V) (V, error) { return next, nil }

// Name returns the name the key was made with.
func (k Key[V, U]) Name() string { return k.key().nameOf() }

// Scope returns how long the value lives.
func (k Key[V, U]) Scope() Scope { return k.key().scopeOf() }

// Merge returns whether several batches may update the key in one commit.
func (k Key[V, U]) Merge() MergeStrategy { return k.key().mergeOf() }

func (k Key[V, U]) key() *def {
	if k.d == nil {
		return nil
	}
	return &k.d.def
}

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
	if k.d == nil {
		var zero V
		return zero, false
	}
	if b, ok := s.cell(&k.d.def).(*box[V]); ok {
		if k.d.cfg.Clone != nil {
			return k.d.cfg.Clone(b.value), true
		}
		return b.value, true
	}
	return k.d.start(), false
}

// With returns the update u. The update keeps its own copy of u if the key has
// a way to copy it.
func (k Key[V, U]) With(u U) Update {
	if k.d == nil {
		return unregistered()
	}
	if k.d.cloneUp != nil {
		u = k.d.cloneUp(u)
	}
	kind := kindShared
	if k.d.merge == Exclusive {
		kind = kindExclusive
	}
	return Update{d: &k.d.def, kind: kind, op: &applyOp[V, U]{k.d, u}}
}

// Reset returns the update that takes the key back to its initial value. It
// touches the whole key exclusively, whatever the key's merge strategy.
func (k Key[V, U]) Reset() Update { return resetUpdate(k.key()) }

func (d *def) nameOf() string {
	if d == nil {
		return ""
	}
	return d.name
}

func (d *def) scopeOf() Scope {
	if d == nil {
		return ScopeRun
	}
	return d.scope
}

func (d *def) mergeOf() MergeStrategy {
	if d == nil {
		return Exclusive
	}
	return d.merge
}

// start is a fresh initial value.
func (d *keyDef[V, U]) start() V {
	if d.cfg.Initial == nil {
		var zero V
		return zero
	}
	return d.copied(d.cfg.Initial())
}

func (d *keyDef[V, U]) copied(v V) V {
	if d.cfg.Clone != nil {
		return d.cfg.Clone(v)
	}
	return v
}

// current is the value of a cell, safe to hand to user code.
func (d *keyDef[V, U]) current(c cell) V {
	if b, ok := c.(*box[V]); ok {
		return d.copied(b.value)
	}
	return d.start()
}

func (d *keyDef[V, U]) cleared(at *stamp) cell { return &blank{at} }

func (d *keyDef[V, U]) holds(c cell) bool {
	_, ok := c.(*box[V])
	return ok
}

func (d *keyDef[V, U]) read(c cell) (any, bool) { return d.current(c), d.holds(c) }

func (d *keyDef[V, U]) encode(c cell) ([]byte, error) { return d.cfg.Codec.encode(d.current(c)) }

func (d *keyDef[V, U]) decode(raw []byte, version int) (importOp, error) {
	v, err := decodeVersion(d.cfg.Codec, version, d.version, d.cfg.Migrate, raw)
	if err != nil {
		return nil, err
	}
	return func(at *stamp) cell { return &box[V]{at, v} }, nil
}

func (d *keyDef[V, U]) diff(before, after cell, yield func(Change) bool) bool {
	c := Change{Key: d.handle, Had: d.holds(before), Has: d.holds(after)}
	if !c.Had && !c.Has {
		return true
	}
	c.Before, c.After = d.current(before), d.current(after)
	return yield(c)
}

func (d *keyDef[V, U]) inspect(c cell, visit func(any)) {
	if b, ok := c.(*box[V]); ok {
		visit(&b.value)
	}
}
