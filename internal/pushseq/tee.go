package pushseq

import "iter"

// Tee returns seq with a look at it: see gets every value before the loop does. The
// sequence ends when see returns false. A nil seq stays nil.
func Tee[T any](seq iter.Seq2[T, error], see func(T) bool) iter.Seq2[T, error] {
	if seq == nil {
		return nil
	}
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if !see(v) || !yield(v, err) {
				return
			}
		}
	}
}
