package vector

import "sync/atomic"

const sizeBits = 5

// Size is how many items a block can have.
const Size = 1 << sizeBits

// Block is an array that versions of one origin share, each of which knows how many
// of the first items are its own. A slot belongs to the first that claims it, so
// that adding to the newest version copies nothing; who lost the claim copies the
// block. Items in slots that were claimed must not change. Blocks are safe for
// concurrent use. A nil Block has no slots.
type Block[T any] struct {
	claimed atomic.Int32
	Items   []T // never resized
}

// Claim returns a block with the first n items of b, whose slot n is the caller's to
// write: b itself, or else a copy that is large enough for want items if a block can
// be. n is less than Size.
func (b *Block[T]) Claim(n, want int) *Block[T] {
	if b != nil && n < len(b.Items) && b.claimed.CompareAndSwap(int32(n), int32(n)+1) {
		return b
	}
	next := &Block[T]{Items: make([]T, min(max(want, 2*n, 2), Size))}
	if b != nil {
		copy(next.Items, b.Items[:n])
	}
	next.claimed.Store(int32(n) + 1)
	return next
}
