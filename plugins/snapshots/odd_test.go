//go:build unix

package snapshots_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is neither file nor link is left alone, and nothing waits for it.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		w := newPlace(t, mode, nil)
		w.put("a", "1")
		w.put("b", "1")
		w.take()
		w.remove("a")
		require.NoError(t, syscall.Mkfifo(filepath.Join(w.dir, "a"), 0o600))
		require.NoError(t, syscall.Mkfifo(filepath.Join(w.dir, "other"), 0o600))
		require.NoError(t, os.Symlink("loop", filepath.Join(w.dir, "loop")))
		w.put("b", "2")
		require.Equal(t, []string{"a"}, w.restore("s1").Kept)
		info, err := os.Lstat(filepath.Join(w.dir, "other"))
		require.NoError(t, err)
		require.Equal(t, fs.ModeNamedPipe, info.Mode().Type())
		require.NoFileExists(t, filepath.Join(w.dir, "loop"))
	}
}
