package state

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

// Cell is an Exclusive key that keeps the last write.
type Cell[V any] = Key[V, V]

// NewCell makes a Cell.
func NewCell[V any](name string, o Options[V]) Cell[V] {
	return NewKey(name, KeyConfig[V, V]{
		Scope: o.Scope, Initial: o.Initial, Check: o.Check, Clone: o.Clone, Shared: o.Shared,
		Codec: o.Codec, Version: o.Version, Migrate: o.Migrate, Transient: o.Transient,
	})
}

// Counter is a Commutative key whose updates are added to its value.
type Counter = Key[int64, int64]

// NewCounter makes a Counter.
func NewCounter(name string, o Options[int64]) Counter {
	return NewKey(name, KeyConfig[int64, int64]{
		Scope: o.Scope, Merge: Commutative, Initial: o.Initial, Check: o.Check,
		Apply: func(v, u int64) int64 { return v + u }, Clone: o.Clone, Shared: o.Shared,
		Codec: o.Codec, Version: o.Version, Migrate: o.Migrate, Transient: o.Transient,
	})
}
