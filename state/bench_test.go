package state_test

import (
	"fmt"
	"testing"

	"github.com/ddd26017/fixpoint/state"
)

func cells(n int) ([]state.Cell[int], []state.AnyKey) {
	cells, keys := make([]state.Cell[int], n), make([]state.AnyKey, n)
	for i := range n {
		cells[i] = state.NewCell(fmt.Sprintf("cell%d", i), state.Options[int]{})
		keys[i] = cells[i]
	}
	return cells, keys
}

func BenchmarkSnapshotAndGet(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			c, keys := cells(n)
			s := newStore(b, keys...)
			commit(b, s, c[n/2].With(1))
			b.ReportAllocs()
			for b.Loop() {
				if c[n/2].Get(s.Snapshot()) != 1 {
					b.Fatal("wrong value")
				}
			}
		})
	}
}

func BenchmarkCommitOneOf(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			c, keys := cells(n)
			s := newStore(b, keys...)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				_, _ = s.Commit(state.Batch{Owner: "x", Updates: []state.Update{c[i%n].With(i)}})
			}
		})
	}
}

func BenchmarkCommitBatches(b *testing.B) {
	for _, n := range []int{8, 64} {
		c, keys := cells(n)
		run := func(name string, make func(i int) []state.Update) {
			b.Run(fmt.Sprintf("%s/batches=%d", name, n), func(b *testing.B) {
				s := newStore(b, keys...)
				base := s.Snapshot()
				batches := []state.Batch{}
				for i := range n {
					batches = append(batches, state.Batch{Owner: fmt.Sprint(i), Updates: make(i)})
				}
				b.ReportAllocs()
				for b.Loop() {
					for i := range batches {
						batches[i].Base = base
					}
					r, err := s.Commit(batches...)
					if err != nil || !r.Committed {
						b.Fatal(err)
					}
					base = r.Snapshot
				}
			})
		}
		n0 := state.NewCounter("n", state.Options[int64]{})
		table := state.NewTable[int]("table", state.Options[int]{})
		keys = append(keys, n0, table)
		run("own", func(i int) []state.Update { return []state.Update{c[i].With(i)} })
		run("conflict", func(i int) []state.Update { return []state.Update{c[0].With(i)} })
		run("counter", func(int) []state.Update { return []state.Update{n0.With(1)} })
		run("entries", func(i int) []state.Update { return []state.Update{table.Put(i, i)} })
	}
}

func BenchmarkTablePut(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			table := state.NewTable[int]("table", state.Options[int]{})
			s := newStore(b, table)
			var fill []state.Update
			for i := range n {
				fill = append(fill, table.Put(i, i))
			}
			commit(b, s, fill...)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				_, _ = s.Commit(state.Batch{Owner: "x", Updates: []state.Update{table.Put(i*7919%n, i)}})
			}
		})
	}
}

func BenchmarkLogAppend(b *testing.B) {
	log := state.NewLog("log", state.Options[int]{})
	s := newStore(b, log)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Commit(state.Batch{Owner: "x", Updates: []state.Update{log.Append(1)}})
	}
}

func BenchmarkNewStoreFromSchema(b *testing.B) {
	_, keys := cells(16)
	schema, err := state.NewSchema(keys...)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = state.NewStore(state.Config{Schema: schema})
	}
}
