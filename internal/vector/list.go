package vector

import (
	"fmt"
	"iter"
)

// List is a persistent sequence: an immutable value, from which appending makes a
// longer one that shares its memory. The zero List is empty and ready. Lists are safe
// for concurrent use, including several goroutines appending to one list. Items must
// not be changed in place.
type List[T any] struct {
	full *node[T]  // complete blocks by number
	tail *Block[T] // the last block, with 1 to Size items
	n    int
}

// Len returns the number of items.
func (l List[T]) Len() int { return l.n }

// At returns item i. It panics when i is out of range, as a slice does.
func (l List[T]) At(i int) T {
	if i < 0 || i >= l.n {
		panic(fmt.Sprintf("vector: index %d out of range with length %d", i, l.n))
	}
	return l.block(i).Items[i%Size]
}

// block returns the block with item i.
func (l List[T]) block(i int) *Block[T] {
	if number := i / Size; number < (l.n-1)/Size {
		return l.full.block(number)
	}
	return l.tail
}

// Tail yields the last n items with their indexes, or all if there are fewer.
func (l List[T]) Tail(n int) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for at := max(l.n-max(n, 0), 0); at < l.n; {
			items := l.block(at).Items
			for end := min((at/Size+1)*Size, l.n); at < end; at++ {
				if !yield(at, items[at%Size]) {
					return
				}
			}
		}
	}
}

// Append returns the list with the items behind its own, each of them copied with
// clone, which may be nil.
func (l List[T]) Append(items []T, clone func(T) T) List[T] {
	for len(items) > 0 {
		item := items[0]
		if clone != nil {
			item = clone(item)
		}
		l.open()
		l.put(item, len(items))
		items = items[1:]
	}
	return l
}

// Take is Append of items that nobody changes any more, so that the list may keep the
// slice itself.
func (l List[T]) Take(items []T) List[T] {
	for len(items) > 0 {
		l.open()
		if l.tail == nil && (l.n == 0 || len(items) >= Size) { // they are the block, and it is full
			n := min(len(items), Size)
			l.tail = &Block[T]{Items: items[:n:n]}
			l.n, items = l.n+n, items[n:]
			continue
		}
		l.put(items[0], len(items))
		items = items[1:]
	}
	return l
}

// open leaves the list a last block that is not full, or none.
func (l *List[T]) open() {
	if l.n > 0 && l.n%Size == 0 {
		l.full, l.tail = l.full.with(l.n/Size-1, l.tail), nil
	}
}

// put appends an item to an open list; it is the first of some.
func (l *List[T]) put(item T, some int) {
	at := l.n % Size
	want := at + some
	if l.full != nil { // little beside the rest, and who copied a block cannot tell that it extends another
		want = Size
	}
	l.tail = l.tail.Claim(at, want)
	l.tail.Items[at] = item
	l.n++
}

// Extends reports whether l is earlier with items appended. It may say no although it
// is.
func (l List[T]) Extends(earlier List[T]) bool {
	if earlier.n == 0 || l.n < earlier.n {
		return earlier.n == 0
	}
	return l.block(earlier.n-1) == earlier.tail
}
