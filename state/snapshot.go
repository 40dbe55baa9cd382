package state

import (
	"iter"
	"sync/atomic"
)

// Snapshot is an immutable view of a whole state at one revision. Taking one
// copies nothing, and old ones stay valid. Values are read through the keys:
// key.Get(snapshot). Snapshots are safe for concurrent use. A nil Snapshot
// reads as a state in which nothing was written.
type Snapshot struct {
	origin *origin
	schema *Schema
	rev    uint64
	root   []*chunk
	kept   []DumpEntry // imported entries of unknown keys, sorted
	inline [4]*chunk   // backs root when that is enough
}

// origin tells the snapshots of one store from those of others, without
// keeping the store alive.
type origin struct{ _ byte }

// Cells stand in chunks, so that a commit copies the root and the chunks it
// touches instead of every cell.
const (
	chunkBits = 4
	chunkSize = 1 << chunkBits
	chunkMask = chunkSize - 1
)

type chunk [chunkSize]cell

// stamp says when something was last changed, and by whom. Everything one
// batch writes shares one stamp; its revision is filled in when the commit is
// published, and nothing of it changes afterwards.
type stamp struct {
	rev   uint64
	owner string
}

// revision is 0 for something that never changed.
func (s *stamp) revision() uint64 {
	if s == nil {
		return 0
	}
	return s.rev
}

// cell is what a slot of the state holds: a *box, a *blank or an *entries. A
// cell is mutable while one draft owns it and frozen once published. A nil
// cell is a key that was never touched.
type cell interface {
	mark() *stamp // the last change
	holds() bool  // whether there is a value
}

// box holds a value. A box is also the update that writes its value, see [Key.With]:
// the first commit that applies it makes it the cell.
type box[V any] struct {
	at    atomic.Pointer[stamp]
	value V
}

func boxed[V any](at *stamp, v V) *box[V] {
	b := &box[V]{value: v}
	b.at.Store(at)
	return b
}

func (b *box[V]) mark() *stamp { return b.at.Load() }
func (b *box[V]) holds() bool  { return true }

// blank is a key after a reset: no value, but a last change.
type blank struct{ at *stamp }

func (b *blank) mark() *stamp { return b.at }
func (b *blank) holds() bool  { return false }

func holds(c cell) bool { return c != nil && c.holds() }

func lastChange(c cell) *stamp {
	if c == nil {
		return nil
	}
	return c.mark()
}

// Revision returns the number of the commit that made the snapshot; 0 before
// the first one.
func (s *Snapshot) Revision() uint64 {
	if s == nil {
		return 0
	}
	return s.rev
}

// Keys yields the registered keys by name.
func (s *Snapshot) Keys() iter.Seq[AnyKey] {
	if s == nil {
		return func(func(AnyKey) bool) {}
	}
	return s.schema.Keys()
}

// Has reports whether k is registered.
func (s *Snapshot) Has(k AnyKey) bool {
	if s == nil {
		return false
	}
	_, ok := s.schema.slot(defOf(k))
	return ok
}

// Value returns the value of k and whether one was written or imported, for
// code that does not know the key's type: a V of a Key, a List of a Log, a
// sorted slice of a Set, a Map of a Table. As with Get, the value is a copy if
// the key has Clone.
func (s *Snapshot) Value(k AnyKey) (any, bool) {
	d := defOf(k)
	if d == nowhere {
		return nil, false
	}
	c := s.cell(d)
	return d.impl.value(c), holds(c)
}

// ChangedAt returns the revision of the last change of k, which for a table
// is that of any entry; 0 for never.
func (s *Snapshot) ChangedAt(k AnyKey) uint64 { return lastChange(s.cell(defOf(k))).revision() }

func defOf(k AnyKey) *def {
	if k == nil {
		return nowhere
	}
	return k.key()
}

// cell returns nil for a key that is not registered or was never touched.
func (s *Snapshot) cell(d *def) cell {
	if s == nil {
		return nil
	}
	slot, ok := s.schema.slot(d)
	if !ok {
		return nil
	}
	return s.at(slot)
}

func (s *Snapshot) at(slot int) cell { return s.root[slot>>chunkBits][slot&chunkMask] }

func newSnapshot(s *Store) *Snapshot {
	snap := &Snapshot{origin: new(origin), schema: s.schema}
	snap.allot((len(s.schema.defs) + chunkMask) >> chunkBits)
	for i := range snap.root {
		snap.root[i] = &s.schema.empty
	}
	return snap
}

func (s *Snapshot) allot(chunks int) {
	if chunks <= len(s.inline) {
		s.root = s.inline[:chunks]
	} else {
		s.root = make([]*chunk, chunks)
	}
}
