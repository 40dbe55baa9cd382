package linear

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// Broken are stores that each break one promise, most only now and then. A check that lets one of them pass proves nothing.
func Broken() []Kind {
	kind := func(name string, wrap func(*breaker) Store) Kind {
		return Kind{Name: name, open: func(path string, seed uint64) (Store, error) {
			inner, err := openMemory(path, seed)
			return wrap(&breaker{Store: inner, seen: map[string]engine.JournalImage{}}), err
		}}
	}
	return []Kind{
		kind("forgets a commit", func(b *breaker) Store { return forgetful{b} }),
		kind("shows an old state", func(b *breaker) Store { return stale{b} }),
		kind("does not compare the revision", func(b *breaker) Store { return blind{b} }),
		kind("does not fence", func(b *breaker) Store { return unfenced{b} }),
		kind("applies a repeat", func(b *breaker) Store { return twice{b} }),
		kind("gives one lease to two", func(b *breaker) Store { return generous{b} }),
	}
}

// breaker strikes at every 20th chance.
type breaker struct {
	Store
	chances atomic.Int64

	mu   sync.Mutex
	seen map[string]engine.JournalImage
}

func (b *breaker) strikes() bool { return b.chances.Add(1)%20 == 0 }

type forgetful struct{ *breaker }

func (f forgetful) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	i, err := f.Store.Load(ctx, c.Thread, 0)
	if err == nil && i.Revision == c.Base && i.Epoch == c.Epoch && f.strikes() {
		return c.Base + 1, nil
	}
	return f.Store.Append(ctx, c)
}

type stale struct{ *breaker }

func (s stale) Load(ctx context.Context, thread string, atLeast uint64) (engine.JournalImage, error) {
	s.mu.Lock()
	old, known := s.seen[thread]
	s.mu.Unlock()
	if known && old.Revision >= atLeast && s.strikes() {
		return old, nil
	}
	i, err := s.Store.Load(ctx, thread, atLeast)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !known || s.chances.Load()%5 == 0 {
		s.seen[thread] = i
	}
	return i, err
}

type blind struct{ *breaker }

func (b blind) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	revision, err := b.Store.Append(ctx, c)
	var where *engine.JournalConflict
	if errors.As(err, &where) && b.strikes() {
		base := c.Base
		c.Base = where.Have
		if _, err := b.Store.Append(ctx, c); err == nil {
			return base + 1, nil
		}
	}
	return revision, err
}

type unfenced struct{ *breaker }

func (u unfenced) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	revision, err := u.Store.Append(ctx, c)
	if errors.Is(err, engine.ErrFenced) {
		if i, err := u.Store.Load(ctx, c.Thread, 0); err == nil && i.Revision == c.Base {
			c.Epoch = i.Epoch
			return u.Store.Append(ctx, c)
		}
	}
	return revision, err
}

type twice struct{ *breaker }

func (t twice) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	i, err := t.Store.Load(ctx, c.Thread, 0)
	if err == nil && i.LastID == c.ID && i.Revision == c.Base+1 {
		c.Base++
		if _, err := t.Store.Append(ctx, c); err == nil {
			return c.Base, nil
		}
		c.Base--
	}
	return t.Store.Append(ctx, c)
}

type generous struct{ *breaker }

func (g generous) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (engine.Lease, error) {
	l, err := g.Store.Acquire(ctx, thread, owner, ttl)
	var other *engine.LeaseHeld
	if errors.As(err, &other) {
		return g.Store.Acquire(ctx, thread, other.Owner, ttl)
	}
	return l, err
}
