// Package vector has a list of which there can be many versions that share memory:
// putting items behind one gives a longer one, and mostly copies neither.
//
//	old := vector.List[int]{}.Append([]int{1, 2}, nil)
//	next := old.Append([]int{3}, nil) // old still has 2 items
//
// Lists are made of blocks, which others may use to the same end, see [Block]. A [Recent]
// is made of the last blocks of one, and remembers what was noted of some keys.
//
// It imports the standard library only.
package vector
