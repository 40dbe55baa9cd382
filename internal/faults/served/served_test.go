package served_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/served"
	"github.com/ddd26017/fixpoint/store/memstore"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// one is a client as if it were the only one, since the kit would start processes for
// another.
type one struct{ *served.Client }

func (c one) Caps() engine.JournalCaps {
	caps := c.Client.Caps()
	caps.MultiProcess = false
	return caps
}

// A store is through the socket what it is without it.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		c := &clock{now: time.Unix(1, 0)}
		path := filepath.Join(t.TempDir(), "s")
		server, err := served.Serve(path, memstore.New(memstore.Options{Now: c.Now}))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Close()) })
		dial := func(t *testing.T) engine.Journal {
			client, err := served.Dial(path, "client")
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() }) // unless the kit did
			return one{client}
		}
		return storetest.Fixture{Journal: dial(t), Reopen: dial, Advance: c.advance}
	})
}

// The server's log has the changes in order and knows who made them.
func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	server, err := served.Serve(path, memstore.New(memstore.Options{}))
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	a, err := served.Dial(path, "a")
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	b, err := served.Dial(path, "b")
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()

	lease, err := a.Acquire(t.Context(), "t", "a", time.Hour)
	require.NoError(t, err)
	_, err = a.Append(t.Context(), engine.JournalCommit{Thread: "t", Base: 1, Epoch: lease.Epoch, Record: []byte("x")})
	require.NoError(t, err)
	_, err = b.Acquire(t.Context(), "t", "b", time.Hour)
	require.ErrorIs(t, err, engine.ErrLeaseHeld)
	var held *engine.LeaseHeld
	require.ErrorAs(t, err, &held)
	require.Equal(t, "a", held.Owner)
	_, err = b.Append(t.Context(), engine.JournalCommit{Thread: "t", Base: 7, Epoch: lease.Epoch})
	var conflict *engine.JournalConflict
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, uint64(2), conflict.Have)
	require.Equal(t, []served.Entry{
		{Client: "a", Thread: "t", Revision: 1, Lease: true, Empty: true},
		{Client: "a", Thread: "t", Revision: 2},
	}, server.Log("t"))
	require.Empty(t, server.Log("u"))
}
