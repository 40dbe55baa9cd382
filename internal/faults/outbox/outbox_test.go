package outbox_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/outbox"
)

// served are the parts of the tests with servers.
var served []child.Part

func TestMain(m *testing.M) {
	child.Main(append(served, outbox.Dispatcher)...)
	os.Exit(m.Run())
}

// Effects whose dispatcher dies are delivered again, under the same key, and none is
// missing.
func TestDispatcherDies(t *testing.T) {
	t.Parallel()
	for store, effects := range map[string]int{"memstore": 5000, "bolt": 800} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			f, err := outbox.Run(t.Context(), t.TempDir(), outbox.Plan{Store: store, Effects: effects, Every: effects / 8, Seed: 1})
			require.NoError(t, err)
			require.NoError(t, f.Err())
			require.Equal(t, (effects+19)/20, f.Commits)
			t.Log(f)
			f.Missing = 1
			require.ErrorContains(t, f.Err(), "never came")
			f.Missing, f.Duplicates = 0, 0
			require.ErrorContains(t, f.Err(), "sees nothing")
		})
	}
}
