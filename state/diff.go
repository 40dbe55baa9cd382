package state

import (
	"cmp"
	"iter"
	"slices"
)

// Change is one difference between two snapshots: a key, or an entry of a
// table or set. It holds copies if the key has Clone.
type Change struct {
	Key    AnyKey
	Entry  any  // the table key or set element; nil for the whole key
	Before any  // the older value; for an unset key its initial value
	After  any  // the newer value, likewise
	Had    bool // whether a had a value
	Has    bool // whether b has one
}

// Diff yields what was written between the snapshots a and b of one store, by
// key name and then by entry. A value written again counts, also when it is
// equal. It costs a comparison of pointers for each key, and for each entry of
// the tables that differ. With a nil snapshot, or ones of different stores,
// every value of both is compared by place and listed.
func Diff(a, b *Snapshot) iter.Seq[Change] {
	var keys []*def
	if a != nil {
		keys = a.schema.byName
	}
	if b != nil && (a == nil || a.schema != b.schema) {
		// A key of both comes twice in a row, as names are unique in a schema.
		keys = slices.Concat(keys, b.schema.byName)
		slices.SortStableFunc(keys, func(x, y *def) int { return cmp.Compare(x.name, y.name) })
		keys = slices.Compact(keys)
	}
	return func(yield func(Change) bool) {
		for _, d := range keys {
			before, after := a.cell(d), b.cell(d)
			if before != after && !d.impl.diff(before, after, yield) {
				return
			}
		}
	}
}
