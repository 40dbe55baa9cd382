package ledger_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/ledger"
)

func keysOf(all *sync.Map) (keys []any) {
	all.Range(func(k, _ any) bool { keys = append(keys, k); return true })
	return keys
}

func TestLedger(t *testing.T) {
	var all sync.Map
	l := ledger.New[string, int](&all)
	other := ledger.New[string, int](&all)
	other.Add("x", 9)
	for i, key := range []string{"a", "b", "c", "d"} {
		l.Add(key, i)
	}
	require.False(t, l.Any())
	require.Empty(t, l.Take())
	l.Done("nobody", true)
	l.Done("c", true)
	l.Done("a", true)
	l.Done("b", false)
	l.Done("b", true) // it is closed
	require.True(t, l.Any())
	require.ElementsMatch(t, []any{9, 0, 2, 3}, keysOf(&all), "what failed is nobody's any more")

	taken := l.Take()
	require.Equal(t, []int{2, 0}, taken)
	require.False(t, l.Any())
	require.ElementsMatch(t, []any{9, 0, 2, 3}, keysOf(&all), "what is taken is not settled yet")
	l.Done("d", true)
	l.Return(taken)
	require.Equal(t, []int{2, 0, 3}, l.Take())
	l.Settled(2, 0, 3)
	require.ElementsMatch(t, []any{9}, keysOf(&all))
}

func TestLedgerAtTheSameTime(t *testing.T) {
	var all sync.Map
	l := ledger.New[int, int](&all)
	const n = 1000
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := range n {
				l.Add(w*n+i, w*n+i)
				l.Done(w*n+i, i%2 == 0)
			}
		})
	}
	settled := map[int]bool{}
	for range 100 {
		taken := l.Take()
		for _, e := range taken {
			settled[e] = true
		}
		l.Settled(taken...)
	}
	group.Wait()
	last := l.Take()
	l.Settled(last...)
	for _, e := range last {
		settled[e] = true
	}
	require.Len(t, settled, 2*n)
	require.Empty(t, keysOf(&all))
}
