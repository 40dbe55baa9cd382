package storetest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Work is a job for Serve: writers that fight over threads. Each writer takes the
// threads in turn, appends where it believes the thread to be, and believes a
// conflict.
type Work struct {
	Threads []string
	Writers int
	Commits int    // won by each writer; 0: until the context ends
	Seed    uint64 // of ids and sizes
	MaxSize int    // of records; 0: 200 bytes
	Every   int    // a snapshot at every revision that this divides; 0: none
}

// Ack is a commit that a store acknowledged.
type Ack struct {
	Thread   string
	Revision uint64
	ID       [16]byte
}

// Run runs the job on a store and calls ack for each acknowledged commit, from
// several goroutines. It resolves unknown outcomes by repeating the commit. It
// returns when the work is done, with nil when ctx ended it.
func (w Work) Run(ctx context.Context, j store.Journal, ack func(Ack)) error {
	failures := make([]error, w.Writers)
	var writers sync.WaitGroup
	for n := range w.Writers {
		writers.Go(func() {
			failures[n] = w.write(ctx, j, rand.New(rand.NewPCG(w.Seed, uint64(n)+1)), n, ack)
		})
	}
	writers.Wait()
	return errors.Join(failures...)
}

func (w Work) write(ctx context.Context, j store.Journal, random *rand.Rand, writer int, ack func(Ack)) error {
	base := map[string]uint64{}
	for won := 0; (w.Commits == 0 || won < w.Commits) && ctx.Err() == nil; {
		c := w.next(random, w.Threads[(writer+won)%len(w.Threads)], base)
		revision, err := j.Append(ctx, c)
		for tries := 0; errors.Is(err, store.ErrUnknownOutcome) && ctx.Err() == nil && tries < 1000; tries++ {
			revision, err = j.Append(ctx, c)
		}
		var conflict *store.Conflict
		switch {
		case err == nil && revision != c.Base+1:
			return fmt.Errorf("storetest: append to %s at %d returned revision %d", c.Thread, c.Base, revision)
		case err == nil:
			base[c.Thread] = revision
			won++
			ack(Ack{c.Thread, revision, c.ID})
		case errors.As(err, &conflict):
			if conflict.Have == c.Base {
				return fmt.Errorf("storetest: a conflict at the revision asked for: %w", err)
			}
			base[c.Thread] = conflict.Have
		case ctx.Err() != nil:
			return nil
		default:
			return fmt.Errorf("storetest: append to %s at %d: %w", c.Thread, c.Base, err)
		}
	}
	return nil
}

// next makes a commit; its record follows from its id, so that CheckRecord can tell
// whether it is whole.
func (w Work) next(random *rand.Rand, thread string, base map[string]uint64) store.Commit {
	c := store.Commit{Thread: thread, Base: base[thread], Time: time.Unix(int64(base[thread]), 0)}
	for i := range c.ID {
		c.ID[i] = byte(random.Uint32())
	}
	size := w.MaxSize
	if size <= 0 {
		size = 200
	}
	c.Record = recordOf(c.ID, random.IntN(size))
	if w.Every > 0 && (c.Base+1)%uint64(w.Every) == 0 {
		c.Snapshot = recordOf(c.ID, random.IntN(size))
	}
	return c
}

// recordOf makes bytes that tell their own id and length.
func recordOf(id [16]byte, size int) []byte {
	record := fmt.Appendf(nil, "\x01%x %d ", id, size)
	h := fnv.New64a()
	_, _ = h.Write(record)
	random := rand.New(rand.NewPCG(h.Sum64(), uint64(size)))
	for range size {
		record = append(record, byte(random.Uint32()))
	}
	return record
}

// CheckRecord reports a record, or a snapshot, that is not the one that Work made
// for a commit with this id.
func CheckRecord(id [16]byte, record []byte) error {
	head, _, _ := strings.Cut(string(record[:min(len(record), 64)]), " ")
	if head != "\x01"+hex.EncodeToString(id[:]) {
		return fmt.Errorf("storetest: the record of commit %x is of another commit", id)
	}
	rest := string(record[len(head)+1:])
	text, _, _ := strings.Cut(rest, " ")
	size, err := strconv.Atoi(text)
	if err != nil || size < 0 || size > len(record) || string(recordOf(id, size)) != string(record) {
		return fmt.Errorf("storetest: the record of commit %x is damaged", id)
	}
	return nil
}

// Check compares a store that nobody writes to with the commits that were
// acknowledged: every one must be there, no revision may have two, and every record
// must be whole. Of records before the newest snapshot it sees the
// acknowledgements only.
func Check(ctx context.Context, j store.Journal, acks []Ack) error {
	threads := map[string]map[uint64][16]byte{}
	var faults []error
	for _, a := range acks {
		if threads[a.Thread] == nil {
			threads[a.Thread] = map[uint64][16]byte{}
		}
		if id, twice := threads[a.Thread][a.Revision]; twice && id != a.ID {
			faults = append(faults, fmt.Errorf("storetest: fork: revision %d of %s was given to %x and to %x", a.Revision, a.Thread, id, a.ID))
		}
		threads[a.Thread][a.Revision] = a.ID
	}
	for thread, acked := range threads {
		image, err := j.Load(ctx, thread, 0)
		if err != nil {
			faults = append(faults, fmt.Errorf("storetest: load %s: %w", thread, err))
			continue
		}
		faults = append(faults, checkThread(thread, image, acked)...)
	}
	return errors.Join(faults...)
}

func checkThread(thread string, image store.Image, acked map[uint64][16]byte) (faults []error) {
	if err := checkChain(image); err != nil {
		faults = append(faults, fmt.Errorf("storetest: %s: %w", thread, err))
	}
	kept := map[uint64][16]byte{}
	for _, r := range image.Tail {
		kept[r.Revision] = r.ID
		if err := CheckRecord(r.ID, r.Record); err != nil {
			faults = append(faults, fmt.Errorf("revision %d of %s: %w", r.Revision, thread, err))
		}
	}
	for revision, id := range acked {
		switch {
		case revision > image.Revision:
			faults = append(faults, fmt.Errorf("storetest: lost: revision %d of %s was acknowledged, the thread ends at %d", revision, thread, image.Revision))
		case revision > image.SnapshotAt && kept[revision] != id:
			faults = append(faults, fmt.Errorf("storetest: revision %d of %s is %x, acknowledged was %x", revision, thread, kept[revision], id))
		case revision == image.SnapshotAt:
			if err := CheckRecord(id, image.Snapshot); err != nil {
				faults = append(faults, fmt.Errorf("snapshot of revision %d of %s: %w", revision, thread, err))
			}
		}
	}
	return faults
}
