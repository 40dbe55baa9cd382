package state

import (
	"cmp"
	"iter"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

// Set is a persistent sorted set in the state. Any number of batches may add
// elements; removing one touches that element exclusively. It is a small
// comparable handle, safe for concurrent use. The zero Set reads as empty and
// cannot be registered.
type Set[T cmp.Ordered] struct{ handle } // a table of elements by themselves

// NewSet makes a set. Faults of its options are reported by [NewStore].
// Options.Initial, Clone and Shared are not used: elements never alias.
func NewSet[T cmp.Ordered](name string, o Options[T]) Set[T] {
	o.Clone, o.Shared = nil, false
	d := newTableDef(name, Commutative, o, func(v T) T { return v })
	s := Set[T]{handle{&d.def}}
	d.handle = s
	return s
}

// Has reports whether v is in the set.
func (s Set[T]) Has(snap *Snapshot, v T) bool { return Table[T, T](s).Has(snap, v) }

// Len returns the number of elements.
func (s Set[T]) Len(snap *Snapshot) int { return Table[T, T](s).Len(snap) }

// All yields the elements in ascending order.
func (s Set[T]) All(snap *Snapshot) iter.Seq[T] { return pushseq.Keys(Table[T, T](s).All(snap)) }

// Add returns the update that adds elements. It touches them beside others,
// also those that the set has already.
func (s Set[T]) Add(items ...T) Update { return s.change(verbAdd, items) }

// Remove returns the update that removes elements. It touches them
// exclusively, also those that the set does not have.
func (s Set[T]) Remove(items ...T) Update { return s.change(verbRemove, items) }

func (s Set[T]) change(v verb, items []T) Update {
	if s.key() != nowhere && len(items) == 0 {
		return Update{}
	}
	return Table[T, T](s).update(v, items...)
}
