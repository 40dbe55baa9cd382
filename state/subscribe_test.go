package state_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/state"
)

// Fault F15.
func TestSubscribersSeeCommitsInOrder(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{})
	s := newStore(t, n)
	var mu sync.Mutex
	var seen []uint64
	done := make(chan struct{})
	const workers, each = 8, 100
	s.Subscribe(func(c state.Commit) {
		mu.Lock()
		defer mu.Unlock()
		if c.Previous.Revision()+1 != c.Revision || c.Snapshot.Revision() != c.Revision || n.Get(c.Snapshot) != int64(c.Revision) {
			t.Errorf("commit %d does not fit its snapshots", c.Revision)
		}
		if seen = append(seen, c.Revision); len(seen) == workers*each {
			close(done)
		}
	})
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				if _, err := s.Commit(by("w", n.With(1))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	<-done
	for i, rev := range seen {
		require.EqualValues(t, i+1, rev)
	}
}

func TestCommitListsWhatWasApplied(t *testing.T) {
	f := newFields(t)
	var got []state.Commit
	cancel := f.store.Subscribe(func(c state.Commit) { got = append(got, c) })
	u := []state.Update{f.a.With(1), f.log.Append("A"), f.a.With(2), f.b.With(3)}
	_, err := f.store.Commit(by("A", u[0], state.Update{}, u[1]), by("B", u[2]), by("C", u[3]))
	require.NoError(t, err)
	require.Len(t, got, 1, "a lone committer delivers before Commit returns")
	require.Equal(t, []state.Write{{Owner: "A", Update: u[0]}, {Owner: "A", Update: u[1]}, {Owner: "C", Update: u[3]}}, got[0].Writes)
	cancel()
	cancel()
	commit(t, f.store, f.a.With(9))
	require.Len(t, got, 1)
	f.store.Subscribe(nil)()
}

// Fault B38.
func TestSubscriberUsesTheStore(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{})
	s := newStore(t, n)
	var order []string
	late := 0
	var cancel func()
	cancel = s.Subscribe(func(c state.Commit) {
		order = append(order, "begin")
		if c.Revision == 1 {
			r, err := s.Commit(by("sub", n.With(10)))
			require.NoError(t, err)
			require.EqualValues(t, 11, n.Get(r.Snapshot))
			s.Subscribe(func(state.Commit) { late++ })
		} else {
			cancel()
		}
		require.EqualValues(t, 11, n.Get(s.Snapshot()))
		order = append(order, "end")
	})
	commit(t, s, n.With(1))
	require.Equal(t, []string{"begin", "end", "begin", "end"}, order, "a commit of a subscriber comes after it returned")
	require.Zero(t, late, "a subscription is about later commits")
	commit(t, s, n.With(1))
	require.Equal(t, 1, late)
	require.Len(t, order, 4)
}

// Fault B38.
func TestSlowSubscriberHoldsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := state.NewCounter("n", state.Options[int64]{})
		s := newStore(t, n)
		var seen []uint64
		s.Subscribe(func(c state.Commit) {
			time.Sleep(time.Second)
			seen = append(seen, c.Revision)
		})
		go func() { _, _ = s.Commit(by("a", n.With(1))) }()
		synctest.Wait()
		start := time.Now()
		_, err := s.Commit(by("b", n.With(1)))
		require.NoError(t, err)
		require.EqualValues(t, 2, n.Get(s.Snapshot()))
		_, _ = s.At(1)
		require.Zero(t, time.Since(start), "reads and commits go on meanwhile")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, []uint64{1, 2}, seen)
	})
}

func TestFaultySubscribersAreReported(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{})
	var mu sync.Mutex
	var faults []error
	s, err := state.NewStore(state.Config{Keys: []state.AnyKey{n}, Report: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, err)
		panic("and the report too")
	}})
	require.NoError(t, err)
	seen := make(chan uint64, 10)
	s.Subscribe(func(c state.Commit) {
		if c.Revision == 1 {
			panic(errors.New("boom"))
		}
	})
	s.Subscribe(func(c state.Commit) {
		if c.Revision == 2 {
			runtime.Goexit()
		}
	})
	s.Subscribe(func(c state.Commit) { seen <- c.Revision })
	commit(t, s, n.With(1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Commit(by("gone", n.With(1)))
	}()
	<-done
	commit(t, s, n.With(1))
	for want := range uint64(3) {
		require.Equal(t, want+1, <-seen, "the others still get every commit in order")
	}
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, faults, 2)
	require.ErrorContains(t, faults[0], "boom")
	require.ErrorContains(t, faults[1], "revision 2")
}

// A committer is not kept delivering for others for ever.
func TestEndlessFeedbackDoesNotHoldTheCommitter(t *testing.T) {
	n := state.NewCounter("n", state.Options[int64]{})
	s := newStore(t, n)
	var stop sync.Once
	enough := make(chan struct{})
	cancel := s.Subscribe(func(c state.Commit) {
		if c.Revision >= 2000 {
			stop.Do(func() { close(enough) })
			return
		}
		_, _ = s.Commit(by("again", n.With(1)))
	})
	defer cancel()
	r, err := s.Commit(by("first", n.With(1)))
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Snapshot.Revision())
	<-enough
	require.GreaterOrEqual(t, s.Snapshot().Revision(), uint64(2000))
}
