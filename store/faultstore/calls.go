package faultstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// read passes on a call that changes nothing.
func (s *Store) read(ctx context.Context, op Op, name string, call func(engine.Journal) error) error {
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
func (s *Store) write(ctx context.Context, op Op, name string, call func(engine.Journal) error) error {
	t, err := s.begin(ctx, op, name)
	if err != nil {
		return err
	}
	switch t.fault {
	case FailBefore:
		return ErrInjected
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

// Load implements [engine.Journal].
func (s *Store) Load(ctx context.Context, thread string, atLeast uint64) (image engine.JournalImage, err error) {
	err = s.read(ctx, OpLoad, thread, func(j engine.Journal) error {
		image, err = j.Load(ctx, thread, atLeast)
		return err
	})
	return image, err
}

// Threads implements [engine.Journal].
func (s *Store) Threads(ctx context.Context, after string, limit int) (ids []string, err error) {
	err = s.read(ctx, OpThreads, "", func(j engine.Journal) error {
		ids, err = j.Threads(ctx, after, limit)
		return err
	})
	return ids, err
}

// Prune implements [engine.Journal].
func (s *Store) Prune(ctx context.Context, thread string, p engine.PrunePolicy) error {
	return s.write(ctx, OpPrune, thread, func(j engine.Journal) error { return j.Prune(ctx, thread, p) })
}

// Delete implements [engine.Journal].
func (s *Store) Delete(ctx context.Context, thread string) error {
	return s.write(ctx, OpDelete, thread, func(j engine.Journal) error { return j.Delete(ctx, thread) })
}

// Caps returns what the store behind the faults says of itself.
func (s *Store) Caps() engine.JournalCaps {
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
		return fmt.Errorf("faultstore: the store was closed: %w", engine.ErrJournalClosed)
	}
	return inner.Close()
}

// Acquire implements [engine.Leaser].
func (s *Store) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (engine.Lease, error) {
	return s.lease(ctx, OpAcquire, thread, func(l engine.Leaser) (engine.Lease, error) {
		return l.Acquire(ctx, thread, owner, ttl)
	})
}

// Renew implements [engine.Leaser].
func (s *Store) Renew(ctx context.Context, held engine.Lease, ttl time.Duration) (engine.Lease, error) {
	return s.lease(ctx, OpRenew, held.Thread, func(l engine.Leaser) (engine.Lease, error) {
		return l.Renew(ctx, held, ttl)
	})
}

// Release implements [engine.Leaser].
func (s *Store) Release(ctx context.Context, held engine.Lease) error {
	_, err := s.lease(ctx, OpRelease, held.Thread, func(l engine.Leaser) (engine.Lease, error) {
		return engine.Lease{}, l.Release(ctx, held)
	})
	return err
}

func (s *Store) lease(ctx context.Context, op Op, thread string, call func(engine.Leaser) (engine.Lease, error)) (engine.Lease, error) {
	var lease engine.Lease
	err := s.write(ctx, op, thread, func(j engine.Journal) (err error) {
		leaser, ok := j.(engine.Leaser)
		if !ok {
			return fmt.Errorf("faultstore: the store has no leases: %w", errors.ErrUnsupported)
		}
		lease, err = call(leaser)
		return err
	})
	if err != nil {
		return engine.Lease{}, err // an answer that got lost is not handed out
	}
	return lease, nil
}

// Claim implements [engine.Outbox].
func (s *Store) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]engine.Claim, error) {
	var claims []engine.Claim
	err := s.outbox(ctx, OpClaim, lane, func(o engine.Outbox) (err error) {
		claims, err = o.Claim(ctx, lane, worker, limit, ttl)
		return err
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

// Settle implements [engine.Outbox].
func (s *Store) Settle(ctx context.Context, c engine.Claim, how engine.Settlement) error {
	return s.outbox(ctx, OpSettle, c.Ref.Thread, func(o engine.Outbox) error { return o.Settle(ctx, c, how) })
}

func (s *Store) outbox(ctx context.Context, op Op, name string, call func(engine.Outbox) error) error {
	return s.write(ctx, op, name, func(j engine.Journal) error {
		outbox, ok := j.(engine.Outbox)
		if !ok {
			return fmt.Errorf("faultstore: the store has no outbox: %w", errors.ErrUnsupported)
		}
		return call(outbox)
	})
}
