package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/faultstore"
)

// lossy puts all faults that a caller can get over in front of a store.
func lossy(t *testing.T, f Fixture, seed uint64) *faultstore.Store {
	faulty, err := faultstore.New(f.Journal, faultstore.Config{Seed: seed, Rate: map[faultstore.Fault]float64{
		faultstore.FailAfter: 0.2, faultstore.Repeat: 0.1, faultstore.Delay: 0.2, faultstore.Stale: 0.1,
	}})
	noError(t, err, "faultstore.New")
	return faulty
}

var unknownTests = []test{
	{"a repeat resolves it", func(t *testing.T, f Fixture) {
		for _, fault := range []faultstore.Fault{faultstore.FailAfter, faultstore.Delay, faultstore.NeverAnswer, faultstore.Crash} {
			faulty, err := faultstore.New(f.Journal, faultstore.Config{At: map[int]faultstore.Fault{2: fault}})
			noError(t, err, "faultstore.New")
			thread := fault.String()
			commits := []store.Commit{commit(thread, 0), commit(thread, 1), commit(thread, 2)}
			appendAll(t, faulty, commits[0])
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err = faulty.Append(ctx, commits[1])
			cancel()
			isError(t, err, "append with fault "+thread, store.ErrUnknownOutcome)
			faulty.Reopen(nil)
			appendAll(t, faulty, commits[1], commits[2])
			faulty.Flush(t.Context())
			sameImage(t, imageOf(1, commits), load(t, f.Journal, thread, 0), "load")
		}
	}},
	{"a writer over a lossy connection", func(t *testing.T, f Fixture) {
		for seed := range uint64(4) {
			noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
			faulty := lossy(t, f, seed)
			acks, err := runWork(ctxOf(t), faulty, Work{Threads: []string{"t"}, Writers: 1, Commits: 40, Seed: seed, Every: 9})
			noError(t, err, "seed %d", seed)
			faulty.Flush(t.Context())
			noError(t, Check(ctxOf(t), f.Journal, acks), "seed %d", seed)
			// Nobody else writes, so a conflict would mean that a commit landed twice or
			// that an answer was wrong.
			equal(t, 40, load(t, f.Journal, "t", 0).Revision, "revision with seed %d", seed)
		}
	}},
	{"rival writers over a lossy connection", func(t *testing.T, f Fixture) {
		for seed := range uint64(2) {
			noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
			faulty := lossy(t, f, seed)
			acks, err := runWork(ctxOf(t), faulty, Work{Threads: []string{"t"}, Writers: 4, Commits: 15, Seed: seed})
			noError(t, err, "seed %d", seed)
			faulty.Flush(t.Context())
			noError(t, Check(ctxOf(t), f.Journal, acks), "seed %d", seed)
		}
	}},
	{"a stale writer does no harm", func(t *testing.T, f Fixture) {
		// The commit of a writer that gave up arrives when others have gone on.
		faulty, err := faultstore.New(f.Journal, faultstore.Config{At: map[int]faultstore.Fault{2: faultstore.Delay}})
		noError(t, err, "faultstore.New")
		mine, lost, theirs := commit("t", 0), commit("t", 1), commit("t", 1)
		appendAll(t, faulty, mine)
		_, err = faulty.Append(t.Context(), lost)
		isError(t, err, "append that is delayed", store.ErrUnknownOutcome)
		appendAll(t, f.Journal, theirs)
		equal(t, 0, faulty.Flush(t.Context()), "late commits that landed")
		_, err = faulty.Append(t.Context(), lost)
		if !errors.Is(err, store.ErrConflict) {
			t.Fatalf("repeat of a commit that lost: %v", err)
		}
		sameImage(t, imageOf(1, []store.Commit{mine, theirs}), load(t, f.Journal, "t", 0), "load")
	}},
}
