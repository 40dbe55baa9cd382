package bench_test

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// BenchmarkCommit changes one entry of n while the former snapshot is held,
// against a Go map that is copied for each change.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		b.Run(fmt.Sprintf("entries=%d/impl=map", n), func(b *testing.B) {
			cur := make(map[int]int, n)
			for i := range n {
				cur[i] = i
			}
			var held map[int]int
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				held = cur
				cur = maps.Clone(cur)
				cur[i%n] = i
			}
			_ = held
		})
		b.Run(fmt.Sprintf("entries=%d/impl=fixpoint", n), func(b *testing.B) {
			table := state.NewTable[int]("table", state.Options[int]{})
			store, err := state.NewStore(state.Config{Keys: []state.AnyKey{table}})
			require.NoError(b, err)
			fill := make([]state.Update, n)
			for i := range n {
				fill[i] = table.Put(i, i)
			}
			_, err = store.Commit(state.Batch{Updates: fill})
			require.NoError(b, err)
			var held *state.Snapshot
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				held = store.Snapshot()
				if _, err := store.Commit(state.Batch{Base: held, Updates: []state.Update{table.Put(i%n, i)}}); err != nil {
					b.Fatal(err)
				}
			}
			_ = held
		})
	}
}

// BenchmarkCommitKeys changes one of n registered keys; its baseline is itself at
// ten keys.
func BenchmarkCommitKeys(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("keys=%d/impl=fixpoint", n), func(b *testing.B) {
			store, keys := cells(b, n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				base := store.Snapshot()
				if _, err := store.Commit(state.Batch{Base: base, Updates: []state.Update{keys[i%n].With(i)}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func cells(tb testing.TB, n int) (*state.Store, []state.Cell[int]) {
	keys := make([]state.Cell[int], n)
	all := make([]state.AnyKey, n)
	for i := range n {
		keys[i] = state.NewCell[int](fmt.Sprintf("cell.%04d", i), state.Options[int]{})
		all[i] = keys[i]
	}
	store, err := state.NewStore(state.Config{Keys: all})
	require.NoError(tb, err)
	return store, keys
}

// BenchmarkSnapshot takes a snapshot, against one load of an atomic pointer.
func BenchmarkSnapshot(b *testing.B) {
	b.Run("impl=atomic", func(b *testing.B) {
		var p atomic.Pointer[int]
		p.Store(new(int))
		b.ReportAllocs()
		for b.Loop() {
			if p.Load() == nil {
				b.Fatal("nil")
			}
		}
	})
	b.Run("impl=fixpoint", func(b *testing.B) {
		store, _ := cells(b, 16)
		b.ReportAllocs()
		for b.Loop() {
			if store.Snapshot() == nil {
				b.Fatal("nil")
			}
		}
	})
}

// BenchmarkGet reads one registered key, against a slice index through an interface.
func BenchmarkGet(b *testing.B) {
	b.Run("impl=slice", func(b *testing.B) {
		values := make([]any, 16)
		for i := range values {
			values[i] = i
		}
		sum := 0
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			sum += values[i&15].(int)
		}
		_ = sum
	})
	b.Run("impl=fixpoint", func(b *testing.B) {
		store, keys := cells(b, 16)
		snap := store.Snapshot()
		sum := 0
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			sum += keys[i&15].Get(snap)
		}
		_ = sum
	})
}
