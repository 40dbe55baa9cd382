package state

import (
	"encoding/json"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// List is a persistent sequence: an immutable value, from which appending
// makes a longer one that shares its memory. The zero List is empty and ready.
// Lists are safe for concurrent use, including several goroutines appending to
// one list. Elements must not be changed in place.
type List[T any] struct {
	full  *btree.Map[int, *block[T]] // complete blocks by number
	tail  *block[T]                  // the last block, with 1 to blockSize elements
	n     int
	clone func(T) T
}

const blockSize = 32

// block is an array that lists of one origin share. A slot belongs to the
// first list that claims it, so that appending to the newest list copies
// nothing; a list that lost the claim copies the block.
type block[T any] struct {
	claimed atomic.Int32
	items   []T // never resized
}

func (b *block[T]) claim(at int) bool {
	return at < len(b.items) && b.claimed.CompareAndSwap(int32(at), int32(at)+1)
}

// ListOf returns a list of the given elements.
func ListOf[T any](items ...T) List[T] { return List[T]{}.Append(items...) }

// Len returns the number of elements.
func (l List[T]) Len() int { return l.n }

// At returns element i. It panics when i is out of range, as a slice does.
func (l List[T]) At(i int) T {
	if i < 0 || i >= l.n {
		panic(fmt.Sprintf("state: list index %d out of range with length %d", i, l.n))
	}
	b := l.tail
	if number := i / blockSize; number < (l.n-1)/blockSize {
		b, _ = l.full.Get(number)
	}
	return copied(l.clone, b.items[i%blockSize])
}

// All yields every index and element in order.
func (l List[T]) All() iter.Seq2[int, T] { return l.Tail(l.n) }

// Tail yields the last n elements with their indexes, or all if there are
// fewer.
func (l List[T]) Tail(n int) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		at, more := max(l.n-max(n, 0), 0), true
		items := func(number int, b *block[T]) bool {
			for end := min((number+1)*blockSize, l.n); more && at < end; at++ {
				more = yield(at, copied(l.clone, b.items[at%blockSize]))
			}
			return more
		}
		if l.full != nil {
			l.full.Ascend(at/blockSize, items)
		}
		items(l.n/blockSize, l.tail)
	}
}

// Slice returns the elements in a slice that is the caller's own.
func (l List[T]) Slice() []T {
	items := make([]T, 0, l.n)
	for _, item := range l.All() {
		items = append(items, item)
	}
	return items
}

// Append returns the list with the items behind its own elements.
func (l List[T]) Append(items ...T) List[T] { return l.with(items, false) }

// with appends items, which the list may keep if they are frozen.
func (l List[T]) with(items []T, frozen bool) List[T] {
	for len(items) > 0 {
		at := l.n % blockSize
		if at == 0 && l.n > 0 {
			l.full = derive(l.full)
			l.full.Set(l.n/blockSize-1, l.tail)
			l.tail = nil
		}
		if at == 0 && frozen && (l.n == 0 || len(items) >= blockSize) { // they are the block, and it is full
			n := min(len(items), blockSize)
			l.tail = &block[T]{items: items[:n:n]}
			l.n, items = l.n+n, items[n:]
			continue
		}
		if l.tail == nil || !l.tail.claim(at) {
			want := at + len(items)
			if l.full != nil { // little beside the rest, and a commit that copies a block is saved whole
				want = blockSize
			}
			l.tail = l.tail.grown(at, want)
		}
		if l.tail.items[at] = items[0]; !frozen {
			l.tail.items[at] = copied(l.clone, items[0])
		}
		l.n, items = l.n+1, items[1:]
	}
	return l
}

// grown returns a new block with the first n items of b and slot n claimed,
// large enough for want items if a block can be.
func (b *block[T]) grown(n, want int) *block[T] {
	size := min(max(want, 2*n, 2), blockSize)
	next := &block[T]{items: make([]T, size)}
	if b != nil {
		copy(next.items, b.items[:n])
	}
	next.claimed.Store(int32(n) + 1)
	return next
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
