package pushseq

import (
	"iter"
	"sync"
)

// Tap lets a function look at the values of a sequence until it is shut. It is safe for
// concurrent use.
type Tap[T any] struct {
	see  func(T)
	mu   sync.Mutex
	shut bool
}

// NewTap returns an open tap with a function that looks.
func NewTap[T any](see func(T)) *Tap[T] { return &Tap[T]{see: see} }

// On returns seq with a look at it: the function gets every value before the loop does.
// The sequence ends at the first value after the tap was shut. A nil seq stays nil.
func (t *Tap[T]) On(seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	if seq == nil {
		return nil
	}
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if !t.pass(v) || !yield(v, err) {
				return
			}
		}
	}
}

func (t *Tap[T]) pass(v T) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.shut {
		t.see(v)
	}
	return !t.shut
}

// Shut waits until the function has seen the value that it is looking at, if any, and
// shows it no more.
func (t *Tap[T]) Shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = true
}
