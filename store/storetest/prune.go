package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// tenCommits makes a thread of ten commits with snapshots at revisions 3, 6 and 9.
func tenCommits(t *testing.T, j store.Journal) []store.Commit {
	var commits []store.Commit
	for base := range uint64(10) {
		c := commit("t", base)
		if base%3 == 2 {
			c = snapshotCommit("t", base)
		}
		commits = append(commits, c)
	}
	appendAll(t, j, commits...)
	return commits
}

var pruneTests = []test{
	{"prune by count and age", func(t *testing.T, f Fixture) {
		at := func(revision uint64) time.Time { return commit("t", revision-1).Time }
		for _, tt := range []struct {
			policy store.PrunePolicy
			oldest uint64 // revision that is still kept
		}{
			{store.PrunePolicy{}, 1},
			{store.PrunePolicy{KeepSnapshots: 4}, 1},
			{store.PrunePolicy{Before: at(1)}, 1},
			{store.PrunePolicy{KeepSnapshots: 3}, 3},
			{store.PrunePolicy{KeepSnapshots: 2}, 6},
			{store.PrunePolicy{Before: at(3)}, 3},
			{store.PrunePolicy{Before: at(4)}, 6},
			{store.PrunePolicy{KeepSnapshots: 2, Before: at(9)}, 9},
			{store.PrunePolicy{KeepSnapshots: 1, Before: at(4)}, 9},
			{store.PrunePolicy{Before: at(100)}, 9},
			{store.PrunePolicy{KeepSnapshots: 1}, 9},
		} {
			noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
			commits := tenCommits(t, f.Journal)
			noError(t, f.Journal.Prune(t.Context(), "t", tt.policy), "prune by %+v", tt.policy)
			sameImage(t, imageOf(1, commits), load(t, f.Journal, "t", 0), fmt.Sprintf("load after prune by %+v", tt.policy))
			appendAll(t, f.Journal, commits[8], commits[9]) // repeats: from the newest snapshot on ids are kept
			h, ok := f.Journal.(store.Historian)
			for revision := uint64(1); ok && revision <= 10; revision++ {
				image, err := h.LoadAt(t.Context(), "t", revision)
				doing := fmt.Sprintf("prune by %+v, load at %d, where the oldest kept is %d", tt.policy, revision, tt.oldest)
				if revision < tt.oldest {
					isError(t, err, doing, store.ErrNoRevision)
					continue
				}
				noError(t, err, "%s", doing)
				sameImage(t, imageOf(1, commits[:revision]), image, doing)
			}
			appendAll(t, f.Journal, commit("t", 10))
		}
	}},
	{"prune without a snapshot", func(t *testing.T, f Fixture) {
		commits := grow(t, f.Journal, "t", 3)
		policy := store.PrunePolicy{KeepSnapshots: 1, Before: time.Now().AddDate(100, 0, 0)}
		noError(t, f.Journal.Prune(t.Context(), "t", policy), "prune")
		noError(t, f.Journal.Prune(t.Context(), "nobody", policy), "prune of a thread that is not there")
		sameImage(t, imageOf(1, commits), load(t, f.Journal, "t", 0), "load")
		page, err := f.Journal.Threads(t.Context(), "", 10)
		noError(t, err, "threads")
		equal(t, "[t]", fmt.Sprint(page), "threads")
	}},
	{"history", func(t *testing.T, f Fixture) {
		h, ok := f.Journal.(store.Historian)
		if !ok {
			t.Log("the store has no LoadAt")
			return
		}
		commits := tenCommits(t, f.Journal)
		for revision := range uint64(10) {
			image, err := h.LoadAt(t.Context(), "t", revision+1)
			noError(t, err, "load at %d", revision+1)
			sameImage(t, imageOf(1, commits[:revision+1]), image, "past image")
		}
		for _, revision := range []uint64{0, 11, 1<<64 - 1} {
			_, err := h.LoadAt(t.Context(), "t", revision)
			isError(t, err, fmt.Sprintf("load at %d of 10", revision), store.ErrNoRevision)
		}
		_, err := h.LoadAt(t.Context(), "nobody", 1)
		isError(t, err, "load at 1 of a thread that is not there", store.ErrNoRevision)
	}},
	{"prune while others append and load", func(t *testing.T, f Fixture) {
		const commits = 60
		ctx, cancel := context.WithCancel(ctxOf(t))
		defer cancel()
		done, round := make(chan struct{}), make(chan struct{})
		var workers sync.WaitGroup
		var failures [2]error
		for i := range failures {
			workers.Go(func() {
				for {
					select {
					case <-done:
						return
					case round <- struct{}{}:
					default:
					}
					err := f.Journal.Prune(ctx, "t", store.PrunePolicy{KeepSnapshots: 1 + i})
					image, loadErr := f.Journal.Load(ctx, "t", 0)
					if loadErr == nil && image.Revision > 0 {
						loadErr = checkChain(image)
					}
					if failures[i] = errors.Join(err, loadErr); failures[i] != nil {
						cancel() // nobody is to wait for this one
						return
					}
				}
			})
		}
		var all []store.Commit
		for base := range uint64(commits) {
			c := commit("t", base)
			if base%4 == 1 {
				c = snapshotCommit("t", base)
			}
			all = append(all, c)
			appendAll(t, f.Journal, c)
			if base%10 == 9 { // the others have to get a turn
				select {
				case <-round:
				case <-ctx.Done():
				}
			}
		}
		close(done)
		workers.Wait()
		noError(t, errors.Join(failures[:]...), "prune or load")
		sameImage(t, imageOf(1, all), load(t, f.Journal, "t", 0), "load at the end")
	}},
}

// checkChain reports an image that is not a snapshot and all records after it.
func checkChain(image store.Image) error {
	at := image.SnapshotAt
	for _, r := range image.Tail {
		if at++; r.Revision != at {
			return fmt.Errorf("record of revision %d where %d was to come", r.Revision, at)
		}
	}
	if at != image.Revision {
		return fmt.Errorf("the records end at revision %d of %d", at, image.Revision)
	}
	if n := len(image.Tail); n > 0 && image.Tail[n-1].ID != image.LastID {
		return fmt.Errorf("the last record has another id than the thread")
	}
	if (image.Snapshot == nil) != (image.SnapshotAt == 0) {
		return fmt.Errorf("a snapshot of revision %d with %d bytes", image.SnapshotAt, len(image.Snapshot))
	}
	return nil
}
