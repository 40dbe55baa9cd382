//go:build servers

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/postgres"
	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// count reads how often a test is to do harm.
func count(t *testing.T, variable string, short int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// load is what goes on while servers die: writers that fight over threads, and whose commits
// emit effects; workers that deliver those; readers.
type load struct {
	threads []string
	dsn     string
	schema  string
	journal *postgres.Journal // tries again by itself
	bare    *postgres.Journal // leaves that to its caller

	mu        sync.Mutex
	acks      []storetest.Ack
	delivered map[store.EffectRef]int
	last      time.Time     // of the last ack
	gap       time.Duration // longest between two
	known     map[string]uint64

	unknown, refused, loads atomic.Int64
}

const faultLane = "faults"

func newLoad(t *testing.T, dsn string) *load {
	o := postgres.Options{Schema: newSchema(), Timeout: 10 * time.Second, Patience: time.Minute}
	l := &load{dsn: dsn, schema: o.Schema, delivered: map[store.EffectRef]int{}, known: map[string]uint64{}, journal: open(t, dsn, o)}
	o.Patience = -1
	l.bare = open(t, dsn, o)
	for n := range 8 {
		l.threads = append(l.threads, fmt.Sprint("thread ", n))
	}
	return l
}

// Append implements the writers' side of store.Journal: it resolves unknown outcomes by
// repeating the commit, on either journal.
func (l *load) Append(ctx context.Context, c store.Commit) (uint64, error) {
	c.Effects = []store.Effect{{Lane: faultLane, Body: c.ID[:]}, {Lane: faultLane + "/unread"}}
	j := l.journal
	if c.ID[0]%2 == 0 {
		j = l.bare
	}
	for {
		revision, err := j.Append(ctx, c)
		switch {
		case err == nil, errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced), ctx.Err() != nil:
			return revision, err
		case errors.Is(err, store.ErrUnknownOutcome):
			l.unknown.Add(1)
		case errors.Is(err, store.ErrCorrupt):
			return 0, err
		default:
			l.refused.Add(1)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// ack notes a commit that was acknowledged.
func (l *load) ack(a storetest.Ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.last.IsZero() {
		l.gap = max(l.gap, now.Sub(l.last))
	}
	l.last = now
	l.acks = append(l.acks, a)
	l.known[a.Thread] = max(l.known[a.Thread], a.Revision)
}

func (l *load) acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acks)
}

// writer hands the workload of the kit to Append.
type writer struct {
	store.Journal
	load *load
}

func (w writer) Append(ctx context.Context, c store.Commit) (uint64, error) {
	return w.load.Append(ctx, c)
}

// deliver claims and settles effects until ctx ends.
func (l *load) deliver(ctx context.Context, worker string, limit int, ttl time.Duration) (n int, err error) {
	claims, err := l.journal.Claim(ctx, faultLane, worker, limit, ttl)
	if err != nil {
		return 0, err
	}
	for _, c := range claims {
		l.mu.Lock()
		l.delivered[c.Ref]++
		l.mu.Unlock()
		if err := l.journal.Settle(ctx, c, store.Settlement{}); err != nil && !errors.Is(err, store.ErrFenced) {
			return 0, err
		}
	}
	return len(claims), nil
}

// look loads threads and compares them with what was acknowledged before.
func (l *load) look(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		thread := l.threads[n%len(l.threads)]
		l.mu.Lock()
		known := l.known[thread]
		l.mu.Unlock()
		image, err := l.bare.LoadAt(ctx, thread, max(known, 1))
		switch {
		case err == nil && image.Revision >= known:
			l.loads.Add(1)
		case errors.Is(err, store.ErrNoRevision) && known > 0:
			return fmt.Errorf("stale: revision %d of %s was acknowledged and is not shown", known, thread)
		case errors.Is(err, store.ErrCorrupt):
			return err
		}
		pause(ctx, 20*time.Millisecond)
	}
	return nil
}

