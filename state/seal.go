package state

import (
	"hash/maphash"
	"reflect"
	"slices"

	"github.com/ddd26017/fixpoint/internal/memory"
	"github.com/ddd26017/fixpoint/internal/vector"
)

// Seal is a fingerprint of the values that were promised never to change. It
// finds code that breaks the promise. It is safe for concurrent use.
type Seal struct {
	snap *Snapshot
	seed maphash.Seed
	sums map[*def]uint64
}

// SealSnapshot fingerprints the values of all keys with Shared, following
// pointers, maps and slices, unexported fields included. It is meant for tests
// and costs as much as the values are large. Functions and channels count by
// identity. The values must not be written to meanwhile.
func SealSnapshot(s *Snapshot) *Seal {
	seal := &Seal{snap: s, seed: maphash.MakeSeed(), sums: map[*def]uint64{}}
	for k := range s.Keys() {
		if d := k.key(); d.shared && s.cell(d) != nil {
			seal.sums[d] = seal.sum(d)
		}
	}
	return seal
}

// Verify takes the fingerprints again. It returns a *MutationError that names
// the keys whose values changed in place.
func (s *Seal) Verify() error {
	var changed []string
	for d, sum := range s.sums {
		if s.sum(d) != sum {
			changed = append(changed, d.name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return &MutationError{Keys: changed}
}

func (s *Seal) sum(d *def) uint64 {
	return memory.Fingerprint(s.seed, reflect.ValueOf(s.snap.cell(d)), vector.Parts)
}
