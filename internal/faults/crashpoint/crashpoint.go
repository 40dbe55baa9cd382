// Package crashpoint ends a script of commits at every point where a process can die in
// the middle of one, and checks that what is left is a prefix of the script that has
// every acknowledged commit, and that the script can go on from there.
package crashpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// Figures are what the crashes came to.
type Figures struct {
	Store  string
	Points int // where the script was ended
	Passed int // points that a commit does not always come to, and did not
	Acked  int
	Landed int // commits that were there without an acknowledgement
	Seed   uint64
}

// String returns the line that the command prints.
func (f Figures) String() string {
	return fmt.Sprintf("crashpoint store=%s points=%d passed=%d acked=%d landed_unacked=%d lost=0 seed=%d",
		f.Store, f.Points, f.Passed, f.Acked, f.Landed, f.Seed)
}

// script is one writer's; each commit ends before the next one begins.
func script(seed uint64, commits int) storetest.Work {
	return storetest.Work{Threads: []string{"a", "b"}, Writers: 1, Commits: commits, Seed: seed, MaxSize: 9000, Every: 7}
}

// points are where a commit to a file can be cut short, in their order.
var points = []writer.Strike{writer.DieAtResize, writer.DieAtData, writer.DieAtSync, writer.DieAtMeta, writer.DieAtAnswer}

// Bolt ends a child process at each point of each commit of a script. Files go to dir.
func Bolt(ctx context.Context, dir string, seed uint64, commits int) (Figures, error) {
	f := Figures{Store: "bolt", Seed: seed}
	for after := range commits {
		for _, point := range points {
			path := filepath.Join(dir, fmt.Sprintf("%d-%s.db", after, point))
			result, err := writer.Do(ctx, writer.Order{Path: path, Work: script(seed, commits), Strike: point, After: after})
			if err != nil {
				return f, err
			}
			switch {
			case result.Failed != nil:
				f.Points++
			case point == writer.DieAtResize:
				f.Passed++ // the file did not grow any more
			default:
				return f, fmt.Errorf("crashpoint: a commit was made without the point %q", point)
			}
			landed, err := f.check(ctx, path, result.Acks)
			if err != nil {
				return f, fmt.Errorf("crashpoint: bolt, %q after %d commits: %w %s", point, after, err, result.Said)
			}
			if landed > 0 && point != writer.DieAtAnswer {
				return f, fmt.Errorf("crashpoint: bolt, %q after %d commits: %d landed before they could", point, after, landed)
			}
			if err := os.Remove(path); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

func (f *Figures) check(ctx context.Context, path string, acks []storetest.Ack) (landed int, err error) {
	f.Acked += len(acks)
	if err := writer.Check(ctx, path, acks); err != nil {
		return 0, err
	}
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return 0, err
	}
	landed, err = goOn(ctx, j, acks)
	f.Landed += landed
	return landed, errors.Join(err, j.Close())
}

// goOn counts the commits that were not acknowledged, of which there can be one, and
// adds one to each thread.
func goOn(ctx context.Context, j engine.Journal, acks []storetest.Ack) (landed int, err error) {
	landed = -len(acks)
	for _, id := range script(0, 0).Threads {
		image, err := j.Load(ctx, id, 0)
		if err != nil {
			return 0, err
		}
		landed += int(image.Revision)
		if _, err := j.Append(ctx, engine.JournalCommit{ID: [16]byte{1}, Thread: id, Base: image.Revision}); err != nil {
			return 0, err
		}
	}
	if landed < 0 || landed > 1 {
		return 0, fmt.Errorf("%d commits are there beyond those acknowledged", landed)
	}
	return landed, nil
}

// Memory crashes the connection to a store in memory at each append of a script. What
// the store behind it has must be what was acknowledged, and at most one more.
func Memory(ctx context.Context, seed uint64, commits int) (Figures, error) {
	f := Figures{Store: "memstore+faults", Seed: seed}
	for at := 1; at <= commits; at++ {
		j, err := faultstore.New(memstore.New(memstore.Options{}), faultstore.Config{
			Seed: seed + uint64(at),
			At:   map[int]faultstore.Fault{at: faultstore.Crash},
		})
		if err != nil {
			return f, err
		}
		var acks []storetest.Ack
		err = script(seed, commits).Run(ctx, j, func(a storetest.Ack) { acks = append(acks, a) })
		if !errors.Is(err, faultstore.ErrCrashed) {
			return f, fmt.Errorf("crashpoint: the crash at append %d did not end the script: %w", at, err)
		}
		j.Reopen(nil)
		f.Points++
		f.Acked += len(acks)
		err = storetest.Check(ctx, j, acks)
		landed := 0
		if err == nil {
			landed, err = goOn(ctx, j, acks)
		}
		if err != nil {
			return f, fmt.Errorf("crashpoint: memstore, crash at append %d, seed %d: %w", at, seed, err)
		}
		f.Landed += landed
	}
	return f, nil
}
