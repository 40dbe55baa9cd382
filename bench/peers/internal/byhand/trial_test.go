package byhand_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench/peers/internal/byhand"
	"github.com/ddd26017/fixpoint/bench/peers/internal/stores"
	"github.com/ddd26017/fixpoint/bench/peers/internal/trial"
)

// onStores are the works of stores.
func onStores(b stores.Backend) map[string]func() (trial.Trial, error) {
	return map[string]func() (trial.Trial, error){
		"gather":   func() (trial.Trial, error) { return byhand.Gather(b, 64) },
		"counter":  func() (trial.Trial, error) { return byhand.Counter(b, 64) },
		"conflict": func() (trial.Trial, error) { return byhand.Conflict(b, 8) },
		"cascade":  func() (trial.Trial, error) { return byhand.Cascade(b, 16) },
		"commit":   func() (trial.Trial, error) { return byhand.CommitOne(b, 10) },
		"view":     func() (trial.Trial, error) { return byhand.TakeView(b) },
		"held":     func() (trial.Trial, error) { return byhand.ReadHeld(b) },
		"busy":     func() (trial.Trial, error) { return byhand.ReadBusy(b, time.Hour) },
	}
}

// TestChecksCount shows that the checks of the works know how often the work was
// done: once less than said is noticed.
func TestChecksCount(t *testing.T) {
	check := func(t *testing.T, prepare func() (trial.Trial, error)) {
		t.Helper()
		tr, err := prepare()
		require.NoError(t, err)
		require.NoError(t, tr.Run(5))
		require.NoError(t, tr.Verify(5))
		require.Error(t, tr.Verify(6))
	}
	for _, b := range stores.All() {
		works := onStores(b)
		for _, name := range []string{"gather", "counter", "conflict", "cascade", "commit"} {
			t.Run(b.ID+"/"+name, func(t *testing.T) { check(t, works[name]) })
		}
	}
}

// broken makes a backend whose stores are wrapped.
func broken(id string, wrap func(stores.Store) stores.Store) stores.Backend {
	return stores.Backend{ID: id, Open: func() (stores.Store, error) {
		s, err := stores.All()[0].Open()
		return wrap(s), err
	}}
}

// lossy is a store that says yes to its third commit and forgets it. The first one
// fills it.
type lossy struct {
	stores.Store
	commits int
}

func (s *lossy) Commit(updates []stores.Update) error {
	if s.commits++; s.commits == 3 {
		return nil
	}
	return s.Store.Commit(updates)
}

// live is a store whose views change with it.
type live struct{ stores.Store }

func (s *live) View() stores.View { return s }

func (s *live) Get(key int) (int, error) { return s.Store.View().Get(key) }

// skewed is a store whose views are wrong by one for an odd key.
type skewed struct{ stores.Store }

type skewedView struct{ stores.View }

func (s *skewed) View() stores.View { return skewedView{s.Store.View()} }

func (v skewedView) Get(key int) (int, error) {
	value, err := v.View.Get(key)
	return value + key%2, err
}

// TestChecksNotice shows that the checks of the works notice a store that does not do
// what it should.
func TestChecksNotice(t *testing.T) {
	for _, test := range []struct {
		backend stores.Backend
		fails   []string
	}{
		{broken("lossy", func(s stores.Store) stores.Store { return &lossy{Store: s} }), []string{"gather", "counter", "conflict", "cascade", "commit"}},
		{broken("live", func(s stores.Store) stores.Store { return &live{s} }), []string{"commit"}},
		{broken("skewed", func(s stores.Store) stores.Store { return &skewed{s} }), []string{"gather", "commit", "view", "held", "busy"}},
	} {
		works := onStores(test.backend)
		for _, name := range test.fails {
			t.Run(test.backend.ID+"/"+name, func(t *testing.T) {
				tr, err := works[name]()
				require.NoError(t, err)
				require.NoError(t, tr.Run(5))
				require.Error(t, tr.Verify(5))
			})
		}
	}
}

// TestCommitsInTheBackground waits until a store was committed to while nobody but
// the test reads it, and counts the commits.
func TestCommitsInTheBackground(t *testing.T) {
	for _, b := range stores.All() {
		t.Run(b.ID, func(t *testing.T) {
			s, err := b.Fill(1, stores.Zero)
			require.NoError(t, err)
			seen := &signal{Store: s, third: make(chan struct{})}
			commits := 0
			stop := byhand.CommitEvery(time.Microsecond, seen, 0, &commits)
			<-seen.third
			require.NoError(t, stop())
			require.GreaterOrEqual(t, commits, 3)
			require.NoError(t, stores.Want(s.View(), 0, commits))
		})
	}
}

// signal is a store that tells when it has had three commits.
type signal struct {
	stores.Store
	third   chan struct{}
	mu      sync.Mutex
	commits int
}

func (s *signal) Commit(updates []stores.Update) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commits++; s.commits == 3 {
		close(s.third)
	}
	return s.Store.Commit(updates)
}
