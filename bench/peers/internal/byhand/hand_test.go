package byhand_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench/peers/internal/byhand"
	"github.com/ddd26017/fixpoint/bench/peers/internal/stores"
)

// counting is a store that counts its commits and how much each wrote.
type counting struct {
	stores.Store
	sizes []int
}

func (c *counting) Commit(updates []stores.Update) error {
	c.sizes = append(c.sizes, len(updates))
	return c.Store.Commit(updates)
}

func filled(t *testing.T, n int) *counting {
	t.Helper()
	s, err := stores.All()[0].Fill(n, stores.Zero)
	require.NoError(t, err)
	return &counting{Store: s}
}

// TestHandWrittenCommits shows how often the scheduler by hand commits: once a
// gather, once more for each hook that lost, once a round.
func TestHandWrittenCommits(t *testing.T) {
	own := filled(t, 64)
	require.NoError(t, byhand.CommitAll(own, byhand.OwnKeys(64)))
	require.Equal(t, []int{64}, own.sizes)

	sum := filled(t, 1)
	require.NoError(t, byhand.CommitSum(sum, byhand.AddOne(64)))
	require.Equal(t, []int{1}, sum.sizes)

	one := filled(t, 1)
	require.NoError(t, byhand.CommitRetry(one, byhand.OneKey(8)))
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1}, one.sizes)

	mixed := filled(t, 3)
	require.NoError(t, byhand.CommitRetry(mixed, append(byhand.OwnKeys(3), byhand.Increment(1))))
	require.Equal(t, []int{3, 1}, mixed.sizes, "those without a conflict commit together")
	require.NoError(t, stores.Want(mixed.View(), 1, 2))

	rounds := filled(t, 1)
	require.NoError(t, byhand.Rounds(rounds, 16))
	require.Len(t, rounds.sizes, 16)
}

// TestFailedHookCommitsNothing covers the errors of hooks.
func TestFailedHookCommitsNothing(t *testing.T) {
	absent := append(byhand.OwnKeys(2), byhand.Increment(5))
	for name, once := range map[string]func(stores.Store, []byhand.Hook) error{
		"all": byhand.CommitAll, "sum": byhand.CommitSum, "retry": byhand.CommitRetry,
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t, 2)
			require.EqualError(t, once(s, absent), "stores: there is no key 5")
			require.Empty(t, s.sizes)
		})
	}
}

// TestHooksOverlap shows that all hooks of a gather run at the same time, as those of
// Fixpoint do: each waits for all. If they did not, this would not end.
func TestHooksOverlap(t *testing.T) {
	const n = 64
	var came sync.WaitGroup
	came.Add(n)
	hooks := byhand.OwnKeys(n)
	for i, h := range hooks {
		hooks[i] = func(v stores.View) (stores.Update, error) {
			came.Done()
			came.Wait()
			return h(v)
		}
	}
	require.NoError(t, byhand.CommitAll(filled(t, n), hooks))
}
