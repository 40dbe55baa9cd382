package state

import (
	"fmt"
	"slices"
)

// UnknownPolicy says what an import does with entries of keys that the store
// does not have.
type UnknownPolicy uint8

const (
	// KeepUnknown keeps such entries as they are and exports them again, so
	// that a program without some plugin does not lose its data.
	KeepUnknown UnknownPolicy = iota
	// RefuseUnknown fails the import with ErrUnknownKey.
	RefuseUnknown
)

// Import replaces the value of every key that d has an entry for, in one
// commit, and leaves the other keys alone. Everything is decoded first: an
// error, which is a *DecodeError or wraps [ErrUnknownKey], leaves the state as
// it was. An entry of an older version than its key goes through Migrate; one
// of a newer version is refused with [ErrNewerVersion]. A key's own scope
// counts, not that of the entry. Checks do not run, since they are about
// changes. The new revision is above both the current one and that of d, so
// that no snapshot taken before is mistaken for a current one.
func (s *Store) Import(d Dump, p UnknownPolicy) (Result, error) {
	now := Result{Snapshot: s.Snapshot()}
	entries, err := d.checked()
	if err != nil {
		return now, err
	}
	batch := Batch{Owner: "state.import", quiet: true}
	var unknown []DumpEntry
	for _, e := range entries {
		k := s.schema.named[e.Name]
		if k == nil && p == RefuseUnknown {
			return now, fmt.Errorf("%w: the dump has %q, which is not registered with this store", ErrUnknownKey, e.Name)
		}
		if k == nil {
			unknown = append(unknown, e)
			continue
		}
		u, err := k.read(nil, DeltaEntry{DumpEntry: e})
		if err != nil {
			return now, e.fault(err)
		}
		batch.Updates = append(batch.Updates, u)
	}
	return s.commit([]Batch{batch}, func(next *Snapshot) {
		next.rev = max(next.rev, d.Revision+1)
		next.kept = slices.Concat(unknown, next.kept) // the new ones come first, and win
		slices.SortStableFunc(next.kept, byName)
		next.kept = slices.CompactFunc(next.kept, func(a, b DumpEntry) bool { return a.Name == b.Name })
	})
}

// ResetScope takes every key of the scope that holds a value back to its
// initial value, in one commit, and drops the kept entries of unknown keys of
// that scope. There is no commit when there is nothing to reset.
func (s *Store) ResetScope(scope Scope) (Result, error) {
	dropped := func(e DumpEntry) bool { return e.Scope == scope }
	for range commitTries {
		base := s.Snapshot()
		b := Batch{Owner: "state.reset", Base: base, Reads: make([]AnyKey, 0, len(s.schema.byName))}
		for _, d := range s.schema.byName {
			switch {
			case d.scope != scope:
			case holds(base.cell(d)):
				b.Updates = append(b.Updates, Update{d: d, verb: verbReset})
			default:
				b.Reads = append(b.Reads, d.handle) // it must not get a value meanwhile
			}
		}
		var amend func(*Snapshot)
		if slices.ContainsFunc(base.kept, dropped) {
			amend = func(next *Snapshot) { next.kept = slices.DeleteFunc(slices.Clone(next.kept), dropped) }
		}
		if result, err := s.commit([]Batch{b}, amend); err != nil || len(result.Rejected) == 0 {
			return result, err
		}
	}
	return Result{Snapshot: s.Snapshot()}, ErrBusy
}
