package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// boxes reads and writes the inboxes of a journal.
type boxes struct {
	journal store.Journal
	now     func() time.Time
	limit   time.Duration // for one call of the store
}

// bounded makes a call of the store that does not hang for ever.
func bounded[T any](ctx context.Context, limit time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx)
}

func (s boxes) load(ctx context.Context, thread string, atLeast uint64) (*box, error) {
	image, err := bounded(ctx, s.limit, func(ctx context.Context) (store.Image, error) {
		return s.journal.Load(ctx, InboxPrefix+thread, atLeast)
	})
	if err != nil {
		return nil, fmt.Errorf("worker: the inbox of thread %s could not be loaded: %w", thread, err)
	}
	b, err := open(image)
	if err != nil {
		return nil, fmt.Errorf("worker: the inbox of thread %s: %w", thread, err)
	}
	return b, nil
}

// change is one commit of an inbox in the making.
type change struct {
	record
	effects []store.Effect
	settles []uint64 // activations whose wake-ups are over
}

// commit lets decide look at the inbox and appends what it returns, again until nobody
// else came first. Nil changes nothing. It returns the inbox as it is then. After an
// error that is ErrUnknownOutcome the change may have landed all the same.
func (s boxes) commit(ctx context.Context, thread string, decide func(*box) (*change, error)) (*box, error) {
	atLeast := uint64(0)
	for try := 0; ; try++ {
		b, err := s.load(ctx, thread, atLeast)
		if err != nil {
			return nil, err
		}
		c, err := decide(b)
		if err != nil || c == nil {
			return b, err
		}
		err = s.append(ctx, thread, b, c)
		var conflict *store.Conflict
		switch {
		case err == nil:
			return b, nil
		case !errors.As(err, &conflict):
			return nil, fmt.Errorf("worker: the inbox of thread %s could not be written: %w", thread, err)
		}
		atLeast = conflict.Have
		if err := pause(ctx, time.Duration(mathrand.Int64N(int64(min(time.Millisecond<<min(try, 10), 100*time.Millisecond))))); err != nil {
			return nil, err
		}
	}
}

// unknownTries is how often an append whose outcome is unknown is repeated.
const unknownTries = 8

// append makes one commit on top of b, and b what comes of it. A conflict means that it
// did not land and never will, whatever an earlier try of it answered: somebody else made
// the revision that it was to make.
func (s boxes) append(ctx context.Context, thread string, b *box, c *change) (err error) {
	commit := store.Commit{Thread: InboxPrefix + thread, Base: b.revision, Time: s.now(), Effects: c.effects}
	_, _ = rand.Read(commit.ID[:]) // never fails
	if commit.Record, err = encode(c.record); err != nil {
		return err
	}
	for _, seq := range c.settles {
		commit.Settles = append(commit.Settles, wakeupRef(thread, seq))
	}
	if b.Inbox == "" {
		b.Inbox = fmt.Sprintf("%x", commit.ID)
	}
	b.add(c.record, b.revision+1)
	b.tail++
	if b.tail >= longTail {
		whole, err := encode(b)
		if most := s.journal.Caps().MaxBytes; err == nil && (most == 0 || len(whole) <= most) {
			commit.Snapshot, b.tail = whole, 0
		}
	}
	for try := range unknownTries {
		_, err = bounded(ctx, s.limit, func(ctx context.Context) (uint64, error) { return s.journal.Append(ctx, commit) })
		if !errors.Is(err, store.ErrUnknownOutcome) {
			break
		}
		if pause(ctx, time.Millisecond<<try) != nil {
			break
		}
	}
	if err == nil && commit.Snapshot != nil {
		_, _ = bounded(ctx, s.limit, func(ctx context.Context) (struct{}, error) { // if it fails, the next one does it
			return struct{}{}, s.journal.Prune(ctx, commit.Thread, store.PrunePolicy{KeepSnapshots: 1})
		})
	}
	return err
}

func wakeupRef(thread string, seq uint64) store.EffectRef {
	return store.EffectRef{Thread: InboxPrefix + thread, Revision: seq}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
