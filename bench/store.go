package bench

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/state"
)

// storeRows are P6 and P7: commits and reads of package state by itself.
func storeRows() []Row {
	table := Row{
		ID: "P6", Name: "commit 1 of 100,000 table entries",
		Baseline: "1 of 10", Impl: "few",
		Work: CommitEntry(100_000), Base: CommitEntry(10),
	}
	byTime, byBytes := table, table
	byTime.Case, byTime.Limit = "entries=100000", 8
	byBytes.Case, byBytes.Measure, byBytes.Limit = "entries=100000/of=bytes", Bytes, 4
	byBytes.Name += ", bytes"
	return []Row{
		{
			ID: "P6", Case: "keys=1000", Name: "commit 1 of 1,000 registered keys",
			Baseline: "1 of 10", Impl: "few", Limit: 3,
			Work: CommitKey(1000), Base: CommitKey(10),
		},
		byTime, byBytes,
		{
			ID: "P7", Case: "read=snapshot", Name: "take a snapshot",
			Baseline: "load of an atomic pointer", Impl: "atomic", Limit: 6, NoAllocs: true,
			Work: TakeSnapshot(), Base: plain(loadPointer()),
		},
		{
			ID: "P7", Case: "read=key", Name: "read a registered key",
			Baseline: "slice index through an interface", Impl: "slice", Limit: 4, NoAllocs: true,
			Work: ReadKey(), Base: plain(readSlice()),
		},
		{
			ID: "P7", Case: "read=busy", Name: "snapshot and read during 1,000 commits/s",
			Baseline: "the same while nobody commits", Impl: "idle", Limit: 1.2,
			Work: readFresh(time.Millisecond), Base: readFresh(0),
		},
	}
}

// cells returns a store of n registered keys that all have a value.
func cells(n int) (*state.Store, []state.Cell[int], error) {
	keys := make([]state.Cell[int], n)
	all := make([]state.AnyKey, n)
	fill := make([]state.Update, n)
	for i := range n {
		keys[i] = state.NewCell[int](fmt.Sprintf("cell.%04d", i), state.Options[int]{})
		all[i], fill[i] = keys[i], keys[i].With(1000+i)
	}
	store, err := state.NewStore(state.Config{Keys: all})
	if err != nil {
		return nil, nil, err
	}
	_, err = store.Commit(state.Batch{Updates: fill})
	return store, keys, err
}

// scatter visits 0 to n-1 in an order without neighbours, again and again, so that a
// large tree is not met in the cache.
type scatter struct{ at, n int }

func (s *scatter) next() int {
	s.at = (s.at + 7919) % s.n // a prime that divides none of the sizes
	return s.at
}

// CommitKey is the work of one commit to one of n registered keys, while the snapshot
// before it is held.
func CommitKey(n int) Work {
	return func(measure func(func(int) error) error) error {
		store, keys, err := cells(n)
		if err != nil {
			return err
		}
		order := scatter{n: n}
		return measure(commits(store, func(i int) state.Update { return keys[order.next()].With(i) }))
	}
}

// CommitEntry is the work of one commit to one of the n entries of a table, while the
// snapshot before it is held.
func CommitEntry(n int) Work {
	return func(measure func(func(int) error) error) error {
		table := state.NewTable[int]("table", state.Options[int]{})
		store, err := state.NewStore(state.Config{Keys: []state.AnyKey{table}})
		if err != nil {
			return err
		}
		fill := make([]state.Update, n)
		for i := range n {
			fill[i] = table.Put(i, i)
		}
		if _, err := store.Commit(state.Batch{Updates: fill}); err != nil {
			return err
		}
		order := scatter{n: n}
		return measure(commits(store, func(i int) state.Update { return table.Put(order.next(), i) }))
	}
}

// commits is a step that commits one update at a time and holds the snapshot before.
func commits(store *state.Store, update func(i int) state.Update) func(int) error {
	var held *state.Snapshot
	i := 1000 // values that small are not boxed
	return each(func() error {
		held = store.Snapshot()
		i++
		_, err := store.Commit(state.Batch{Base: held, Updates: []state.Update{update(i)}})
		return err
	})
}

// sink takes what is read, so that no loop over reads is compiled away.
var sink atomic.Int64

// TakeSnapshot is the work of taking a snapshot of a store with 16 keys.
func TakeSnapshot() Work {
	return func(measure func(func(int) error) error) error {
		store, _, err := cells(16)
		if err != nil {
			return err
		}
		first := store.Snapshot()
		return measure(func(n int) error {
			same := int64(0)
			for range n {
				if store.Snapshot() == first {
					same++
				}
			}
			sink.Add(same)
			return nil
		})
	}
}

// loadPointer is the same loop over loads of an atomic pointer.
func loadPointer() func(int) error {
	var p atomic.Pointer[int]
	first := new(int)
	p.Store(first)
	return func(n int) error {
		same := int64(0)
		for range n {
			if p.Load() == first {
				same++
			}
		}
		sink.Add(same)
		return nil
	}
}

// ReadKey is the work of reading one of 16 registered keys of a snapshot.
func ReadKey() Work {
	return func(measure func(func(int) error) error) error {
		store, keys, err := cells(16)
		if err != nil {
			return err
		}
		snap := store.Snapshot()
		return measure(func(n int) error {
			sum := 0
			for i := range n {
				sum += keys[i&15].Get(snap)
			}
			sink.Add(int64(sum))
			return nil
		})
	}
}

// slots is the least that a store behind an interface can be.
type slots interface{ get(i int) any }

type sliceSlots []any

func (s sliceSlots) get(i int) any { return s[i] }

type noSlots struct{}

func (noSlots) get(int) any { return 0 }

// newSlots returns an interface whose type the compiler cannot know.
//
//go:noinline
func newSlots(n int) slots {
	if n == 0 {
		return noSlots{}
	}
	s := make(sliceSlots, n)
	for i := range s {
		s[i] = 1000 + i
	}
	return s
}

// readSlice is the same loop over a slice of boxed values behind an interface.
func readSlice() func(int) error {
	s := newSlots(16)
	return func(n int) error {
		sum := 0
		for i := range n {
			sum += s.get(i & 15).(int)
		}
		sink.Add(int64(sum))
		return nil
	}
}

// readFresh is the work of taking a snapshot and reading one of its keys, while
// another goroutine commits once in every interval; never when it is 0.
func readFresh(interval time.Duration) Work {
	return func(measure func(func(int) error) error) error {
		store, keys, err := cells(16)
		if err != nil {
			return err
		}
		return measure(func(n int) error {
			stop := commitEvery(interval, store, keys)
			sum := 0
			for i := range n {
				sum += keys[i&15].Get(store.Snapshot())
			}
			sink.Add(int64(sum))
			return stop()
		})
	}
}

// commitEvery commits in the background until the returned function is called.
func commitEvery(interval time.Duration, store *state.Store, keys []state.Cell[int]) (stop func() error) {
	if interval == 0 {
		return func() error { return nil }
	}
	quit := make(chan struct{})
	var errs []error
	var writer sync.WaitGroup
	writer.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			case <-tick.C:
				if _, err := store.Commit(state.Batch{Updates: []state.Update{keys[i&15].With(1000 + i)}}); err != nil {
					errs = append(errs, err)
				}
			}
		}
	})
	return func() error {
		close(quit)
		writer.Wait()
		return errors.Join(errs...)
	}
}
