//go:build servers

package postgres_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/postgres"
	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
)

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// kilobyte is a commit of 1 KiB with effects.
func kilobyte(thread string, base uint64, effects int) store.Commit {
	c := store.Commit{ID: newID(), Thread: thread, Base: base, Time: time.Now(), Record: make([]byte, 1024)}
	for range effects {
		c.Effects = append(c.Effects, store.Effect{Lane: "bench", Body: make([]byte, 100)})
	}
	return c
}

// parallel splits n calls among writers, each of which makes its own one after the other.
func parallel(t testing.TB, writers, n int, call func(ctx context.Context, writer, i int) error) {
	t.Helper()
	var group sync.WaitGroup
	failures := make([]error, writers)
	for w := range writers {
		group.Go(func() {
			for i := range (n + w) / writers {
				if failures[w] = call(t.Context(), w, i); failures[w] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range failures {
		require.NoError(t, err)
	}
}

// bare makes a table with a row a writer, and returns what updates one: the least that a
// commit can cost.
func bare(t testing.TB, dsn string, writers int) func(ctx context.Context, writer, i int) error {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), fmt.Sprintf("%s pool_max_conns=%d", dsn, writers))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	table := fmt.Sprintf("bare_%d", schemas.Add(1))
	_, err = pool.Exec(t.Context(), "CREATE TABLE "+table+" (id integer PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 70)")
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), "INSERT INTO "+table+" SELECT g, 0 FROM generate_series(0, 99) g")
	require.NoError(t, err)
	return func(ctx context.Context, writer, _ int) error {
		_, err := pool.Exec(ctx, "UPDATE "+table+" SET n = n + 1 WHERE id = $1", writer)
		return err
	}
}

func commits(j store.Journal, effects int) func(ctx context.Context, writer, i int) error {
	run := newID()
	return func(ctx context.Context, writer, i int) error {
		_, err := j.Append(ctx, kilobyte(fmt.Sprintf("%x %d", run[:4], writer), uint64(i), effects))
		return err
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("statement=bare/writers=%d", writers), func(b *testing.B) {
			call := bare(b, shared.DSN(), writers)
			b.ResetTimer()
			parallel(b, writers, b.N, call)
		})
		for _, effects := range []int{0, 2} {
			b.Run(fmt.Sprintf("statement=commit/effects=%d/writers=%d", effects, writers), func(b *testing.B) {
				call := commits(open(b, shared.DSN(), postgres.Options{Schema: newSchema()}), effects)
				b.ResetTimer()
				parallel(b, writers, b.N, call)
			})
		}
	}
}

// slowDisk makes each commit wait before it syncs, as on a disk that takes so long. Those
// that come meanwhile share the sync.
func slowDisk(t testing.TB, wait time.Duration) *postgrestest.Server {
	t.Helper()
	server, err := postgrestest.Start(t.Context(), postgrestest.Options{Settings: map[string]string{
		"commit_delay": fmt.Sprint(wait.Microseconds()), "commit_siblings": "0",
	}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func BenchmarkCommitOnSlowDisk(b *testing.B) {
	server := slowDisk(b, 5*time.Millisecond)
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("effects=2/writers=%d", writers), func(b *testing.B) {
			call := commits(open(b, server.DSN(), postgres.Options{Schema: newSchema()}), 2)
			b.ResetTimer()
			parallel(b, writers, b.N, call)
		})
	}
}

// fill queues effects on a lane, a thousand a commit.
func fill(t testing.TB, j store.Journal, lane string, n int, notBefore time.Time) {
	t.Helper()
	thread := newID()
	for base := uint64(0); n > 0; base++ {
		c := kilobyte(fmt.Sprintf("fill %x", thread), base, 0)
		for range min(n, 1000) {
			c.Effects = append(c.Effects, store.Effect{Lane: lane, NotBefore: notBefore, Body: make([]byte, 100)})
		}
		n -= len(c.Effects)
		_, err := j.Append(t.Context(), c)
		require.NoError(t, err)
	}
}

func BenchmarkClaimAndSettle(b *testing.B) {
	for _, queued := range []int{100, 100_000} {
		for _, state := range []string{"ready", "waiting"} {
			b.Run(fmt.Sprintf("queued=%d/behind=%s", queued, state), func(b *testing.B) {
				j := open(b, shared.DSN(), postgres.Options{Schema: newSchema()})
				// What waits comes first in the order of the commits.
				later := time.Time{}
				if state == "waiting" {
					later = time.Now().Add(time.Hour)
				}
				fill(b, j, "lane", queued, later)
				fill(b, j, "lane", b.N, time.Time{})
				b.ResetTimer()
				for range b.N {
					claims, err := j.Claim(b.Context(), "lane", "w", 1, time.Hour)
					require.NoError(b, err)
					require.Len(b, claims, 1)
					require.NoError(b, j.Settle(b.Context(), claims[0], store.Settlement{}))
				}
			})
		}
	}
}

func BenchmarkNotice(b *testing.B) {
	j := open(b, shared.DSN(), postgres.Options{Schema: newSchema()})
	heard, err := j.Listen(b.Context(), "topic")
	require.NoError(b, err)
	for b.Loop() {
		require.NoError(b, j.Notify(b.Context(), "topic", []byte("wake")))
		<-heard
	}
}

// median times calls one by one.
func median(t testing.TB, n int, call func(i int) error) time.Duration {
	t.Helper()
	times := make([]time.Duration, n)
	for i := range times {
		began := time.Now()
		require.NoError(t, call(i))
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[n/2]
}
