// Package syncfail lets syncs fail under a store and checks that its user gets the
// error, that the store takes no further write until it is opened again, and that
// nothing acknowledged before is lost.
//
// Two kinds of failure take turns: each sync fails with EIO and what was written stays,
// and the writes themselves are forgotten, as a kernel may drop what it could not sync.
// What a real disk keeps after a failed sync is up to it; this shows what the store
// makes of it.
package syncfail

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/ddd26017/fixpoint/internal/faults/writer"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// Figures are what the rounds came to.
type Figures struct {
	Rounds int
	Acked  int // before the failure
	Later  int // after the store was opened again
	Seed   uint64
}

// String returns the figures as the command prints them.
func (f Figures) String() string {
	return fmt.Sprintf("rounds=%d acked=%d acked_later=%d lost=0 taken_after_failure=0 seed=%d", f.Rounds, f.Acked, f.Later, f.Seed)
}

// Run runs a child process for each round. Files go to dir.
func Run(ctx context.Context, dir string, rounds int, seed uint64) (Figures, error) {
	f := Figures{Seed: seed}
	random := rand.New(rand.NewPCG(seed, 14))
	strikes := []writer.Strike{writer.SyncFails, writer.WritesVanish}
	for n := range rounds {
		strike := strikes[n%len(strikes)]
		order := writer.Order{
			Path: filepath.Join(dir, fmt.Sprintf("%d.db", n)),
			Work: storetest.Work{
				Threads: []string{"a", "b", "c"}, Writers: 1 + random.IntN(8),
				Seed: random.Uint64(), MaxSize: 100 + random.IntN(8000), Every: 10,
			},
			Strike: strike, After: random.IntN(120),
		}
		if err := f.round(ctx, order); err != nil {
			return f, fmt.Errorf("syncfail: round %d (%s), seed %d: %w", n, strike, seed, err)
		}
	}
	return f, nil
}

func (f *Figures) round(ctx context.Context, o writer.Order) error {
	failed, err := writer.Do(ctx, o)
	switch {
	case err != nil:
		return err
	case failed.Failed == nil:
		return errors.New("the failure reached nobody")
	case failed.Accepted():
		return errors.New("the store took a write after one had failed")
	case !strings.Contains(failed.Said, "open it again"):
		return fmt.Errorf("the error does not tell what to do: %s", failed.Said)
	}
	if err := writer.Check(ctx, o.Path, failed.Acks); err != nil {
		return err
	}
	o.Strike, o.Work.Commits, o.Work.Seed = writer.Nothing, 5, o.Work.Seed+1
	more, err := writer.Do(ctx, o)
	if err != nil || more.Failed != nil {
		return errors.Join(err, more.Failed, fmt.Errorf("it does not go on after it was opened again: %s", more.Said))
	}
	f.Rounds++
	f.Acked += len(failed.Acks)
	f.Later += len(more.Acks)
	return writer.Check(ctx, o.Path, append(failed.Acks, more.Acks...))
}
