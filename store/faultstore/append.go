package faultstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/engine"
)

// Append implements [engine.Journal], with all faults.
func (s *Store) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
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
		return t.inner.Append(ctx, c)
	case Delay:
		s.later(t, c)
		return 0, unknown(t.fault)
	case Stale:
		s.later(t, c)
		return t.inner.Append(ctx, c)
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

// later keeps a copy of a commit that arrives before one of the next calls.
func (s *Store) later(t turn, c engine.JournalCommit) {
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
		return errors.Join(unknown(t.fault), engine.ErrJournalClosed)
	}
}

func unknown(f Fault) error {
	return fmt.Errorf("faultstore: injected %s: repeat the commit with its id: %w", f, engine.ErrUnknownOutcome)
}
