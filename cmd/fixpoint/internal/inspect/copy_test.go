package inspect_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
)

// ownTemp makes a folder of the test's own for temporary files.
func ownTemp(t *testing.T) string {
	t.Helper()
	temp := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, temp)
	}
	return temp
}

// Copies of stores hold what stores do. One is not left behind: neither by who reads it,
// even if that is killed meanwhile, nor for long by one who was killed while it was made.
func TestCopiesAreNotLeft(t *testing.T) {
	s := newShop(t)
	s.run("a", 1, 3, "")
	temp := ownTemp(t)
	old := time.Now().Add(-2 * time.Hour)
	folder := func(name string, files ...string) string {
		path := filepath.Join(temp, name)
		require.NoError(t, os.Mkdir(path, 0o700))
		for _, file := range files {
			require.NoError(t, os.WriteFile(filepath.Join(path, file), []byte("x"), 0o600))
		}
		require.NoError(t, os.Chtimes(path, old, old))
		return path
	}
	stale := folder("fixpoint-inspect-1", filepath.Base(kept.File("")))
	bare := folder("fixpoint-inspect-2")
	others := folder("fixpoint-inspect-3", "notes")
	foreign := folder("other-1", filepath.Base(kept.File("")))
	fresh := folder("fixpoint-inspect-4", filepath.Base(kept.File("")))
	require.NoError(t, os.Chtimes(fresh, time.Now(), time.Now()))

	require.Len(t, s.read().View().Runs, 1)
	require.NoDirExists(t, stale)
	require.NoDirExists(t, bare)
	for _, path := range []string{filepath.Join(others, "notes"), kept.File(foreign), kept.File(fresh)} {
		require.FileExists(t, path)
	}
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Len(t, left, 3, "nothing of its own")

	require.NoError(t, inspect.WithCopy(t.Context(), s.folder, func(store *kept.Store) error {
		ids, err := store.Journal.Threads(t.Context(), "", 10)
		require.Equal(t, []string{"a"}, ids)
		copies, _ := filepath.Glob(filepath.Join(temp, "fixpoint-inspect-*", filepath.Base(kept.File(""))))
		if runtime.GOOS != "windows" {
			require.Equal(t, []string{kept.File(fresh)}, copies, "what a killed process would leave")
		}
		return err
	}))
}
