package state_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// Fault B07.
func TestSnapshotsAreConsistentWhileAWriterCommits(t *testing.T) {
	const commits, readers = 10_000, 64
	x := state.NewCell("x", state.Options[int]{})
	y := state.NewCell("y", state.Options[int]{})
	table := state.NewTable[int]("table", state.Options[int]{})
	s := newStore(t, x, y, table)
	commit(t, s, x.With(0), y.With(0), table.Put(0, 0), table.Put(1, 0))
	var stop atomic.Bool
	var unequal atomic.Int64
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for !stop.Load() {
				snap := s.Snapshot()
				want := x.Get(snap)
				if y.Get(snap) != want {
					unequal.Add(1)
				}
				sum, n := 0, 0
				for _, v := range table.All(snap) {
					sum += v
					n++
				}
				if n < 2 || sum != 2*want {
					unequal.Add(1)
				}
				for k := range snap.Keys() {
					snap.Value(k)
				}
				runtime.Gosched()
			}
		})
	}
	for i := range commits {
		if _, err := s.Commit(by("w", x.With(i), y.With(i), table.Put(0, i), table.Put(1, i), table.Put(2+i%50, 0))); err != nil {
			t.Error(err)
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	require.Zero(t, unequal.Load())
}

// Fault B07.
func TestConcurrentPutsAllArrive(t *testing.T) {
	queue := state.NewTable[int]("queue", state.Options[int]{})
	log := state.NewLog("log", state.Options[int]{})
	n := state.NewCounter("n", state.Options[int64]{})
	s := newStore(t, queue, log, n)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			base := s.Snapshot()
			r, err := s.Commit(state.Batch{Base: base, Updates: []state.Update{queue.Put(i, i), log.Append(i), n.With(1)}})
			if err != nil || len(r.Rejected) > 0 {
				t.Errorf("commit %d: %v %v", i, err, r.Rejected)
			}
		})
	}
	wg.Wait()
	snap := s.Snapshot()
	require.Equal(t, 100, queue.Len(snap))
	require.EqualValues(t, 100, n.Get(snap))
	require.ElementsMatch(t, log.Get(snap).Slice(), collect(values(queue.All(snap))))
	require.EqualValues(t, 100, snap.Revision())
}

// Fault B09.
// Fault F10.
func TestBusyNeighbourCausesNoConflict(t *testing.T) {
	bg := state.NewCell("bg", state.Options[int]{})
	n := state.NewCounter("n", state.Options[int64]{})
	own := state.NewCell("own", state.Options[int]{})
	s := newStore(t, bg, n, own)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := s.Commit(by("bg", bg.With(i))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 200 {
		base := s.Snapshot()
		one := state.Batch{Owner: "one", Base: base, Updates: []state.Update{n.With(1), own.With(i)}}
		two := state.Batch{Owner: "two", Base: base, Updates: []state.Update{n.With(1)}}
		r, err := s.Commit(one, two)
		require.NoError(t, err)
		require.Empty(t, r.Rejected)
	}
	stop.Store(true)
	wg.Wait()
	require.EqualValues(t, 400, n.Get(s.Snapshot()))
	require.Equal(t, 199, own.Get(s.Snapshot()))
}

func TestContendedKeyLosesNoUpdate(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{})
	s := newStore(t, n)
	const workers, each = 16, 300
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				if _, err := s.Commit(by("w", n.With(1))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, workers*each, n.Get(s.Snapshot()))
	require.EqualValues(t, workers*each, s.Snapshot().Revision())
}

