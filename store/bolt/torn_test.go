package bolt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// A loss of power in the middle of a commit leaves some of its sectors on the disk, in
// any choice, but its meta page only after all others. Whatever the choice, the store
// opens without complaint as it was before the commit.
func TestTornCommit(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	random := rand.New(rand.NewPCG(7, 8))
	now := newClock()
	o := bolt.Options{NoSync: true, Now: now.Now}
	var base uint64
	add := func() (before, after []byte) {
		before = read(t, path)
		j := open(t, path, o)
		c := commit("t", base)
		c.Record = noise(random, random.IntN(6000))
		c.Effects = []engine.JournalEffect{{Lane: "mail", Body: noise(random, 100)}}
		if base%5 == 4 {
			c.Snapshot = noise(random, 10_000)
		}
		_, err := j.Append(t.Context(), c)
		require.NoError(t, err)
		require.NoError(t, j.Close())
		base++
		return before, read(t, path)
	}
	require.NoError(t, open(t, path, o).Close())
	for range 12 {
		before, after := add()
		for n := range 8 {
			torn := bytes.Clone(before)
			if random.IntN(2) == 0 { // the file had grown
				torn = append(torn, make([]byte, len(after)-len(before))...)
			}
			for at := 2 * os.Getpagesize(); at < len(torn); at += sector {
				if random.IntN(n+1) > 0 {
					copy(torn[at:at+sector], after[at:])
				}
			}
			if random.IntN(2) == 0 { // half of the new meta page, on top of all else
				torn = append(torn, make([]byte, len(after)-len(torn))...)
				copy(torn[2*os.Getpagesize():], after[2*os.Getpagesize():])
				for page := range 2 {
					at := page * os.Getpagesize()
					if !bytes.Equal(before[at:at+os.Getpagesize()], after[at:at+os.Getpagesize()]) {
						half := 16 + 1 + random.IntN(63)
						copy(torn[at:at+half], after[at:])
					}
				}
			}
			file := newPath(t)
			require.NoError(t, os.WriteFile(file, torn, 0o600))
			_, err := bolt.Verify(file, bolt.Options{})
			require.NoError(t, err)
			j := open(t, file, o)
			image, err := j.Load(t.Context(), "t", 0)
			require.NoError(t, err)
			require.Contains(t, []uint64{base - 1, base}, image.Revision)
			claims, err := j.Claim(t.Context(), "mail", "w", 100, 0)
			require.NoError(t, err)
			require.Len(t, claims, int(image.Revision), fmt.Sprint("torn ", n))
			_, err = j.Append(t.Context(), commit("t", image.Revision))
			require.NoError(t, err)
			require.NoError(t, j.Close())
			_, err = bolt.Verify(file, bolt.Options{})
			require.NoError(t, err)
		}
	}
}
