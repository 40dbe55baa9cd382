package state

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/ddd26017/fixpoint/internal/vector"
)

// List is a persistent sequence: an immutable value, from which appending
// makes a longer one that shares its memory. The zero List is empty and ready.
// Lists are safe for concurrent use, including several goroutines appending to
// one list. Elements must not be changed in place.
type List[T any] struct {
	items vector.List[T]
	clone func(T) T
}

// ListOf returns a list of the given elements.
func ListOf[T any](items ...T) List[T] { return List[T]{}.Append(items...) }

// Len returns the number of elements.
func (l List[T]) Len() int { return l.items.Len() }

// At returns element i. It panics when i is out of range, as a slice does.
func (l List[T]) At(i int) T {
	if i < 0 || i >= l.Len() {
		panic(fmt.Sprintf("state: list index %d out of range with length %d", i, l.Len()))
	}
	return copied(l.clone, l.items.At(i))
}

// All yields every index and element in order.
func (l List[T]) All() iter.Seq2[int, T] { return l.Tail(l.Len()) }

// Tail yields the last n elements with their indexes, or all if there are
// fewer.
func (l List[T]) Tail(n int) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i, item := range l.items.Tail(n) {
			if !yield(i, copied(l.clone, item)) {
				return
			}
		}
	}
}

// Slice returns the elements in a slice that is the caller's own.
func (l List[T]) Slice() []T {
	items := make([]T, 0, l.Len())
	for _, item := range l.All() {
		items = append(items, item)
	}
	return items
}

// Append returns the list with the items behind its own elements.
func (l List[T]) Append(items ...T) List[T] {
	l.items = l.items.Append(items, l.clone)
	return l
}

// Extends reports whether l is earlier with elements appended. It looks at what memory
// they share, and may say no although it is.
func (l List[T]) Extends(earlier List[T]) bool { return l.items.Extends(earlier.items) }

// take is Append of items that are frozen, so that the list may keep them.
func (l List[T]) take(items []T) List[T] {
	l.items = l.items.Take(items)
	return l
}

// MarshalJSON writes an array.
func (l List[T]) MarshalJSON() ([]byte, error) { return json.Marshal(l.Slice()) }

// UnmarshalJSON replaces the list by the elements of an array.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	var items []T
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	*l = List[T]{clone: l.clone}.Append(items...)
	return nil
}
