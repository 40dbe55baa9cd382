package state

import "iter"

// Snapshot is an immutable view of a whole state at one revision. Taking one
// copies nothing, and old ones stay valid. Values are read through the keys:
// key.Get(snapshot). Snapshots are safe for concurrent use. A nil Snapshot
// reads as a state in which nothing was written.
type Snapshot struct {
	origin *origin
	schema *Schema
	rev    uint64
	root   []*chunk
	kept   *keptEntries
	inline [1]*chunk // backs root when one chunk is enough
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
	d := defOf(k)
	if s == nil || d == nil {
		return false
	}
	_, ok := s.schema.slot(d)
	return ok
}

// Value returns the value of k and whether one was written or imported, for
// code that does not know the key's type: a V of a Key, a List of a Log, a
// sorted slice of a Set, a Map of a Table. As with Get, the value is a copy if
// the key has Clone.
func (s *Snapshot) Value(k AnyKey) (any, bool) {
	d := defOf(k)
	if d == nil {
		return nil, false
	}
	return d.impl.read(s.cell(d))
}

// ChangedAt returns the revision of the last change of k, which for a table
// is that of any entry; 0 for never.
func (s *Snapshot) ChangedAt(k AnyKey) uint64 {
	d := defOf(k)
	if d == nil {
		return 0
	}
	return changedAt(s.cell(d))
}

func defOf(k AnyKey) *def {
	if k == nil {
		return nil
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
