// Package sorted has a map by ascending key of which there can be many versions that
// share memory: a new one costs what it changes and not what it holds.
//
//	var old sorted.Map[string, int]
//	one := 1
//	old.Set("a", &one)
//	next := old.Derive()
//	next.Set("b", &one) // old has no "b"
//
// Equal entries of two versions are found by their pointers, see [Map.Diff].
//
// It imports the standard library and tidwall/btree.
package sorted
