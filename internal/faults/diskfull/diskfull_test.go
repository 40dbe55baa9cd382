package diskfull_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/diskfull"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
)

func TestMain(m *testing.M) {
	child.Main(writer.Part)
	os.Exit(m.Run())
}

// A disk that is full stops the store with a clear error, and for no longer than that.
func TestFilter(t *testing.T) {
	t.Parallel()
	f, err := diskfull.Filter(t.Context(), t.TempDir(), 4, 1)
	require.NoError(t, err)
	require.Equal(t, 4, f.Rounds)
	require.Positive(t, f.Acked)
	require.Equal(t, 4*4*10, f.Later)
	t.Log(f)
}
