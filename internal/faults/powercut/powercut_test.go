package powercut_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/loopfs"
	"github.com/ddd26017/fixpoint/internal/faults/powercut"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
)

func TestMain(m *testing.M) {
	child.Main(writer.Part)
	os.Exit(m.Run())
}

// Whichever writes reached the disk, what was acknowledged is there.
func TestOrder(t *testing.T) {
	t.Parallel()
	f, err := powercut.Order(t.Context(), t.TempDir(), powercut.Plan{Cuts: 160, Seed: 1})
	require.NoError(t, err)
	require.NoError(t, f.Err())
	t.Log(f)
}

// Writes that reach the disk in another order lose something, which shows that the
// other test would see it.
func TestControl(t *testing.T) {
	t.Parallel()
	f, err := powercut.Order(t.Context(), t.TempDir(), powercut.Plan{Cuts: 80, Seed: 1, NoSync: true})
	require.NoError(t, err)
	require.NoError(t, f.Err())
	t.Log(f)
	f.NoSync = false
	require.ErrorContains(t, f.Err(), "are lost")
	f.NoSync, f.Lost = true, 0
	require.ErrorContains(t, f.Err(), "sees nothing")
}

// Where files cannot be mounted, the check says so and shows nothing.
func TestDeviceNeedsRights(t *testing.T) {
	t.Parallel()
	plan := powercut.Plan{Cuts: 1, Seed: 1}
	if loopfs.Usable() == nil {
		plan.Cuts = 0 // the command does the real thing
	}
	f, err := powercut.Device(t.Context(), t.TempDir(), plan)
	require.Equal(t, loopfs.Usable(), err)
	require.Error(t, f.Err())
}
