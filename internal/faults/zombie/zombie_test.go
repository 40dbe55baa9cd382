//go:build unix

package zombie_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/zombie"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func TestMain(m *testing.M) {
	child.Main(zombie.Worker)
	os.Exit(m.Run())
}

// Capability B6. An owner that was stopped for longer than its lease, and taken over,
// commits nothing more when it goes on; its run ends and says why.
func TestZombies(t *testing.T) {
	rep, err := zombie.Run(t.Context(), zombie.Options{
		Dir: t.TempDir(), Store: memstore.New(memstore.Options{}), Seed: 1, Rounds: 10, Lease: 50 * time.Millisecond,
	})
	require.NoError(t, err)
	require.NoError(t, rep.Err())
	require.Equal(t, 10, rep.Rounds)
	require.Equal(t, 10, rep.Fenced)
	require.Positive(t, rep.During)
	require.Less(t, rep.During, 10)
	require.Zero(t, rep.ByZombies)
	require.Zero(t, rep.Missing)
	t.Logf("%+v", *rep)
}

// lenient is a store that lets everybody write, whoever has the lease.
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

func (s lenient) Renew(_ context.Context, l engine.Lease, _ time.Duration) (engine.Lease, error) {
	return l, nil
}

// The check finds what a store lets in that fences nobody off.
func TestLenientStore(t *testing.T) {
	rep, _ := zombie.Run(t.Context(), zombie.Options{
		Dir: t.TempDir(), Store: lenient{memstore.New(memstore.Options{})}, Seed: 1, Rounds: 3, Lease: 50 * time.Millisecond,
	})
	require.Positive(t, rep.ByZombies)
	require.Error(t, rep.Err())
}
