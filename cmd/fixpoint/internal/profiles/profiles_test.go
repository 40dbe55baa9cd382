package profiles_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/profiles"
	"github.com/ddd26017/fixpoint/state"
)

// Writers in several processes lose nothing of each other, and leave one file.
func TestUpdates(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "profiles")
	count := state.NewProfileKey("count", state.Options[int]{})
	add := func(n int) int { return n + 1 }
	n, err := count.Get(t.Context(), profiles.New(folder), "ann")
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoDirExists(t, folder, "who only looks makes nothing")
	var all sync.WaitGroup
	failed := make(chan error, 40)
	for range 8 {
		all.Go(func() {
			store := profiles.New(folder)
			for range 5 {
				_, err := count.Update(t.Context(), store, "ann", add)
				failed <- err
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	n, err = count.Get(t.Context(), profiles.New(folder), "ann")
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 40)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// Values are told apart by owner and name, and an old version cannot be built on.
func TestVersions(t *testing.T) {
	store := profiles.New(t.TempDir())
	save := func(owner, name, text string, base uint64) (uint64, error) {
		return store.SaveProfile(t.Context(), owner, name, []byte(text), base)
	}
	v, err := save("ann", "key", "one", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, v)
	v, err = save("ann", "key", "two", v)
	require.NoError(t, err)
	for _, old := range []uint64{0, 1} {
		_, err = save("ann", "key", "late", old)
		require.ErrorIs(t, err, state.ErrStale)
	}
	for _, other := range [][2]string{{"annk", "ey"}, {"bob", "key"}, {"ann", "other"}} {
		raw, version, err := store.LoadProfile(t.Context(), other[0], other[1])
		require.NoError(t, err)
		require.Nil(t, raw)
		require.Zero(t, version)
	}
	raw, version, err := store.LoadProfile(t.Context(), "ann", "key")
	require.NoError(t, err)
	require.Equal(t, "two", string(raw))
	require.Equal(t, v, version)
}
