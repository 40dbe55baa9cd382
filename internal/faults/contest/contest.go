// Package contest lets 2 to 64 writers fight over one thread and checks that each
// revision has one winner, that no acknowledged commit is missing and that each record
// is whole. With the race detector it also looks for data races.
package contest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/memstore"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// Plan is one contest.
type Plan struct {
	Store   string // "memstore" or "bolt"
	Commits int    // to be won in all
	Seed    uint64
}

// Figures are what a contest came to.
type Figures struct {
	Plan
	Won    int
	Beaten int // appends that another writer was faster than
}

// String returns the line that the command prints.
func (f Figures) String() string {
	return fmt.Sprintf("contest store=%s writers=2..64 commits=%d beaten=%d forks=0 lost=0 seed=%d", f.Store, f.Won, f.Beaten, f.Seed)
}

// Err says whether there were enough commits, and enough that had a rival.
func (f Figures) Err() error {
	if f.Won < f.Commits || f.Beaten < f.Commits/10 {
		return fmt.Errorf("contest: %s: %d commits won and %d beaten; want %d and a tenth of it", f.Store, f.Won, f.Beaten, f.Commits)
	}
	return nil
}

// Run holds a contest; files go to dir. A fork or a loss is an error.
func Run(ctx context.Context, dir string, p Plan) (Figures, error) {
	f := Figures{Plan: p}
	store, err := open(p.Store, dir)
	if err != nil {
		return f, err
	}
	counter := &counting{Journal: store}
	crowds := []int{2, 4, 8, 16, 32, 64}
	for n, writers := range crowds {
		w := storetest.Work{
			Threads: []string{fmt.Sprintf("race of %d", writers)},
			Writers: writers,
			Commits: (p.Commits + len(crowds)*writers - 1) / (len(crowds) * writers),
			Seed:    p.Seed + uint64(n),
			Every:   100,
		}
		var mu sync.Mutex
		var acks []storetest.Ack
		err := w.Run(ctx, counter, func(a storetest.Ack) {
			mu.Lock()
			defer mu.Unlock()
			acks = append(acks, a)
		})
		if err = errors.Join(err, storetest.Check(ctx, store, acks), ctx.Err()); err != nil {
			return f, errors.Join(fmt.Errorf("contest: %s, %d writers, seed %d: %w", p.Store, writers, w.Seed, err), store.Close())
		}
		image, err := store.Load(ctx, w.Threads[0], 0)
		if err != nil || image.Revision != uint64(len(acks)) {
			return f, errors.Join(fmt.Errorf("contest: %s, %d writers: %d commits won, and the thread is at revision %d", p.Store, writers, len(acks), image.Revision), err, store.Close())
		}
		f.Won += len(acks)
	}
	f.Beaten = int(counter.beaten.Load())
	return f, store.Close()
}

func open(name, dir string) (engine.Journal, error) {
	switch name {
	case "memstore":
		return memstore.New(memstore.Options{}), nil
	case "bolt":
		return bolt.Open(filepath.Join(dir, "contest.db"), bolt.Options{})
	}
	return nil, fmt.Errorf("contest: there is no store %q; want memstore or bolt", name)
}

// counting counts conflicts, and lets other writers in between two calls, which a store
// in memory would answer too fast for.
type counting struct {
	engine.Journal
	beaten atomic.Int64
}

// Append implements engine.Journal.
func (c *counting) Append(ctx context.Context, commit engine.JournalCommit) (uint64, error) {
	runtime.Gosched()
	revision, err := c.Journal.Append(ctx, commit)
	if errors.Is(err, engine.ErrJournalConflict) {
		c.beaten.Add(1)
	}
	return revision, err
}
