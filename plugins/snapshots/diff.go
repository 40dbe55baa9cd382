package snapshots

import (
	"context"
	"slices"

	"github.com/ddd26017/fixpoint/state"
)

// ChangeKind says how a file differs.
type ChangeKind string

// The kinds of changes.
const (
	Added    ChangeKind = "added"
	Modified ChangeKind = "modified" // another content
	Retyped  ChangeKind = "retyped"  // another mode: executable or not, a link or not
	Deleted  ChangeKind = "deleted"
)

// Change is a file that differs.
type Change struct {
	Path   string     `json:"path"`
	Kind   ChangeKind `json:"kind"`
	Before int64      `json:"before"` // size in bytes, 0 when there was none
	After  int64      `json:"after"`
}

func change(before file, had bool, after file, has bool) Change {
	c := Change{Path: after.Path, Kind: Modified, Before: before.Size, After: after.Size}
	switch {
	case !had:
		c.Kind = Added
	case !has:
		c.Path, c.Kind = before.Path, Deleted
	case before.Mode != after.Mode:
		c.Kind = Retyped
	}
	return c
}

// compare returns what differs between two lists of files, by path.
func compare(before, after []file) []Change {
	was, is := index(before), index(after)
	var all []Change
	for _, f := range before {
		if now, ok := is[f.Path]; !ok || now.ID != f.ID || now.Mode != f.Mode {
			all = append(all, change(f, true, now, ok))
		}
	}
	for _, f := range after {
		if _, ok := was[f.Path]; !ok {
			all = append(all, change(file{}, false, f, true))
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return byPath(file{Path: a.Path}, file{Path: b.Path}) })
	return all
}

// Diff returns what differs from a snapshot of a thread's state to another, or to the
// present workspace when to is "". It writes nothing. Two snapshots from different
// stores cannot be compared.
func (p *Plugin) Diff(ctx context.Context, snap *state.Snapshot, from, to string) ([]Change, error) {
	if _, err := p.options(); err != nil {
		return nil, err
	}
	a, err := find(snap, from)
	if err != nil {
		return nil, err
	}
	b := a
	if to != "" {
		if b, err = find(snap, to); err != nil {
			return nil, err
		}
		if a.Store != b.Store {
			return nil, ErrStores
		}
	}
	defer p.lock()()
	w, err := p.open(ctx, a.Store)
	if err != nil {
		return nil, err
	}
	defer w.close()
	before, err := w.store.list(ctx, a.Tree)
	if err != nil {
		return nil, err
	}
	var after []file
	if to == "" {
		after, err = w.scan(ctx, before, false)
	} else {
		after, err = w.store.list(ctx, b.Tree)
	}
	if err != nil {
		return nil, err
	}
	return compare(before, after), nil
}
