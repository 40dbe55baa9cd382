package kept_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

func TestNewThreadID(t *testing.T) {
	store, err := kept.Create(filepath.Join(t.TempDir(), "deep", "store"))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{kept.Plugin()}, Journal: store.Journal})
	require.NoError(t, err)
	for _, step := range []struct{ written, next string }{
		{"other", "thread-1"}, {"thread-9", "thread-10"}, {"thread-10", "thread-11"}, {"thread-x", "thread-11"}, {"thread-2", "thread-11"},
	} {
		th, err := eng.OpenThread(t.Context(), step.written)
		require.NoError(t, err)
		var cmd phase.Command
		cmd.Update(kept.Key.With(kept.Record{Run: kept.RunID(step.written, 1), Runs: 1}))
		_, err = th.Submit(t.Context(), kept.Name, cmd)
		require.NoError(t, err)
		id, err := store.NewThreadID(t.Context())
		require.NoError(t, err)
		require.Equal(t, step.next, id)
	}
	all, err := store.Threads(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 5)
	require.Equal(t, "other.run-1", all[0].Record.Run)
}

func TestCheckThreadID(t *testing.T) {
	for id, good := range map[string]bool{
		"a": true, "thread-1": true, "A.b_c-9": true, "": false, "-a": false, "a/b": false, "a b": false, "ä": false,
		"a\n": false, strings.Repeat("a", 100): true, strings.Repeat("a", 101): false,
	} {
		err := kept.CheckThreadID(id)
		if good {
			require.NoError(t, err, id)
		} else {
			require.ErrorIs(t, err, kept.ErrThreadID, id)
		}
	}
}

// Ids of two processes that go on with one thread differ, since what the first one
// did moved it on.
func TestNewIDs(t *testing.T) {
	store, err := kept.Create(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{kept.Plugin()}, Journal: store.Journal})
	require.NoError(t, err)
	seen := map[string]bool{}
	for range 3 {
		next, err := store.NewIDs(t.Context(), "t")
		require.NoError(t, err)
		for range 3 {
			id := next()
			require.True(t, strings.HasPrefix(id, "t."), id)
			require.False(t, seen[id], id)
			seen[id] = true
		}
		th, err := eng.OpenThread(t.Context(), "t")
		require.NoError(t, err)
		var cmd phase.Command
		cmd.Update(kept.Key.With(kept.Record{Run: "t.run-1", Runs: len(seen)}))
		_, err = th.Submit(t.Context(), kept.Name, cmd)
		require.NoError(t, err)
	}
}

// A new folder of a store is not committed by accident, and one that was there is left
// as it was.
func TestStoresAreIgnored(t *testing.T) {
	for folder, want := range map[string]bool{filepath.Join(t.TempDir(), "new"): true, t.TempDir(): false} {
		for range 2 {
			store, err := kept.Create(folder)
			require.NoError(t, err)
			require.NoError(t, store.Close())
			text, err := os.ReadFile(filepath.Join(folder, ".gitignore"))
			require.Equal(t, want, err == nil, folder)
			if want {
				require.Equal(t, "*\n", string(text))
			}
		}
	}
}
