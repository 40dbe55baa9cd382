package vector

import "slices"

// node is a tree of full blocks by number. It never changes, and all of its branches
// but the last have as many blocks as they can.
type node[T any] struct {
	height int         // of the nodes below; 0 for none
	below  []*node[T]  // at most Size
	blocks []*Block[T] // instead, at height 0
}

// capacity is how many blocks a node can have.
func capacity(height int) int { return Size << (sizeBits * height) }

// block returns block i, which must be there.
func (n *node[T]) block(i int) *Block[T] {
	for n.height > 0 {
		each := capacity(n.height - 1)
		n, i = n.below[i/each], i%each
	}
	return n.blocks[i]
}

// with returns the tree with b as block i, which is the number of blocks it has. A nil
// tree has none.
func (n *node[T]) with(i int, b *Block[T]) *node[T] {
	switch {
	case n == nil:
		return &node[T]{blocks: []*Block[T]{b}}
	case i == capacity(n.height):
		return &node[T]{height: n.height + 1, below: []*node[T]{n, lone(n.height, b)}}
	case n.height == 0:
		return &node[T]{blocks: slices.Concat(n.blocks, []*Block[T]{b})}
	}
	each := capacity(n.height - 1)
	last := i / each
	if last == len(n.below) {
		return &node[T]{height: n.height, below: slices.Concat(n.below, []*node[T]{lone(n.height-1, b)})}
	}
	next := &node[T]{height: n.height, below: slices.Clone(n.below)}
	next.below[last] = n.below[last].with(i%each, b)
	return next
}

// lone returns a node of some height with one block.
func lone[T any](height int, b *Block[T]) *node[T] {
	if height == 0 {
		return &node[T]{blocks: []*Block[T]{b}}
	}
	return &node[T]{height: height, below: []*node[T]{lone(height-1, b)}}
}
