package effects_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/state"
)

var count = state.NewCounter("count", state.Options[int64]{})

func newStore(t testing.TB) *state.Store {
	t.Helper()
	s, err := state.NewStore(state.Config{Keys: []state.AnyKey{count}})
	require.NoError(t, err)
	return s
}

func add(t testing.TB, s *state.Store, n int64) *state.Snapshot {
	t.Helper()
	r, err := s.Commit(state.Batch{Owner: "test", Updates: []state.Update{count.With(n)}})
	require.NoError(t, err)
	return r.Snapshot
}

// Capability A8. A handler sees the state after the commit, and its failure takes nothing back.
func TestHandlerSeesThePostCommitSnapshot(t *testing.T) {
	s := newStore(t)
	var seen []int64
	h := table(t, effects.Registered{Plugin: "watch", Handler: act.Handle(func(_ context.Context, snap *state.Snapshot, _ string) error {
		seen = append(seen, count.Get(snap))
		return errors.New("too bad")
	})})
	d, err := effects.NewDispatcher(h, effects.Config{})
	require.NoError(t, err)

	var batch []effects.Delivery
	for range 2 {
		snap := add(t, s, 5)
		batch = append(batch, effects.Delivery{ID: effects.ID{Run: "run", Revision: snap.Revision()}, Effect: act.New("x"), Snapshot: snap})
	}
	require.Equal(t, []string{"1/0 error", "2/0 error"}, summaries(d.Deliver(t.Context(), batch)))
	require.Equal(t, []int64{5, 10}, seen, "each effect comes with the snapshot of its own commit")
	require.Equal(t, int64(10), count.Get(s.Snapshot()))
}

// Fault B38. Fault F06. A handler may read the store, commit, and deliver the effects of that commit; a slow one delays no
// reader and no other commit.
func TestHandlerHoldsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		var d *effects.Dispatcher
		var values []int64
		h := table(t, effects.Registered{Plugin: "p", Handler: act.Handle(func(ctx context.Context, snap *state.Snapshot, what string) error {
			values = append(values, count.Get(s.Snapshot()))
			if what == "commits" {
				next := add(t, s, 1)
				require.Greater(t, next.Revision(), snap.Revision())
				d.Deliver(ctx, []effects.Delivery{{ID: effects.ID{Run: "run", Revision: next.Revision()}, Effect: act.New("reads"), Snapshot: next}})
				time.Sleep(time.Second)
			}
			return nil
		})})
		d, err := effects.NewDispatcher(h, effects.Config{})
		require.NoError(t, err)
		first := add(t, s, 1)

		var wg sync.WaitGroup
		var got []effects.Outcome
		wg.Go(func() {
			got = d.Deliver(t.Context(), []effects.Delivery{{ID: effects.ID{Run: "run", Revision: first.Revision()}, Effect: act.New("commits"), Snapshot: first}})
		})
		synctest.Wait()
		start := time.Now()
		require.Equal(t, int64(2), count.Get(s.Snapshot()))
		require.Equal(t, int64(3), count.Get(add(t, s, 1)))
		require.Zero(t, time.Since(start), "the slow handler delays neither reads nor commits")
		wg.Wait()
		require.Equal(t, []string{"1/0 ok", "2/0 ok"}, summaries(got))
		require.Equal(t, []int64{1, 3}, values)
	})
}
