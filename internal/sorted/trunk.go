package sorted

import (
	"cmp"

	"github.com/tidwall/btree"
)

// trunk is the tree of a map.
type trunk[K cmp.Ordered, V any] = btree.Map[K, *V]

// degree halves the bytes of a copy-on-write change against btree's default 32.
const degree = 8

// derive returns a private tree that starts out equal to frozen. It is the one way
// this package makes a tree from another, because the plain ones are traps:
//
//   - frozen.Copy() writes to frozen, so two goroutines doing it race;
//   - a struct copy of a tree shares its copy-on-write identity, so that
//     setting a value in one changes the other;
//   - Set and the Mut methods on a published tree race with its readers.
//
// Copying the header first means that only the local header is written to.
func derive[K cmp.Ordered, V any](frozen *trunk[K, V]) *trunk[K, V] {
	if frozen == nil {
		return btree.NewMap[K, *V](degree)
	}
	local := *frozen
	return local.Copy()
}
