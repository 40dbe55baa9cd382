package steward_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/steward"
)

// The embedded files are those of examples/steward to the byte. Run go generate
// in this folder after a change there.
func TestCopiesAreEqual(t *testing.T) {
	const source = "../../../../examples/steward"
	entries, err := os.ReadDir(source)
	require.NoError(t, err)
	embedded, err := steward.Files.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, embedded, len(entries))
	for _, e := range entries {
		want, err := os.ReadFile(filepath.Join(source, e.Name()))
		require.NoError(t, err)
		got, err := steward.Files.ReadFile(e.Name())
		require.NoError(t, err, e.Name())
		require.Equal(t, string(want), string(got), e.Name())
	}
}
