package vector

import "cmp"

// Recent remembers what was last noted of each of many keys, one note after another. It
// keeps the last blocks of a list of notes: a key that they do not have counts as noted
// when they begin, which is never too early but may be too late. A copy shares the blocks,
// as lists do. The zero Recent has no notes.
type Recent[K cmp.Ordered, V any] struct {
	floor V                     // the last note that is in no block
	high  K                     // no key above it was noted, so that new ones are in no block's way
	young *Block[note[K, V]]    // the last one, with n notes
	n     int                   // of young
	old   [2]*Block[note[K, V]] // full ones, the latest first
}

type note[K, V any] struct {
	key   K
	value V
}

// Last returns what was last noted of k, or, if that is forgotten or there was nothing,
// the last note that is forgotten. It is zero if k is above every key that was noted, and
// while nothing is forgotten.
func (r *Recent[K, V]) Last(k K) V {
	if k > r.high {
		var none V
		return none
	}
	n := r.n
	for _, b := range [...]*Block[note[K, V]]{r.young, r.old[0], r.old[1]} {
		for n--; b != nil && n >= 0; n-- {
			if b.Items[n].key == k {
				return b.Items[n].value
			}
		}
		n = Size
	}
	return r.floor
}

// Note notes something of k, in a Recent that is the caller's own.
func (r *Recent[K, V]) Note(k K, v V) {
	if r.n == Size {
		if lost := r.old[len(r.old)-1]; lost != nil {
			r.floor = lost.Items[Size-1].value
		}
		copy(r.old[1:], r.old[:])
		r.old[0], r.young, r.n = r.young, nil, 0
	}
	want := r.n + 1
	if r.old[0] != nil {
		want = Size // there will be more
	}
	r.young = r.young.Claim(r.n, want)
	r.young.Items[r.n] = note[K, V]{k, v}
	r.high = max(r.high, k)
	r.n++
}
