package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ddd26017/fixpoint/store"
)

var raceTests = []test{
	{"one winner a revision", func(t *testing.T, f Fixture) {
		for _, writers := range []int{2, 4, 16, 64} {
			thread := fmt.Sprintf("race of %d", writers)
			const rounds = 5
			for base := range uint64(rounds) {
				commits := make([]store.Commit, writers)
				for n := range commits {
					commits[n] = commit(thread, base)
				}
				winner := -1
				for n, err := range together(writers, func(n int) error {
					revision, err := f.Journal.Append(ctxOf(t), commits[n])
					if err == nil && revision != base+1 {
						return fmt.Errorf("the revision is %d", revision)
					}
					return err
				}) {
					var conflict *store.Conflict
					switch {
					case err == nil && winner < 0:
						winner = n
					case err == nil:
						t.Fatalf("revision %d has two winners among %d writers", base+1, writers)
					case errors.As(err, &conflict):
						equal(t, store.Conflict{Thread: thread, Base: base, Have: base + 1}, *conflict, "conflict of a loser")
					default:
						t.Fatalf("a loser's append: %v", err)
					}
				}
				if winner < 0 {
					t.Fatalf("revision %d has no winner among %d writers", base+1, writers)
				}
				equal(t, commits[winner].ID, load(t, f.Journal, thread, base+1).LastID, "id of revision %d", base+1)
				appendAll(t, f.Journal, commits[winner])
				_, err := f.Journal.Append(t.Context(), commits[(winner+1)%writers])
				isError(t, err, "a loser's repeat", store.ErrConflict)
			}
			equal(t, rounds, load(t, f.Journal, thread, 0).Revision, "revision in the end")
		}
	}},
	{"writers that keep apart never conflict", func(t *testing.T, f Fixture) {
		for n, err := range together(64, func(n int) error {
			for base := range uint64(4) {
				if _, err := f.Journal.Append(ctxOf(t), commit(fmt.Sprint("thread ", n), base)); err != nil {
					return err
				}
			}
			return nil
		}) {
			noError(t, err, "writer %d", n)
		}
	}},
	{"no answer is older than what was acknowledged before", func(t *testing.T, f Fixture) {
		const commits = 40
		var acked atomic.Uint64
		for n, err := range together(8, func(int) error {
			for {
				floor := acked.Load()
				if floor >= commits {
					return nil
				}
				revision, err := f.Journal.Append(ctxOf(t), commit("t", floor))
				var conflict *store.Conflict
				switch {
				case err == nil:
					if !acked.CompareAndSwap(floor, revision) || revision != floor+1 {
						return fmt.Errorf("revision %d was won after %d", revision, acked.Load())
					}
				case errors.As(err, &conflict):
					if conflict.Have <= floor {
						return fmt.Errorf("a conflict at %d says that the thread is at %d", floor, conflict.Have)
					}
					// Its winner has its answer soon, if not yet.
					image, err := f.Journal.Load(ctxOf(t), "t", conflict.Have)
					if err != nil || image.Revision < conflict.Have {
						return fmt.Errorf("load of at least %d: revision %d, %w", conflict.Have, image.Revision, err)
					}
					for acked.Load() < conflict.Have {
						runtime.Gosched()
					}
				default:
					return err
				}
			}
		}) {
			noError(t, err, "writer %d", n)
		}
	}},
	{"one commit sent by many", func(t *testing.T, f Fixture) {
		c := commit("t", 0)
		var group sync.WaitGroup
		failures := make([]error, 16)
		for n := range failures {
			group.Go(func() { _, failures[n] = f.Journal.Append(ctxOf(t), c) })
		}
		group.Wait()
		for _, err := range failures {
			noError(t, err, "append of the same commit")
		}
		sameImage(t, imageOf(1, []store.Commit{c}), load(t, f.Journal, "t", 0), "load")
	}},
	{"no fork, none lost", func(t *testing.T, f Fixture) {
		for _, w := range []Work{
			{Threads: []string{"one"}, Writers: 16, Commits: 10, Seed: 1},
			{Threads: []string{"a", "b", "c"}, Writers: 8, Commits: 20, Seed: 2, Every: 7},
			{Threads: []string{"wide"}, Writers: 64, Commits: 2, Seed: 3},
		} {
			acks, err := runWork(ctxOf(t), f.Journal, w)
			noError(t, err, "work %+v", w)
			equal(t, w.Writers*w.Commits, len(acks), "acknowledged commits")
			noError(t, Check(ctxOf(t), f.Journal, acks), "check of %+v", w)
		}
	}},
}

func runWork(ctx context.Context, j store.Journal, w Work) (acks []Ack, err error) {
	var mu sync.Mutex
	err = w.Run(ctx, j, func(a Ack) {
		mu.Lock()
		defer mu.Unlock()
		acks = append(acks, a)
	})
	return acks, err
}
