package state_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

func TestValuesWithoutTypes(t *testing.T) {
	f := newFields(t)
	empty := f.store.Snapshot()
	snap := commit(t, f.store, f.a.With(1), f.b.With(1), f.n.With(2), f.log.Append("x"), f.set.Add("q", "p"), f.calls.Put("c", 3))
	var order []string
	for k := range snap.Keys() {
		order = append(order, k.Name())
		require.True(t, snap.Has(k))
		_, ok := empty.Value(k)
		require.False(t, ok)
		v, ok := snap.Value(k)
		require.True(t, ok)
		switch v := v.(type) {
		case int, int64:
			require.Contains(t, []any{1, int64(2)}, v)
		case state.List[string]:
			require.Equal(t, []string{"x"}, v.Slice())
		case []string:
			require.Equal(t, []string{"p", "q"}, v)
		case state.Map[string, int]:
			require.Equal(t, 1, v.Len())
		default:
			t.Fatalf("%s has a %T", k.Name(), v)
		}
	}
	require.Equal(t, []string{"a", "b", "calls", "log", "n", "set"}, order)
	for range snap.Keys() {
		break
	}
	for k := range f.set.All(snap) {
		require.Equal(t, "p", k)
		break
	}
	require.Equal(t, 2, f.set.Len(snap))
	for range (*state.Snapshot)(nil).Keys() {
		t.Fatal("a nil snapshot has no keys")
	}
	require.Zero(t, (*state.Snapshot)(nil).Revision())
	require.Equal(t, state.ScopeRun, f.calls.Scope())
	require.Equal(t, state.Exclusive, f.calls.Merge())
	require.Equal(t, state.Exclusive, f.a.Merge())
	for _, k := range []state.AnyKey{f.set, f.log, f.n} {
		require.Equal(t, state.Commutative, k.Merge())
	}
}

// Two commits want a turn at once, and the first never ends it.
func TestASecondTurnDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *state.Store
		var k state.Key[int, int]
		hang := make(chan struct{})
		tries := map[int]int{}
		k = state.NewKey("k", state.KeyConfig[int, int]{Apply: func(v, u int) int {
			if u < 0 {
				if tries[u]++; tries[u] <= 4 {
					if _, err := s.Commit(by("inner", k.With(tries[u]))); err != nil {
						panic(err)
					}
				} else if u == -1 {
					<-hang
				}
			}
			return u
		}})
		s = newStore(t, k)
		go func() { _, _ = s.Commit(by("stuck", k.With(-1))) }()
		synctest.Wait()
		_, err := s.Commit(by("second", k.With(-2)))
		require.NoError(t, err)
		require.Equal(t, -2, k.Get(s.Snapshot()))
		close(hang)
		synctest.Wait()
		require.Equal(t, -1, k.Get(s.Snapshot()), "the stuck one is tried again and goes through")
	})
}
