package crash

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
)

// forgetful is a store that does not keep its word: it acknowledges a commit and keeps
// it only when the thread's next one comes. It is there to see that Run finds out.
type forgetful struct {
	*bolt.Journal
	mu   sync.Mutex
	held map[string]engine.JournalCommit
}

// Append implements engine.Journal, in its way.
func (f *forgetful) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.keep(ctx, c.Thread); err != nil {
		return 0, err
	}
	c.Record, c.Snapshot = slices.Clone(c.Record), slices.Clone(c.Snapshot)
	f.held[c.Thread] = c
	return c.Base + 1, nil
}

// keep keeps what is held of a thread.
func (f *forgetful) keep(ctx context.Context, thread string) error {
	c, ok := f.held[thread]
	if !ok {
		return nil
	}
	delete(f.held, thread)
	_, err := f.Journal.Append(ctx, c)
	return err
}

// Acquire implements engine.Leaser.
func (f *forgetful) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (engine.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.keep(ctx, thread); err != nil {
		return engine.Lease{}, err
	}
	return f.Journal.Acquire(ctx, thread, owner, ttl)
}

// Load implements engine.Journal.
func (f *forgetful) Load(ctx context.Context, thread string, atLeast uint64) (engine.JournalImage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.keep(ctx, thread); err != nil {
		return engine.JournalImage{}, err
	}
	return f.Journal.Load(ctx, thread, atLeast)
}

// Close implements engine.Journal. A process that is not killed loses nothing.
func (f *forgetful) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, thread := range slices.Sorted(maps.Keys(f.held)) {
		if err := f.keep(context.Background(), thread); err != nil {
			return err
		}
	}
	return f.Journal.Close()
}
