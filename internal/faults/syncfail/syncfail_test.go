package syncfail_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/syncfail"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
)

func TestMain(m *testing.M) {
	child.Main(writer.Part)
	os.Exit(m.Run())
}

// A sync that fails stops the store until it is opened again, and loses nothing.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	f, err := syncfail.Run(t.Context(), t.TempDir(), 6, 1)
	require.NoError(t, err)
	require.Equal(t, 6, f.Rounds)
	require.Positive(t, f.Acked)
	require.GreaterOrEqual(t, f.Later, 6*5)
	t.Log(f)
}
