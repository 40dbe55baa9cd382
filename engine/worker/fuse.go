package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// fuse is the journal that a worker's engine writes to. A worker that shuts down blows the
// fuse of a thread whose run does not end in time: nothing of the run is kept from then
// on, not even that it ended, so it is as if the process had died at its last commit, and
// another worker goes on from there. The lease is given back, which a process that died
// could not do.
type fuse struct {
	store.Journal
	leaser store.Leaser
	outbox store.Outbox

	mu    sync.Mutex
	blown map[string]bool
}

func newFuse(j store.Journal) *fuse {
	return &fuse{Journal: j, leaser: j.(store.Leaser), outbox: j.(store.Outbox), blown: map[string]bool{}}
}

func (f *fuse) blow(thread string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blown[thread] = true
}

func (f *fuse) off(thread string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blown[thread]
}

// errFuse is what the engine gets instead of a commit.
var errFuse = fmt.Errorf("worker: it shuts down, and another one goes on with the thread: %w", store.ErrFenced)

// errStore marks what went wrong with the store itself, for which no activation is to blame.
var errStore = errors.New("worker: the store failed")

func blame(err error) error {
	for _, verdict := range []error{
		store.ErrConflict, store.ErrFenced, store.ErrLeaseHeld, store.ErrUnknownOutcome, store.ErrTooLarge,
		store.ErrCorrupt, store.ErrNoRevision, errStore,
	} {
		if errors.Is(err, verdict) {
			return err
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errStore, err)
}

func (f *fuse) Append(ctx context.Context, c store.Commit) (uint64, error) {
	if f.off(c.Thread) {
		return 0, errFuse
	}
	revision, err := f.Journal.Append(ctx, c)
	return revision, blame(err)
}

func (f *fuse) Load(ctx context.Context, thread string, atLeast uint64) (store.Image, error) {
	image, err := f.Journal.Load(ctx, thread, atLeast)
	return image, blame(err)
}

func (f *fuse) LoadAt(ctx context.Context, thread string, revision uint64) (store.Image, error) {
	h, ok := f.Journal.(store.Historian)
	if !ok {
		return store.Image{}, fmt.Errorf("worker: the store keeps no history: %w", store.ErrNoRevision)
	}
	image, err := h.LoadAt(ctx, thread, revision)
	return image, blame(err)
}

func (f *fuse) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (store.Lease, error) {
	if f.off(thread) {
		return store.Lease{}, errFuse
	}
	l, err := f.leaser.Acquire(ctx, thread, owner, ttl)
	return l, blame(err)
}

func (f *fuse) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	return f.leaser.Renew(ctx, l, ttl)
}

func (f *fuse) Release(ctx context.Context, l store.Lease) error { return f.leaser.Release(ctx, l) }

func (f *fuse) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]store.Claim, error) {
	claims, err := f.outbox.Claim(ctx, lane, worker, limit, ttl)
	return claims, blame(err)
}

func (f *fuse) Settle(ctx context.Context, c store.Claim, s store.Settlement) error {
	return f.outbox.Settle(ctx, c, s)
}
