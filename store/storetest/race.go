package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ddd26017/fixpoint/store"
)

var raceTests = []test{
	{"one winner a revision", func(t *testing.T, f Fixture) {
		for _, writers := range []int{2, 8, 64} {
			thread := fmt.Sprintf("race of %d", writers)
			const rounds = 6
			for base := range uint64(rounds) {
				start := make(chan struct{})
				var won atomic.Int32
				var group sync.WaitGroup
				failures := make([]error, writers)
				for n := range writers {
					group.Go(func() {
						<-start
						revision, err := f.Journal.Append(ctxOf(t), commit(thread, base))
						if err == nil && revision == base+1 {
							won.Add(1)
						}
						failures[n] = err
					})
				}
				close(start)
				group.Wait()
				equal(t, 1, won.Load(), "winners of revision %d among %d writers", base+1, writers)
				for _, err := range failures {
					if err != nil {
						isError(t, err, "a loser's append", store.ErrConflict)
					}
				}
			}
			equal(t, rounds, load(t, f.Journal, thread, 0).Revision, "revision in the end")
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

var processTests = []test{
	{"one winner a revision", func(t *testing.T, f Fixture) {
		if f.Child == nil {
			t.Fatal("JournalCaps.MultiProcess is set, and Fixture.Child is nil")
		}
		const children = 3
		ctx := ctxOf(t)
		outs := make([]bytes.Buffer, children)
		failures := make([]error, children)
		var group sync.WaitGroup
		for n := range children {
			w := Work{Threads: []string{"a", "b"}, Writers: 4, Commits: 25, Seed: uint64(n) + 100}
			group.Go(func() { failures[n] = f.Child(ctx, strings.NewReader(w.Job()), &outs[n]) })
		}
		own, err := runWork(ctx, f.Journal, Work{Threads: []string{"a", "b"}, Writers: 4, Commits: 25, Seed: 1})
		noError(t, err, "work of the parent")
		group.Wait()
		all := own
		for n := range children {
			noError(t, failures[n], "child %d", n)
			acks, err := ReadAcks(&outs[n])
			noError(t, err, "acknowledgements of child %d", n)
			equal(t, 100, len(acks), "acknowledged commits of child %d", n)
			all = append(all, acks...)
		}
		noError(t, Check(ctx, f.Journal, all), "check of all processes' commits")
	}},
}