// run does harm n times under load and checks that nothing was lost.
func (l *load) run(t *testing.T, n int, harm func(ctx context.Context, i int)) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	failures := make([]error, 4)
	group.Go(func() {
		w := storetest.Work{Threads: l.threads, Writers: 16, Seed: rand.Uint64(), Every: 500}
		failures[0] = w.Run(ctx, writer{l.journal, l}, l.ack)
		cancel()
	})
	for w := range 2 {
		group.Go(func() {
			for ctx.Err() == nil {
				if n, _ := l.deliver(ctx, fmt.Sprint(w), 50, 5*time.Second); n == 0 {
					pause(ctx, 10*time.Millisecond)
				}
			}
		})
	}
	group.Go(func() {
		failures[3] = l.look(ctx)
		cancel()
	})
	began := time.Now()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		for enough := l.acked() + 200; l.acked() < enough && ctx.Err() == nil; {
			pause(ctx, time.Millisecond)
		}
		pause(ctx, rand.N(200*time.Millisecond))
		harm(ctx, i)
		if i%10 == 9 {
			t.Logf("harm=%d acked=%d took=%s", i+1, l.acked(), time.Since(began).Round(time.Second))
		}
	}
	for enough := l.acked() + 200; l.acked() < enough && ctx.Err() == nil; {
		pause(ctx, time.Millisecond)
	}
	took := time.Since(began)
	cancel()
	group.Wait()
	require.NoError(t, errors.Join(failures...))
	// Commits whose writers have left go on, and are waited for here.
	require.NoError(t, errors.Join(l.journal.Close(), l.bare.Close()))
	l.journal = open(t, l.dsn, postgres.Options{Schema: l.schema})
	l.check(t)
	duplicates := 0
	for _, times := range l.delivered {
		duplicates += times - 1
	}
	t.Logf("harm=%d acked=%d lost=0 forks=0 unknown=%d refused=%d loads=%d stale=0 effects=%d missing=0 duplicates=%d longest-gap=%s took=%s",
		n, len(l.acks), l.unknown.Load(), l.refused.Load(), l.loads.Load(), len(l.delivered), duplicates, l.gap.Round(time.Millisecond), took.Round(time.Second))
}

// check compares what the store holds with what was acknowledged and delivered.
func (l *load) check(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.NoError(t, storetest.Check(ctx, l.journal, l.acks))
	ids := map[string]map[uint64][16]byte{}
	for _, thread := range l.threads {
		ids[thread] = l.history(ctx, t, thread)
	}
	for _, a := range l.acks {
		require.Equal(t, a.ID, ids[a.Thread][a.Revision], "revision %d of %s", a.Revision, a.Thread)
	}
	// The rest is delivered, with the claims that ran out when their workers ended.
	for {
		n, err := l.deliver(ctx, "rest", 1000, time.Minute)
		require.NoError(t, err)
		d, err := l.journal.Depth(ctx, faultLane)
		require.NoError(t, err)
		if n == 0 && d.Due+d.Claimed+d.Waiting == 0 {
			break
		}
		if n == 0 {
			pause(ctx, 50*time.Millisecond)
		}
		require.NoError(t, ctx.Err())
	}
	want := map[store.EffectRef]bool{}
	for thread, revisions := range ids {
		for revision := range revisions {
			want[store.EffectRef{Thread: thread, Revision: revision}] = true
		}
	}
	for ref := range want {
		require.Positive(t, l.delivered[ref], "deliveries of %s", ref)
	}
	for ref := range maps.Keys(l.delivered) {
		require.True(t, want[ref], "%s was delivered, and no commit emitted it", ref)
	}
	d, err := l.journal.Depth(ctx, faultLane+"/unread")
	require.NoError(t, err)
	require.Equal(t, len(want), d.Due, "one effect a commit that nobody claims")
}

