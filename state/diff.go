package state

import "iter"

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
	return func(yield func(Change) bool) {
		for d := range bothKeys(a, b) {
			before, after := a.cell(d), b.cell(d)
			if before != after && !d.impl.diff(before, after, yield) {
				return
			}
		}
	}
}

// bothKeys yields the keys of two snapshots by name.
func bothKeys(a, b *Snapshot) iter.Seq[*def] {
	var left, right []*def
	if a != nil {
		left = a.schema.byName
	}
	if b != nil && (a == nil || a.schema != b.schema) {
		right = b.schema.byName
	}
	return func(yield func(*def) bool) {
		i, j := 0, 0
		for i < len(left) || j < len(right) {
			var d *def
			if j == len(right) || i < len(left) && left[i].name <= right[j].name {
				d = left[i]
				if j < len(right) && right[j] == d {
					j++
				}
				i++
			} else {
				d = right[j]
				j++
			}
			if !yield(d) {
				return
			}
		}
	}
}
