package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/faultstore"
)

// lossy puts all faults that a caller can get over in front of a store.
func lossy(t *testing.T, f Fixture, seed uint64) *faultstore.Store {
	store, err := faultstore.New(f.Journal, faultstore.Config{Seed: seed, Rate: map[faultstore.Fault]float64{
		faultstore.FailAfter: 0.2, faultstore.Repeat: 0.1, faultstore.Delay: 0.2, faultstore.Stale: 0.1,
	}})
	noError(t, err, "faultstore.New")
	return store
}

var unknownTests = []test{
	{"a repeat resolves it", func(t *testing.T, f Fixture) {
		for _, fault := range []faultstore.Fault{faultstore.FailAfter, faultstore.Delay, faultstore.NeverAnswer, faultstore.Crash} {
			store, err := faultstore.New(f.Journal, faultstore.Config{At: map[int]faultstore.Fault{2: fault}})
			noError(t, err, "faultstore.New")
			thread := fault.String()
			commits := []engine.JournalCommit{commit(thread, 0), commit(thread, 1), commit(thread, 2)}
			appendAll(t, store, commits[0])
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err = store.Append(ctx, commits[1])
			cancel()
			isError(t, err, "append with fault "+thread, engine.ErrUnknownOutcome)
			store.Reopen(nil)
			appendAll(t, store, commits[1], commits[2])
			store.Flush(t.Context())
			sameImage(t, imageOf(1, commits), load(t, f.Journal, thread, 0), "load")
		}
	}},
	{"a writer over a lossy connection", func(t *testing.T, f Fixture) {
		for seed := range uint64(4) {
			noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
			store := lossy(t, f, seed)
			acks, err := runWork(ctxOf(t), store, Work{Threads: []string{"t"}, Writers: 1, Commits: 40, Seed: seed, Every: 9})
			noError(t, err, "seed %d", seed)
			store.Flush(t.Context())
			noError(t, Check(ctxOf(t), f.Journal, acks), "seed %d", seed)
			// Nobody else writes, so a conflict would mean that a commit landed twice or
			// that an answer was wrong.
			equal(t, 40, load(t, f.Journal, "t", 0).Revision, "revision with seed %d", seed)
		}
	}},
	{"rival writers over a lossy connection", func(t *testing.T, f Fixture) {
		for seed := range uint64(2) {
			noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
			store := lossy(t, f, seed)
			acks, err := runWork(ctxOf(t), store, Work{Threads: []string{"t"}, Writers: 4, Commits: 15, Seed: seed})
			noError(t, err, "seed %d", seed)
			store.Flush(t.Context())
			noError(t, Check(ctxOf(t), f.Journal, acks), "seed %d", seed)
		}
	}},
	{"a stale writer does no harm", func(t *testing.T, f Fixture) {
		// The commit of a writer that gave up arrives when others have gone on.
		store, err := faultstore.New(f.Journal, faultstore.Config{At: map[int]faultstore.Fault{2: faultstore.Delay}})
		noError(t, err, "faultstore.New")
		mine, lost, theirs := commit("t", 0), commit("t", 1), commit("t", 1)
		appendAll(t, store, mine)
		_, err = store.Append(t.Context(), lost)
		isError(t, err, "append that is delayed", engine.ErrUnknownOutcome)
		appendAll(t, f.Journal, theirs)
		equal(t, 0, store.Flush(t.Context()), "late commits that landed")
		_, err = store.Append(t.Context(), lost)
		if !errors.Is(err, engine.ErrJournalConflict) {
			t.Fatalf("repeat of a commit that lost: %v", err)
		}
		sameImage(t, imageOf(1, []engine.JournalCommit{mine, theirs}), load(t, f.Journal, "t", 0), "load")
	}},
}
