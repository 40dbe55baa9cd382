//go:build unix

package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Capability A18. The steward is stopped by kill -9 in the middle of a step: an
// effect of its second tool call does not return.
func TestKilledInAStep(t *testing.T) {
	t.Parallel()
	dir, store := garden(t), t.TempDir()
	audit := filepath.Join(dir, ".fixpoint", "audit.jsonl")
	require.NoError(t, os.Mkdir(filepath.Dir(audit), 0o755))
	require.NoError(t, syscall.Mkfifo(audit, 0o600))
	c := child(t, "", "run", "--dir", dir, "--store", store)
	require.NoError(t, c.Start())
	// Opening the pipe waits for the first effect, which has then one write that it
	// can make; no more of them than the pipe holds are taken.
	pipe, err := os.OpenFile(audit, os.O_RDONLY, 0)
	require.NoError(t, err)
	_, err = io.ReadFull(pipe, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	require.NoError(t, pipe.Close())
	require.NoError(t, os.Remove(audit))
	require.NotEmpty(t, settled(t, store))
	finish(t, dir, store)
}