// history reads the ids of all commits of a thread, from snapshot to snapshot.
func (l *load) history(ctx context.Context, t *testing.T, thread string) map[uint64][16]byte {
	ids := map[uint64][16]byte{}
	image, err := l.journal.Load(ctx, thread, 0)
	require.NoError(t, err)
	for {
		ids[image.Revision] = image.LastID
		for _, r := range image.Tail {
			ids[r.Revision] = r.ID
		}
		before := image.SnapshotAt
		if len(image.Tail) == 0 {
			before = image.Revision - 1
		}
		if before == 0 {
			return ids
		}
		image, err = l.journal.LoadAt(ctx, thread, before)
		require.NoError(t, err)
	}
}

func start(t *testing.T, settings map[string]string) *postgrestest.Server {
	t.Helper()
	server, err := postgrestest.Start(t.Context(), postgrestest.Options{Settings: settings})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// The server is killed in the middle of writes, whole or one of its processes, and starts
// again. FIXPOINT_KILLS says how often; 5 if not set.
//
// Capability B6, B7.
func TestKills(t *testing.T) {
	server := start(t, nil)
	newLoad(t, server.DSN()).run(t, count(t, "FIXPOINT_KILLS", 5), func(ctx context.Context, i int) {
		if i%3 == 2 {
			_, err := server.KillBackend(i)
			require.NoError(t, err)
			return
		}
		require.NoError(t, server.Kill())
		require.NoError(t, server.Run(ctx))
	})
}

// The primary is killed in the middle of writes, its synchronous standby is promoted, and
// the former primary becomes the standby. FIXPOINT_PROMOTIONS says how often; 2 if not set.
//
// Capability B6, B7.
func TestPromotions(t *testing.T) {
	primary := start(t, nil)
	standby, err := primary.Standby(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = standby.Close() })
	dsn := postgrestest.MultiDSN(primary, standby)
	// Each waits for the other one as soon as it is the primary.
	require.NoError(t, standby.Set("synchronous_standby_names", quoted(primary)))
	require.NoError(t, primary.Set("synchronous_standby_names", quoted(standby)))
	l := newLoad(t, dsn)
	l.run(t, count(t, "FIXPOINT_PROMOTIONS", 2), func(ctx context.Context, i int) {
		require.NoError(t, primary.Kill())
		require.NoError(t, standby.Promote(ctx))
		require.NoError(t, primary.Follow(ctx, standby))
		require.NoError(t, primary.Set("synchronous_standby_names", quoted(standby)))
		primary, standby = standby, primary
	})
	caps := l.journal.Caps()
	require.Equal(t, store.Caps{Synced: true, Replicas: 2, MultiProcess: true, MaxBytes: 64 << 20}, caps)
}

func quoted(s *postgrestest.Server) string { return `"` + s.Name() + `"` }

// The control: with sessions that do not wait for the disk, kills lose commits, and the same
// look finds that. Otherwise TestKills would show nothing.
func TestKillsFindLoss(t *testing.T) {
	t.Parallel()
	server := start(t, nil)
	for kills := 1; kills <= 50; kills++ {
		o := postgres.Options{Schema: newSchema(), Commit: "off"}
		j := open(t, server.DSN(), o)
		require.False(t, j.Caps().Synced)
		l := &load{known: map[string]uint64{}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			w := storetest.Work{Threads: []string{"a", "b", "c", "d"}, Writers: 4, Seed: uint64(kills)}
			ended <- w.Run(ctx, j, l.ack)
		}()
		for l.acked() < 100 {
			pause(ctx, time.Millisecond)
		}
		require.NoError(t, server.Kill())
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, server.Run(t.Context()))
		err := storetest.Check(t.Context(), open(t, server.DSN(), o), l.acks)
		if err != nil {
			require.ErrorContains(t, err, "lost")
			t.Logf("kills=%d acked=%d", kills, len(l.acks))
			return
		}
	}
	t.Fatal("no commit was lost, though none was waited for")
}
