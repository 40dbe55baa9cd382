package powercut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/ddd26017/fixpoint/internal/faults/loopfs"
	"github.com/ddd26017/fixpoint/internal/faults/writer"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// Plan says how often the power goes.
type Plan struct {
	Cuts   int
	Series int // cuts that one file lives through before the next begins; 0: 10
	NoSync bool
	Seed   uint64
}

// Figures are what the cuts came to.
type Figures struct {
	Plan
	Done  int
	Acked int
	Lost  int
}

// imageSize is that of the file systems.
const imageSize = 48 << 20

// Device cuts the power of a writer whose file is on a file system of its own: the
// process is stopped, the image of the file system is copied, which is what had reached
// the device, and the copy is mounted. The next cut happens to that copy. Files go to
// dir. The error of a store that lost or broke something names the cut; with NoSync
// that is what is counted instead.
func Device(ctx context.Context, dir string, p Plan) (Figures, error) {
	f := Figures{Plan: p}
	if err := loopfs.Usable(); err != nil {
		return f, err
	}
	if p.Series == 0 {
		p.Series = 10
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return f, err
	}
	template := filepath.Join(dir, "template.img")
	if err := loopfs.Make(ctx, template, imageSize); err != nil {
		return f, err
	}
	random := rand.New(rand.NewPCG(p.Seed, 11))
	image, spare := filepath.Join(dir, "one.img"), filepath.Join(dir, "two.img")
	var acks []storetest.Ack // of this file
	for f.Done < p.Cuts && ctx.Err() == nil {
		if f.Done%p.Series == 0 {
			acks = nil
			if err := loopfs.Copy(ctx, template, image); err != nil {
				return f, err
			}
		}
		fresh, err := cut(ctx, image, spare, filepath.Join(dir, "mounted"), p, random)
		if err != nil {
			return f, fmt.Errorf("powercut: cut %d, seed %d: %w", f.Done+1, p.Seed, err)
		}
		acks = append(acks, fresh...)
		f.Done++
		f.Acked += len(fresh)
		image, spare = spare, image
		lost, err := after(ctx, image, filepath.Join(dir, "recovered"), p, acks)
		if err != nil {
			return f, fmt.Errorf("powercut: cut %d, seed %d: %w", f.Done, p.Seed, err)
		}
		f.Lost += lost
		if p.NoSync {
			acks = nil
			if err := loopfs.Copy(ctx, template, image); err != nil {
				return f, err
			}
		}
	}
	return f, ctx.Err()
}

// cut lets a writer work on image for a while and leaves in copied what had reached the
// device then. It returns what was acknowledged before.
func cut(ctx context.Context, image, copied, dir string, p Plan, random *rand.Rand) (acks []storetest.Ack, err error) {
	fs, err := loopfs.Mount(ctx, image, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fs.Unmount()) }()
	run, err := writer.Start(ctx, writer.Order{
		Path:   filepath.Join(dir, "threads.db"),
		NoSync: p.NoSync,
		Work: storetest.Work{
			Threads: []string{"a", "b", "c", "d"}, Writers: 1 + random.IntN(16),
			Seed: random.Uint64(), MaxSize: 100 + random.IntN(4000), Every: 5 + random.IntN(50),
		},
	})
	if err != nil {
		return nil, err
	}
	enough := run.Await(random.IntN(150))
	time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond) // so that the cut is anywhere in a commit
	stopped := run.Stop()
	if enough && stopped == nil {
		err = fs.CopyQuiet(ctx, image, copied)
	}
	_ = run.Kill()
	result, failed := run.Wait()
	if !enough || stopped != nil {
		failed = errors.Join(failed, stopped, fmt.Errorf("the writer ended by itself: %w %s", result.Failed, result.Said))
	}
	return result.Acks, errors.Join(err, failed)
}

// after mounts what was left and looks for what was acknowledged.
func after(ctx context.Context, image, dir string, p Plan, acks []storetest.Ack) (lost int, err error) {
	fs, err := loopfs.Mount(ctx, image, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, fs.Unmount()) }()
	path := filepath.Join(dir, "threads.db")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && len(acks) == 0 {
		return 0, nil
	}
	if p.NoSync {
		return writer.Lost(ctx, path, acks), nil
	}
	return 0, writer.Check(ctx, path, acks)
}
