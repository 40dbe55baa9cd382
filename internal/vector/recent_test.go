package vector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/vector"
)

// Whatever is noted, what a Recent says of a key is not older than its last note, and
// exact for the latest ones. Copies go on by themselves.
func TestRecent(t *testing.T) {
	type version struct {
		r     vector.Recent[int, int]
		notes map[int]int
	}
	var kept []version
	now, at := version{notes: map[int]int{}}, 0
	note := func(v *version, k int) {
		at++
		v.r.Note(k, at)
		v.notes[k] = at
	}
	fork := func(v version) version {
		notes := map[int]int{}
		for k, at := range v.notes {
			notes[k] = at
		}
		return version{v.r, notes}
	}
	for i := range 5 * vector.Size {
		require.Zero(t, now.r.Last(1000), "above every key")
		if i%7 == 0 {
			kept = append(kept, fork(now))
			other := fork(now) // writes the same slots of the same blocks
			note(&other, i)
			kept = append(kept, other)
		}
		note(&now, (i*i)%41)
	}
	require.Greater(t, len(now.notes), 10)
	for n, v := range append(kept, now) {
		latest := 0
		for _, at := range v.notes {
			latest = max(latest, at)
		}
		for k, at := range v.notes {
			got := v.r.Last(k)
			require.GreaterOrEqual(t, got, at, "version %d, key %d", n, k)
			if at > latest-vector.Size && n == len(kept) {
				require.Equal(t, at, got, "version %d, key %d", n, k)
			}
		}
		if len(v.notes) < 5 {
			require.Zero(t, v.r.Last(-1), "nothing is forgotten yet")
		}
	}
}
