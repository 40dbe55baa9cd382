package loopfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/loopfs"
)

// A copy has the same bytes, also where the file has holes and where it ends in one.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, size := range []int{0, 1, 64 << 10, 300_001} {
		content := make([]byte, size)
		for at := 70_000; at < min(size, 70_500); at++ {
			content[at] = byte(at)
		}
		require.NoError(t, os.WriteFile(from, content, 0o600))
		require.NoError(t, loopfs.Copy(t.Context(), from, to))
		copied, err := os.ReadFile(to)
		require.NoError(t, err)
		require.Equal(t, content, copied)
	}
	require.Error(t, loopfs.Copy(t.Context(), filepath.Join(dir, "none"), to))
}

// Without root the reason says so.
func TestUsable(t *testing.T) {
	t.Parallel()
	if err := loopfs.Usable(); os.Geteuid() != 0 {
		require.ErrorContains(t, err, "needs root")
	} else if err != nil {
		require.ErrorContains(t, err, "loopfs: ")
	}
}
