package faultstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// read passes on a call that changes nothing.
func (s *Store) read(ctx context.Context, op Op, name string, call func(store.Journal) error) error {
	t, err := s.begin(ctx, op, name)
	if err != nil {
		return err
	}
	switch t.fault {
	case FailBefore, FailAfter:
		return ErrInjected
	case NeverAnswer:
		return errors.Join(ErrInjected, t.hang(ctx))
	}
	return call(t.inner)
}

// write passes on a call that changes something.
func (s *Store) write(ctx context.Context, op Op, name string, call func(store.Journal) error) error {
	t, err := s.begin(ctx, op, name)
	if err != nil {
		return err
	}
	switch t.fault {
	case FailBefore:
		return ErrInjected
	case Lose:
		return nil
	case FailAfter:
		_ = call(t.inner)
		return unknown(t.fault)
	case NeverAnswer:
		if t.dice.coin() {
			_ = call(t.inner)
		}
		return t.hang(ctx)
	}
	return call(t.inner)
}

// Load implements [store.Journal].
func (s *Store) Load(ctx context.Context, thread string, atLeast uint64) (image store.Image, err error) {
	err = s.read(ctx, OpLoad, thread, func(j store.Journal) error {
		image, err = j.Load(ctx, thread, atLeast)
		return err
	})
	return image, err
}

// LoadAt implements [store.Historian]. Its faults are those of OpLoad.
func (s *Store) LoadAt(ctx context.Context, thread string, revision uint64) (image store.Image, err error) {
	err = s.read(ctx, OpLoad, thread, func(j store.Journal) error {
		h, ok := j.(store.Historian)
		if !ok {
			return fmt.Errorf("faultstore: the store shows no past: %w (%w)", store.ErrNoRevision, errors.ErrUnsupported)
		}
		image, err = h.LoadAt(ctx, thread, revision)
		return err
	})
	return image, err
}

// Threads implements [store.Journal].
func (s *Store) Threads(ctx context.Context, after string, limit int) (ids []string, err error) {
	err = s.read(ctx, OpThreads, "", func(j store.Journal) error {
		ids, err = j.Threads(ctx, after, limit)
		return err
	})
	return ids, err
}

// Prune implements [store.Journal].
func (s *Store) Prune(ctx context.Context, thread string, p store.PrunePolicy) error {
	return s.write(ctx, OpPrune, thread, func(j store.Journal) error { return j.Prune(ctx, thread, p) })
}

// Delete implements [store.Journal].
func (s *Store) Delete(ctx context.Context, thread string) error {
	return s.write(ctx, OpDelete, thread, func(j store.Journal) error { return j.Delete(ctx, thread) })
}

// Caps returns what the store behind the faults says of itself.
func (s *Store) Caps() store.Caps {
	s.mu.Lock()
	inner := s.inner
	s.mu.Unlock()
	return inner.Caps()
}

// Close closes the store behind the faults, also after a crash.
func (s *Store) Close() error {
	s.mu.Lock()
	inner, closed := s.inner, s.closed
	s.closed = true
	if !closed && !s.crashed {
		close(s.broken)
	}
	s.mu.Unlock()
	if closed {
		return fmt.Errorf("faultstore: the store was closed: %w", store.ErrClosed)
	}
	return inner.Close()
}

// Acquire implements [store.Leaser].
func (s *Store) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (store.Lease, error) {
	return s.lease(ctx, OpAcquire, thread, func(l store.Leaser) (store.Lease, error) {
		return l.Acquire(ctx, thread, owner, ttl)
	})
}

// Renew implements [store.Leaser].
func (s *Store) Renew(ctx context.Context, held store.Lease, ttl time.Duration) (store.Lease, error) {
	return s.lease(ctx, OpRenew, held.Thread, func(l store.Leaser) (store.Lease, error) {
		return l.Renew(ctx, held, ttl)
	})
}

// Release implements [store.Leaser].
func (s *Store) Release(ctx context.Context, held store.Lease) error {
	_, err := s.lease(ctx, OpRelease, held.Thread, func(l store.Leaser) (store.Lease, error) {
		return store.Lease{}, l.Release(ctx, held)
	})
	return err
}

func (s *Store) lease(ctx context.Context, op Op, thread string, call func(store.Leaser) (store.Lease, error)) (store.Lease, error) {
	var lease store.Lease
	err := s.write(ctx, op, thread, optional("leases", func(l store.Leaser) (err error) {
		lease, err = call(l)
		return err
	}))
	if err != nil {
		return store.Lease{}, err // an answer that got lost is not handed out
	}
	return lease, nil
}

// Claim implements [store.Outbox].
func (s *Store) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]store.Claim, error) {
	var claims []store.Claim
	err := s.outbox(ctx, OpClaim, lane, func(o store.Outbox) (err error) {
		claims, err = o.Claim(ctx, lane, worker, limit, ttl)
		return err
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

// Settle implements [store.Outbox].
func (s *Store) Settle(ctx context.Context, c store.Claim, how store.Settlement) error {
	return s.outbox(ctx, OpSettle, c.Ref.Thread, func(o store.Outbox) error { return o.Settle(ctx, c, how) })
}

func (s *Store) outbox(ctx context.Context, op Op, name string, call func(store.Outbox) error) error {
	return s.write(ctx, op, name, optional("outbox", call))
}

// optional makes a call on a part that a store may lack.
func optional[T any](part string, call func(T) error) func(store.Journal) error {
	return func(j store.Journal) error {
		with, ok := j.(T)
		if !ok {
			return fmt.Errorf("faultstore: the store has no %s: %w", part, errors.ErrUnsupported)
		}
		return call(with)
	}
}