// Capability B1.
func TestReadModifyWriteWithRetries(t *testing.T) {
	c := state.NewCell("c", state.Options[int]{})
	table := state.NewTable[int]("t", state.Options[int]{})
	s := newStore(t, c, table)
	const workers, each = 8, 200
	var wg sync.WaitGroup
	for g := range workers {
		wg.Go(func() {
			for i := 0; i < each; {
				base := s.Snapshot()
				v, _ := table.Get(base, g%2)
				r, err := s.Commit(
					state.Batch{Base: base, Updates: []state.Update{c.With(c.Get(base) + 1), table.Put(g%2, v+1)}})
				if err != nil {
					t.Error(err)
					return
				}
				if r.Committed {
					i++
				}
			}
		})
	}
	wg.Wait()
	snap := s.Snapshot()
	require.Equal(t, workers*each, c.Get(snap))
	for _, v := range table.All(snap) {
		require.Equal(t, workers*each/2, v)
	}
	require.EqualValues(t, workers*each, snap.Revision())
}

// A commit with a slow reducer gets its turn among many fast ones.
func TestSlowReducerIsNotStarved(t *testing.T) {
	n := state.NewKey("n", state.KeyConfig[int, int]{Merge: state.Commutative, Apply: func(v, u int) int {
		if u == 1000 {
			for range 50 {
				runtime.Gosched() // let the others in
			}
		}
		return v + u
	}})
	s := newStore(t, n)
	var stop atomic.Bool
	var fast atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				if _, err := s.Commit(by("fast", n.With(1))); err != nil {
					t.Error(err)
					return
				}
				fast.Add(1)
				runtime.Gosched()
			}
		})
	}
	for range 20 {
		_, err := s.Commit(by("slow", n.With(1000)))
		require.NoError(t, err)
	}
	stop.Store(true)
	wg.Wait()
	require.EqualValues(t, 20_000+fast.Load(), n.Get(s.Snapshot()))
}

// Waiting for a turn ends, even when the one whose turn it is never finishes.
func TestAStuckTurnHoldsNobodyForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *state.Store
		var k state.Key[int, int]
		hang := make(chan struct{})
		tries := 0
		k = state.NewKey("k", state.KeyConfig[int, int]{Apply: func(v, u int) int {
			if u < 0 {
				if tries++; tries > 4 {
					<-hang // in its turn now
				} else if _, err := s.Commit(by("inner", k.With(tries))); err != nil {
					panic(err)
				}
				return v
			}
			return u
		}})
		s = newStore(t, k)
		go func() { _, _ = s.Commit(by("stuck", k.With(-1))) }()
		synctest.Wait()
		start := time.Now()
		_, err := s.Commit(by("other", k.With(7)))
		require.NoError(t, err)
		require.Less(t, time.Since(start), time.Second)
		require.Greater(t, time.Since(start), time.Duration(0), "it waits a little")
		require.Equal(t, 7, k.Get(s.Snapshot()))
		close(hang)
		synctest.Wait()
	})
}

// Handles, lists and maps may be used by many goroutines at once.
func TestConcurrentDerivation(t *testing.T) {
	m, l := state.Map[int, int]{}, state.List[int]{}
	for i := range 100 {
		m, l = m.With(i, i), l.Append(i)
	}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			mine, tail := m, l
			for i := range 200 {
				mine = mine.With(1000*g+i, i).Without(i % 100)
				tail = tail.Append(g)
				if _, ok := m.Get(i % 100); !ok || l.Len() != 100 || l.At(99) != 99 {
					t.Error("the common value changed")
					return
				}
			}
			for i, v := range tail.All() {
				if i < 100 && v != i || i >= 100 && v != g {
					t.Errorf("element %d is %d", i, v)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 100, m.Len())
}

func TestManyStoresFromOneSchema(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{})
	var keys []state.AnyKey
	for i := range 40 {
		keys = append(keys, state.NewCell(fmt.Sprintf("k%02d", i), state.Options[int]{}))
	}
	schema, err := state.NewSchema(append(keys, n)...)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 20 {
				s, err := state.NewStore(state.Config{Schema: schema})
				if err != nil {
					t.Error(err)
					return
				}
				for range g {
					if _, err := s.Commit(by("x", n.With(1))); err != nil {
						t.Error(err)
					}
				}
				if got := n.Get(s.Snapshot()); got != int64(g) {
					t.Errorf("store of %d has %d", g, got)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, collect(schema.Keys()), 41)
}
