package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
)

func commit(thread string, base uint64) engine.JournalCommit {
	c := engine.JournalCommit{Thread: thread, Base: base, Record: []byte("\x01record")}
	copy(c.ID[:], fmt.Sprintf("%s-%d", thread, base))
	return c
}

// Commits that come while another is written share one transaction.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	j := open(t, newPath(t), bolt.Options{})
	before := j.Transactions()
	held, release := j.Hold()
	<-held
	const writers = 50
	var group sync.WaitGroup
	failures := make([]error, writers)
	for n := range writers {
		group.Go(func() { _, failures[n] = j.Append(context.Background(), commit(fmt.Sprint(n), 0)) })
	}
	j.AwaitQueue(writers)
	release()
	group.Wait()
	require.NoError(t, errors.Join(failures...))
	require.Equal(t, 1, j.Transactions()-before)
}

// A lone writer makes a transaction for each commit and none for what it only reads.
func TestLoneWriter(t *testing.T) {
	t.Parallel()
	j := open(t, newPath(t), bolt.Options{})
	before := j.Transactions()
	for base := range uint64(5) {
		_, err := j.Append(t.Context(), commit("t", base))
		require.NoError(t, err)
		_, err = j.Append(t.Context(), commit("t", base))
		require.NoError(t, err)
		_, err = j.Append(t.Context(), commit("u", 9))
		require.ErrorIs(t, err, engine.ErrJournalConflict)
		_, err = j.Claim(t.Context(), "mail", "w", 10, time.Hour)
		require.NoError(t, err)
	}
	require.Equal(t, 5, j.Transactions()-before)
}

// A request that breaks in the middle does not take the rest of its batch along.
func TestBatchWithBrokenRequest(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path, bolt.Options{})
	held, release := j.Hold()
	<-held
	var group sync.WaitGroup
	var failures [3]error
	var crash error
	group.Go(func() { crash = j.Crash() })
	for n := range failures {
		group.Go(func() { _, failures[n] = j.Append(context.Background(), commit(fmt.Sprint(n), 0)) })
	}
	j.AwaitQueue(len(failures) + 1)
	release()
	group.Wait()
	require.ErrorIs(t, crash, engine.ErrCorrupt)
	require.NoError(t, errors.Join(failures[:]...))
	ids, err := j.Threads(t.Context(), "", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"0", "1", "2"}, ids)
	require.NoError(t, j.Close())
	_, err = bolt.Verify(path, bolt.Options{})
	require.NoError(t, err)
}

func TestContextEndsBeforeTheWrite(t *testing.T) {
	t.Parallel()
	j := open(t, newPath(t), bolt.Options{})
	held, release := j.Hold()
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := j.Append(ctx, commit("t", 0))
		failed <- err
	}()
	j.AwaitQueue(1)
	cancel()
	err := <-failed
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, engine.ErrUnknownOutcome)
	release()
	_, err = j.Append(t.Context(), commit("u", 0))
	require.NoError(t, err)
	image, err := j.Load(t.Context(), "t", 0)
	require.NoError(t, err)
	require.Zero(t, image.Revision)
}

// Once a write failed there are no more until the store is opened again; what was
// acknowledged is all there.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path, bolt.Options{})
	_, err := j.Append(t.Context(), commit("t", 0))
	require.NoError(t, err)
	require.NoError(t, j.BreakFile())
	_, err = j.Append(t.Context(), commit("t", 1))
	require.ErrorIs(t, err, engine.ErrUnknownOutcome)
	require.ErrorIs(t, err, os.ErrClosed, "the cause")
	for range 2 {
		_, err = j.Append(t.Context(), commit("t", 1))
		require.ErrorIs(t, err, engine.ErrJournalClosed)
		require.ErrorIs(t, err, os.ErrClosed, "the cause")
		require.NotErrorIs(t, err, engine.ErrUnknownOutcome)
	}
	_, err = j.Acquire(t.Context(), "t", "ann", time.Hour)
	require.ErrorIs(t, err, engine.ErrJournalClosed)
	image, err := j.Load(t.Context(), "t", 0)
	require.NoError(t, err)
	require.Equal(t, uint64(1), image.Revision)
	_ = j.Close()

	j = open(t, path, bolt.Options{})
	_, err = j.Append(t.Context(), commit("t", 1))
	require.NoError(t, err, "the repeat resolves it")
	_, err = j.Append(t.Context(), commit("t", 2))
	require.NoError(t, err)
}

// A file that is cut while it is mapped is an error and no fault signal.
func TestFileCutWhileOpen(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path, bolt.Options{})
	for base := range uint64(50) {
		c := commit("t", base)
		c.Record = make([]byte, 5000)
		_, err := j.Append(t.Context(), c)
		require.NoError(t, err)
	}
	require.NoError(t, os.Truncate(path, 8192))
	_, err := j.Load(t.Context(), "t", 0)
	require.ErrorIs(t, err, engine.ErrCorrupt)
	_, err = j.Append(t.Context(), commit("t", 50))
	require.ErrorIs(t, err, engine.ErrCorrupt)
	_, err = j.Threads(t.Context(), "", 10)
	require.ErrorIs(t, err, engine.ErrCorrupt)
}

// What the walk takes for damage must be that: many threads, large and small values,
// deletes and prunes leave files in which it finds nothing.
func TestVerifyAfterChurn(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	random := rand.New(rand.NewPCG(5, 6))
	base := map[string]uint64{}
	for round := range 6 {
		j := open(t, path, bolt.Options{NoSync: true})
		for range 250 {
			id := fmt.Sprintf("thread-%d", random.IntN(60))
			switch k := random.IntN(20); {
			case k == 0:
				require.NoError(t, j.Delete(t.Context(), id))
				delete(base, id)
			case k == 1:
				require.NoError(t, j.Prune(t.Context(), id, engine.PrunePolicy{KeepSnapshots: 1}))
			case k == 2:
				claims, err := j.Claim(t.Context(), "mail", "w", 20, time.Hour)
				require.NoError(t, err)
				for _, c := range claims {
					require.NoError(t, j.Settle(t.Context(), c, engine.Settlement{Dead: random.IntN(3) == 0}))
				}
			default:
				c := commit(id, base[id])
				c.Record = noise(random, random.IntN(1<<random.IntN(14)))
				if k < 6 {
					c.Snapshot = noise(random, random.IntN(1<<random.IntN(17)))
				}
				for range random.IntN(3) {
					c.Effects = append(c.Effects, engine.JournalEffect{Lane: "mail", Body: noise(random, 30)})
				}
				revision, err := j.Append(t.Context(), c)
				require.NoError(t, err)
				base[id] = revision
			}
		}
		require.NoError(t, j.Close())
		report, err := bolt.Verify(path, bolt.Options{})
		require.NoError(t, err, "round %d", round)
		require.Nil(t, report.Stale)
		require.Equal(t, len(base), report.Threads)
	}
}
