// Package diskfull fills the disk under a store and checks that its user gets an error
// that says so, that nothing acknowledged is lost, that the store opens while the disk
// is full, and that it goes on when there is room again.
//
// Device uses a real file system of a few megabytes, which needs Linux and root; Filter
// lets the writes of a child process fail in the way of a full disk, which needs no
// rights but fails whole writes only.
package diskfull

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/ddd26017/fixpoint/internal/faults/loopfs"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// Figures are what the rounds came to.
type Figures struct {
	Rounds int // times that the disk was full
	Acked  int // before that
	Later  int // after there was room again
	Seed   uint64
}

// String returns the figures as the command prints them.
func (f Figures) String() string {
	return fmt.Sprintf("rounds=%d acked=%d acked_later=%d lost=0 taken_after_failure=0 seed=%d", f.Rounds, f.Acked, f.Later, f.Seed)
}

// imageSize is that of the file systems, and ballast what is taken away from it at
// first.
const (
	imageSize = 24 << 20
	ballast   = 6 << 20
)

// Device fills file systems. Files go to dir.
func Device(ctx context.Context, dir string, rounds int, seed uint64) (Figures, error) {
	f := Figures{Seed: seed}
	if err := loopfs.Usable(); err != nil {
		return f, err
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return f, err
	}
	image := filepath.Join(dir, "small.img")
	for n := range rounds {
		if err := loopfs.Make(ctx, image, imageSize); err != nil {
			return f, err
		}
		if err := f.mounted(ctx, image, filepath.Join(dir, "mounted"), seed+uint64(n)); err != nil {
			return f, fmt.Errorf("diskfull: round %d, seed %d: %w", n, seed, err)
		}
	}
	return f, nil
}

func (f *Figures) mounted(ctx context.Context, image, dir string, seed uint64) (err error) {
	fs, err := loopfs.Mount(ctx, image, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fs.Unmount()) }()
	stone := filepath.Join(dir, "ballast")
	if err := os.WriteFile(stone, make([]byte, ballast), 0o600); err != nil {
		return err
	}
	order := writer.Order{Path: filepath.Join(dir, "threads.db"), Work: work(seed)}
	return f.round(ctx, order, func() error { return os.Remove(stone) })
}

// Filter lets the writes of child processes fail. Files go to dir.
func Filter(ctx context.Context, dir string, rounds int, seed uint64) (Figures, error) {
	f := Figures{Seed: seed}
	random := rand.New(rand.NewPCG(seed, 13))
	for n := range rounds {
		order := writer.Order{
			Path:   filepath.Join(dir, fmt.Sprintf("%d.db", n)),
			Work:   work(seed + uint64(n)),
			Strike: writer.DiskFull, After: random.IntN(100),
		}
		if err := f.round(ctx, order, func() error { return nil }); err != nil {
			return f, fmt.Errorf("diskfull: round %d, seed %d: %w", n, seed, err)
		}
	}
	return f, nil
}

// work goes on until it fails.
func work(seed uint64) storetest.Work {
	return storetest.Work{Threads: []string{"a", "b"}, Writers: 4, Seed: seed, MaxSize: 20_000, Every: 20}
}

func (f *Figures) round(ctx context.Context, o writer.Order, makeRoom func() error) error {
	full, err := writer.Do(ctx, o)
	switch {
	case err != nil:
		return err
	case full.Failed == nil:
		return errors.New("the disk was never full")
	case full.Accepted():
		return errors.New("the store took a write after one had failed")
	case !strings.Contains(full.Said, "open it again"):
		return fmt.Errorf("the error does not tell what to do: %s", full.Said)
	case o.Strike == writer.Nothing && !strings.Contains(full.Said, "no space left"):
		return fmt.Errorf("the error does not tell the cause: %s", full.Said)
	}
	if err := writer.Check(ctx, o.Path, full.Acks); err != nil {
		return fmt.Errorf("while the disk is full: %w", err)
	}
	if err := makeRoom(); err != nil {
		return err
	}
	o.Strike, o.Work.Commits, o.Work.Seed = writer.Nothing, 10, o.Work.Seed+1_000_000
	more, err := writer.Do(ctx, o)
	if err != nil || more.Failed != nil {
		return errors.Join(err, more.Failed, fmt.Errorf("it does not go on when there is room: %s", more.Said))
	}
	f.Rounds++
	f.Acked += len(full.Acks)
	f.Later += len(more.Acks)
	return writer.Check(ctx, o.Path, append(full.Acks, more.Acks...))
}
