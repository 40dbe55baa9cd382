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

// Owners of the commits that this package makes itself.
const (
	importOwner = "state.import"
	resetOwner  = "state.reset"
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
	entries, err := d.normalized()
	if err != nil {
		return now, err
	}
	batch := Batch{Owner: importOwner}
	var unknown []DumpEntry
	for _, e := range entries {
		k, ok := s.schema.named(e.Name)
		if !ok {
			if p == RefuseUnknown {
				return now, fmt.Errorf("%w: the dump has %q, which is not registered with this store", ErrUnknownKey, e.Name)
			}
			unknown = append(unknown, e)
			continue
		}
		var o importOp
		err := guard(func() (err error) {
			if e.Version > k.version {
				return newerVersion(e.Version, k.version)
			}
			o, err = k.impl.decode(e.Raw, e.Version)
			return err
		})
		if err != nil {
			return now, &DecodeError{Key: e.Name, Version: e.Version, Offset: -1, Err: err}
		}
		batch.Updates = append(batch.Updates, Update{d: k, kind: kindExclusive, op: o})
	}
	return s.commit([]Batch{batch}, amendment{
		force: true, minRev: d.Revision,
		keep: func(old *keptEntries) *keptEntries { return old.with(unknown) },
	})
}

// with returns the entries, replaced by or together with others.
func (k *keptEntries) with(others []DumpEntry) *keptEntries {
	if k == nil && len(others) == 0 {
		return nil
	}
	next := &keptEntries{list: slices.Clone(others)}
	if k != nil {
		for _, e := range k.list {
			if _, replaced := slices.BinarySearchFunc(others, e, byName); !replaced {
				next.list = append(next.list, e)
			}
		}
		slices.SortFunc(next.list, byName)
	}
	return next
}

// without returns the entries that are not of the scope.
func (k *keptEntries) without(scope Scope) *keptEntries {
	rest := slices.DeleteFunc(slices.Clone(k.list), func(e DumpEntry) bool { return e.Scope == scope })
	if len(rest) == 0 {
		return nil
	}
	return &keptEntries{list: rest}
}

func (k *keptEntries) has(scope Scope) bool {
	return k != nil && slices.ContainsFunc(k.list, func(e DumpEntry) bool { return e.Scope == scope })
}

// ResetScope takes every key of the scope that holds a value back to its
// initial value, in one commit, and drops the kept entries of unknown keys of
// that scope. There is no commit when there is nothing to reset.
func (s *Store) ResetScope(scope Scope) (Result, error) {
	for range turnTries {
		base := s.Snapshot()
		b := Batch{Owner: resetOwner, Base: base}
		for _, d := range s.schema.byName {
			switch {
			case d.scope != scope:
			case base.cell(d) != nil && d.impl.holds(base.cell(d)):
				b.Updates = append(b.Updates, resetUpdate(d))
			default:
				b.Reads = append(b.Reads, d.handle)
			}
		}
		more := amendment{}
		if base.kept.has(scope) {
			more.force = true
			more.keep = func(old *keptEntries) *keptEntries {
				if old == nil {
					return nil
				}
				return old.without(scope)
			}
		}
		result, err := s.commit([]Batch{b}, more)
		if err != nil || len(result.Rejected) == 0 {
			return result, err
		}
	}
	return Result{Snapshot: s.Snapshot()}, ErrBusy
}
