package faultstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/store"
)

// Append implements [store.Journal], with all faults.
func (s *Store) Append(ctx context.Context, c store.Commit) (uint64, error) {
	t, err := s.begin(ctx, OpAppend, c.Thread)
	if err != nil {
		return 0, err
	}
	switch t.fault {
	case FailBefore:
		return 0, ErrInjected
	case FailAfter:
		_, _ = t.inner.Append(ctx, c)
		return 0, unknown(t.fault)
	case NeverAnswer:
		if t.dice.coin() {
			_, _ = t.inner.Append(ctx, c)
		}
		return 0, t.hang(ctx)
	case Repeat:
		if _, err := t.inner.Append(ctx, c); err != nil {
			return 0, err
		}
		revision, err := t.inner.Append(ctx, c)
		return t.oneOfTwo(revision, err)
	case Delay:
		s.later(t, c)
		return 0, unknown(t.fault)
	case Stale:
		s.later(t, c)
		revision, err := t.inner.Append(ctx, c)
		return t.oneOfTwo(revision, err)
	case Crash:
		// No call that starts after this append may land, so the doors close first.
		s.crash()
		if t.dice.coin() {
			_, _ = t.inner.Append(ctx, c)
		}
		return 0, errors.Join(errCrashed, unknown(t.fault))
	default:
		return t.inner.Append(ctx, c)
	}
}

// oneOfTwo passes on the answer to one copy of an append of which there are two. A
// refusal holds for both; that nothing was done, because the context had ended or the
// store was closed, is true of this copy only.
func (t turn) oneOfTwo(revision uint64, err error) (uint64, error) {
	if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrUnknownOutcome) {
		return revision, err
	}
	return 0, errors.Join(unknown(t.fault), err)
}

// later keeps a copy of a commit that arrives before one of the next calls.
func (s *Store) later(t turn, c store.Commit) {
	c.Record, c.Snapshot = slices.Clone(c.Record), slices.Clone(c.Snapshot)
	c.Effects, c.Settles = slices.Clone(c.Effects), slices.Clone(c.Settles)
	for i := range c.Effects {
		c.Effects[i].Body = slices.Clone(c.Effects[i].Body)
	}
	wait := int(t.dice.next() % 4)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, lateAppend{commit: c, wait: wait})
}

func (s *Store) crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.crashed && !s.closed {
		s.crashed = true
		close(s.broken)
	}
}

// hang waits as a call does that is never answered.
func (t turn) hang(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return errors.Join(unknown(t.fault), context.Cause(ctx))
	case <-t.broken:
		return errors.Join(unknown(t.fault), store.ErrClosed)
	}
}

func unknown(f Fault) error {
	return fmt.Errorf("faultstore: injected %s: repeat the commit with its id: %w", f, store.ErrUnknownOutcome)
}
