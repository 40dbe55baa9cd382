package crashpoint_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/crashpoint"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
)

func TestMain(m *testing.M) {
	child.Main(writer.Part)
	os.Exit(m.Run())
}

// A process dies at every point of a commit; what was acknowledged stays.
func TestBolt(t *testing.T) {
	t.Parallel()
	f, err := crashpoint.Bolt(t.Context(), t.TempDir(), 1, 5)
	require.NoError(t, err)
	require.GreaterOrEqual(t, f.Points, 20)
	require.Equal(t, 25, f.Points+f.Passed)
	require.Positive(t, f.Landed, "a commit that nobody was told of")
	t.Log(f)
}

// The same at every append over a connection.
func TestMemory(t *testing.T) {
	t.Parallel()
	f, err := crashpoint.Memory(t.Context(), 1, 40)
	require.NoError(t, err)
	require.Equal(t, 40, f.Points)
	require.Positive(t, f.Landed)
	require.Less(t, f.Landed, 40)
	t.Log(f)
}
