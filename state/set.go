package state

import (
	"cmp"
	"iter"
	"slices"
)

// Set is a persistent sorted set in the state. Any number of batches may add
// elements; removing one touches that element exclusively. It is a small
// comparable handle, safe for concurrent use. The zero Set reads as empty and
// cannot be registered.
type Set[T cmp.Ordered] struct{ d *tableDef[T, struct{}] }

// NewSet makes a set. Faults of its options are reported by [NewStore].
// Options.Initial, Clone and Shared are not used: elements never alias.
func NewSet[T cmp.Ordered](name string, o Options[T]) Set[T] {
	d := &tableDef[T, struct{}]{set: true, elems: o, def: def{
		name: name, scope: o.Scope, merge: Commutative, hidden: o.Transient, version: o.Version,
	}}
	s := Set[T]{d}
	d.def.handle, d.def.impl = s, d
	return s
}

// Name returns the name the set was made with.
func (s Set[T]) Name() string { return s.key().nameOf() }

// Scope returns how long the elements live.
func (s Set[T]) Scope() Scope { return s.key().scopeOf() }

// Merge returns Commutative, which holds for Add.
func (s Set[T]) Merge() MergeStrategy { return s.key().mergeOf() }

func (s Set[T]) key() *def { return s.table().key() }

func (s Set[T]) table() Table[T, struct{}] { return Table[T, struct{}](s) }

// Has reports whether v is in the set.
func (s Set[T]) Has(snap *Snapshot, v T) bool { return s.table().Has(snap, v) }

// Len returns the number of elements.
func (s Set[T]) Len(snap *Snapshot) int { return s.table().Len(snap) }

// All yields the elements in ascending order.
func (s Set[T]) All(snap *Snapshot) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v := range s.table().All(snap) {
			if !yield(v) {
				return
			}
		}
	}
}

// Add returns the update that adds elements. It touches them beside others,
// also those that the set has already.
func (s Set[T]) Add(items ...T) Update { return s.change(verbAdd, kindEntry, items) }

// Remove returns the update that removes elements. It touches them
// exclusively, also those that the set does not have.
func (s Set[T]) Remove(items ...T) Update { return s.change(verbRemove, kindEntryExclusive, items) }

func (s Set[T]) change(verb string, k kind, items []T) Update {
	switch {
	case s.d == nil:
		return unregistered()
	case len(items) == 0:
		return Update{}
	}
	o := &entryOp[T, struct{}]{d: s.d, verb: verb, one: items[0]}
	if len(items) > 1 {
		o.many = slices.Clone(items)
	}
	return Update{d: &s.d.def, kind: k, op: o}
}

// Reset returns the update that removes every element. It touches all of them
// exclusively, present or not.
func (s Set[T]) Reset() Update { return resetUpdate(s.key()) }
