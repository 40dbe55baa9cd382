package memstore_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/memstore"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// clock is a clock that is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Capability B6, B7: the store half, in memory.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		c := newClock()
		store := memstore.New(memstore.Options{Now: c.Now, MaxBytes: 1 << 20})
		return storetest.Fixture{
			Journal: store,
			Advance: c.Advance,
			Reopen: func(t *testing.T) engine.Journal {
				_ = store.Close()
				store.Reopen()
				return store
			},
		}
	})
}

// shared is a store that claims to be shared by several processes, so that the part
// of the kit that is about them runs, with goroutines in their place.
type shared struct{ *memstore.Store }

func (s shared) Caps() engine.JournalCaps { return engine.JournalCaps{MultiProcess: true} }

func TestConformanceOfProcesses(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		store := shared{memstore.New(memstore.Options{})}
		return storetest.Fixture{
			Journal: store,
			Child: func(ctx context.Context, in io.Reader, out io.Writer) error {
				return storetest.Serve(ctx, store, in, out)
			},
		}
	})
}

// A clock that panics takes nobody else down: no lock is held while it runs.
func TestClockThatPanics(t *testing.T) {
	t.Parallel()
	broken := true
	store := memstore.New(memstore.Options{Now: func() time.Time {
		if broken {
			panic("no time")
		}
		return time.Now()
	}})
	c := engine.JournalCommit{ID: [16]byte{1}, Thread: "t"}
	require.Panics(t, func() { _, _ = store.Append(t.Context(), c) })
	broken = false
	_, err := store.Append(t.Context(), c)
	require.NoError(t, err)
}
