package decide_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/decide"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func TestMain(m *testing.M) {
	child.Main(decide.Racer, decide.Clerk)
	os.Exit(m.Run())
}

// Capability A14. Two processes decide about one waiting run at the same time, with
// leases and without, by one decision and by two, once and twice at once: it goes on
// once.
func TestRace(t *testing.T) {
	rep, err := decide.Race(t.Context(), decide.RaceOptions{
		Dir: t.TempDir(), Store: memstore.New(memstore.Options{}), Seed: 1, Rounds: 32,
	})
	require.NoError(t, err)
	require.NoError(t, rep.Err())
	require.Equal(t, 32, rep.Rounds)
	require.Equal(t, 32, rep.Won)
	require.Equal(t, 32, rep.Bodies)
	require.Equal(t, rep.Deliveries, rep.Won+rep.Repeated+rep.Refused)
	require.Equal(t, 48, rep.Known, "both repeat the one decision, or the winner its own")
	t.Logf("%+v", *rep)
}

// Capability A14. Capability A18. Runs are suspended and resumed by processes that are
// killed: none is lost, and none is resumed twice.
func TestKill(t *testing.T) {
	rep, err := decide.Kill(t.Context(), decide.KillOptions{Dir: t.TempDir(), Seed: 1, Threads: 30, Lines: 20})
	require.NoError(t, err)
	require.NoError(t, rep.Err())
	require.Zero(t, rep.Lost)
	require.Zero(t, rep.Double)
	require.GreaterOrEqual(t, rep.Kills, 2)
	t.Logf("%+v", *rep)
}

// lenient is a store without compare-and-set.
type lenient struct{ *memstore.Store }

func (s lenient) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	believed := c.Base + 1
	_, err := s.Store.Append(ctx, c)
	for errors.Is(err, engine.ErrFenced) || errors.Is(err, engine.ErrJournalConflict) {
		image, failed := s.Load(ctx, c.Thread, 0)
		if failed != nil {
			return 0, failed
		}
		c.Base, c.Epoch = image.Revision, image.Epoch
		_, err = s.Store.Append(ctx, c)
	}
	return believed, err
}

// The check finds runs that two processes resumed.
func TestRaceOnALenientStore(t *testing.T) {
	rep, _ := decide.Race(t.Context(), decide.RaceOptions{
		Dir: t.TempDir(), Store: lenient{memstore.New(memstore.Options{})}, Seed: 1, Rounds: 8,
	})
	require.Greater(t, rep.Won, rep.Rounds)
	require.Error(t, rep.Err())
}
