package powercut

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/ddd26017/fixpoint/internal/faults/writer"
	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/storetest"
)

const (
	sector    = 512
	metaPages = 2
	eachTime  = 8 // cuts in one commit
)

// Order takes the file before and after each of some commits and cuts the power in
// between. With syncs any choice of the changed sectors may have reached the disk, but
// the meta page only after all others; without (p.NoSync) also the meta page alone with
// some of them. Files go to dir.
func Order(ctx context.Context, dir string, p Plan) (Figures, error) {
	f := Figures{Plan: p}
	random := rand.New(rand.NewPCG(p.Seed, 12))
	path, torn := filepath.Join(dir, "threads.db"), filepath.Join(dir, "torn.db")
	j, err := bolt.Open(path, bolt.Options{NoSync: true}) // its order of writes is the same
	if err != nil {
		return f, err
	}
	defer j.Close()
	var acks []storetest.Ack
	for n := uint64(0); f.Done < p.Cuts && ctx.Err() == nil; n++ {
		work := storetest.Work{Threads: []string{"a", "b"}, Writers: 1, Commits: 1, Seed: p.Seed + n, MaxSize: 6000, Every: 6}
		before, err := os.ReadFile(path)
		if err != nil {
			return f, err
		}
		acked := acks
		if err := work.Run(ctx, j, func(a storetest.Ack) { acks = append(acks, a) }); err != nil {
			return f, err
		}
		after, err := os.ReadFile(path)
		if err != nil {
			return f, err
		}
		for range eachTime {
			if f.Done == p.Cuts {
				break
			}
			whole := false
			image := someOf(before, after, random)
			switch {
			case p.NoSync:
				copy(image, after[:metaPages*os.Getpagesize()])
				whole = true // to its user the commit was done
			case random.IntN(4) == 0:
				image, whole = bytes.Clone(after), true
			case random.IntN(3) == 0:
				image = tornMeta(before, after, random)
			}
			if err := os.WriteFile(torn, image, 0o600); err != nil {
				return f, err
			}
			expect := acked
			if whole {
				expect = acks
			}
			f.Done++
			f.Acked += len(expect)
			err := writer.Check(ctx, torn, expect)
			switch {
			case err != nil && !p.NoSync:
				return f, fmt.Errorf("powercut: commit %d, seed %d: %w", n, p.Seed, err)
			case err != nil:
				f.Lost += max(1, writer.Lost(ctx, torn, expect))
			}
		}
	}
	return f, errors.Join(ctx.Err(), os.Remove(torn))
}

// someOf is before with some of the sectors of after, the meta pages left out.
func someOf(before, after []byte, random *rand.Rand) []byte {
	image := bytes.Clone(before)
	if grown := len(after) - len(before); grown > 0 && random.IntN(2) == 0 {
		image = append(image, make([]byte, grown)...)
	}
	share := random.Float64()
	for at := metaPages * os.Getpagesize(); at < len(image); at += sector {
		if random.Float64() < share {
			copy(image[at:at+sector], after[at:])
		}
	}
	return image
}

// tornMeta is after with only the first bytes of its new meta page.
func tornMeta(before, after []byte, random *rand.Rand) []byte {
	image := bytes.Clone(after)
	size := os.Getpagesize()
	for page := range metaPages {
		at := page*size + random.IntN(80)
		copy(image[at:(page+1)*size], before[at:])
	}
	return image
}
