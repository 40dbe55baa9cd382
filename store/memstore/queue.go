package memstore

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/store"
)

// Lanes implements [store.Queue].
func (s *Store) Lanes(ctx context.Context, prefix string) ([]string, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var names []string
	for name, l := range s.outbox.lanes {
		if strings.HasPrefix(name, prefix) && l.ready.Len()+l.waiting.Len() > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Depth implements [store.Queue]. It looks at all effects of the lane that are not
// dead.
func (s *Store) Depth(ctx context.Context, name string) (store.Depth, error) {
	now := s.now()
	if err := s.lock(ctx); err != nil {
		return store.Depth{}, err
	}
	defer s.mu.Unlock()
	l := s.outbox.lanes[name]
	if l == nil {
		return store.Depth{}, nil
	}
	d := store.Depth{Dead: l.dead.Len()}
	for _, e := range slices.Concat(l.ready.entries, l.waiting.entries) {
		switch {
		case e.in == l.ready || !e.due.After(now):
			if d.Due++; d.Oldest.IsZero() || e.due.Before(d.Oldest) {
				d.Oldest = e.due
			}
		case e.token != 0:
			d.Claimed++
		default:
			d.Waiting++
		}
	}
	return d, nil
}

// Dead implements [store.Queue].
func (s *Store) Dead(ctx context.Context, name string, limit int) ([]store.DeadEffect, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	l := s.outbox.lanes[name]
	if l == nil {
		return nil, nil
	}
	dead := slices.SortedFunc(slices.Values(l.dead.entries), func(a, b *entry) int { return cmp.Compare(a.order, b.order) })
	var effects []store.DeadEffect
	for _, e := range dead[:min(max(limit, 0), len(dead))] {
		effects = append(effects, store.DeadEffect{Ref: e.ref, Effect: copyEffect(e.effect), Attempts: e.attempts, Error: e.err})
	}
	return effects, nil
}

// Requeue implements [store.Queue]. The effect takes the place that its commit has
// among those of its lane.
func (s *Store) Requeue(ctx context.Context, ref store.EffectRef) error {
	now := s.now()
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e := s.outbox.entries[ref]
	if e == nil || e.in != s.outbox.lane(e.effect.Lane).dead {
		return fmt.Errorf("memstore: effect %s: %w", ref, store.ErrNoEffect)
	}
	heap.Remove(e.in, e.at)
	e.attempts, e.token, e.err = 0, 0, ""
	s.outbox.schedule(e, now, now)
	return nil
}

// Notify implements [store.Notifier].
func (s *Store) Notify(ctx context.Context, topic string, data []byte) error {
	if len(data) > store.MaxNotice {
		return fmt.Errorf("memstore: a notice of %d bytes, and the limit is %d: %w", len(data), store.MaxNotice, store.ErrTooLarge)
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	s.mu.Unlock()
	s.board.Send(topic, data)
	return nil
}

// Listen implements [store.Notifier]. A listener that 256 notices wait for misses those
// that come next.
func (s *Store) Listen(ctx context.Context, topic string) (<-chan []byte, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.board.Listen(ctx, topic), nil
}
