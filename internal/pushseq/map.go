package pushseq

import "iter"

// Map returns the sequence of what fn makes of each value of seq.
func Map[T, U any](seq iter.Seq[T], fn func(T) U) iter.Seq[U] {
	return func(yield func(U) bool) {
		seq(func(v T) bool { return yield(fn(v)) })
	}
}

// Keys returns the sequence of the keys of seq.
func Keys[K, V any](seq iter.Seq2[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		seq(func(k K, _ V) bool { return yield(k) })
	}
}
