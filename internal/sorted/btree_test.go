package sorted_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/btree"
)

// These tests are about the trees under this package and not about its API.
// They hold down what it relies on, and what it must not do: the unsafe forms
// are described here, the safe ones run, and the race detector watches them.

type tree = btree.Map[int, *int]

func grow(n int) *tree {
	m := btree.NewMap[int, *int](8)
	for i := range n {
		m.Set(i, &i)
	}
	return m
}

func fromHeader(frozen *tree) *tree {
	local := *frozen
	return local.Copy()
}

// Trap: frozen.Copy() writes the id of frozen, so two goroutines that copy one
// tree race. Safe: copy the header, and copy that. Only the local header is
// written, and the nodes of the frozen tree are left alone.
func TestTrapCopyWritesItsSource(t *testing.T) {
	frozen := grow(1000)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 50 {
				next := fromHeader(frozen)
				next.Set(i, &g)
				next.Delete(500 + i)
				next.Set(1000+i, &g)
				if got, _ := next.Get(i); got != &g || next.Len() != 1000 {
					t.Error("the derived tree is wrong")
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1000, frozen.Len())
	sum := 0
	frozen.Scan(func(k int, v *int) bool {
		sum += *v - k
		return true
	})
	require.Zero(t, sum)
}

// Trap: a plain struct copy shares the id of the tree, so setting a value in
// the copy changes the original.
func TestTrapStructCopySharesNodes(t *testing.T) {
	a := grow(10)
	b := *a
	one := 1000
	b.Set(3, &one)
	got, _ := a.Get(3)
	require.Same(t, &one, got, "if this fails, btree has changed and the trap is gone")

	a = grow(10)
	c := fromHeader(a)
	c.Set(3, &one)
	got, _ = a.Get(3)
	require.Equal(t, 3, *got)
}

// Trap: Set and the Mut methods on a published tree race with its readers.
// Safe: one writer derives, changes the private tree and publishes it.
func TestTrapPublishedTreesAreFrozen(t *testing.T) {
	var published atomic.Pointer[tree]
	published.Store(grow(100))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				m := published.Load()
				n := 0
				for it := m.Iter(); it.Next(); {
					n++
				}
				m.Ascend(50, func(int, *int) bool { return true })
				if _, ok := m.Get(7); !ok || n != m.Len() {
					t.Error("a reader saw a tree in the making")
					return
				}
			}
		})
	}
	for i := range 2000 {
		next := fromHeader(published.Load())
		next.Set(i, &i)
		published.Store(next)
	}
	stop.Store(true)
	wg.Wait()
}

type loud struct{ copies *atomic.Int64 }

func (l loud) Copy() loud {
	l.copies.Add(1)
	return l
}

type boxed struct{ l loud }

// Trap: btree calls a Copy method of the values whenever it copies a node.
// Safe: values in a box have no such method.
func TestTrapCopyMethodOfValues(t *testing.T) {
	var copies atomic.Int64
	plain := btree.NewMap[int, loud](8)
	inBox := btree.NewMap[int, *boxed](8)
	for i := range 10 {
		plain.Set(i, loud{&copies})
		inBox.Set(i, &boxed{loud{&copies}})
	}
	local := *inBox
	local.Copy().Set(1, &boxed{loud{&copies}})
	require.Zero(t, copies.Load())
	other := *plain
	other.Copy().Set(1, loud{&copies})
	require.NotZero(t, copies.Load(), "if this fails, btree has changed and the trap is gone")
}

// Trap: the zero tree has degree 32, which costs twice the bytes per commit.
func TestTrapZeroTreeHasDefaultDegree(t *testing.T) {
	cost := func(m *tree) uint64 {
		for i := range 10_000 {
			m.Set(i, &i)
		}
		return bytesPerRun(func(i int) { fromHeader(m).Set(i, &i) })
	}
	require.Less(t, cost(btree.NewMap[int, *int](8)), cost(new(tree)))
}

// bytesPerRun returns how many bytes fn allocates on average.
func bytesPerRun(fn func(i int)) uint64 {
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range runs {
		fn(i)
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}
