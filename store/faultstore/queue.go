package faultstore

import (
	"context"

	"github.com/ddd26017/fixpoint/store"
)

// Lanes implements [store.Queue].
func (s *Store) Lanes(ctx context.Context, prefix string) (names []string, err error) {
	err = s.read(ctx, OpLanes, prefix, optional("queue", func(q store.Queue) error {
		names, err = q.Lanes(ctx, prefix)
		return err
	}))
	return names, err
}

// Depth implements [store.Queue].
func (s *Store) Depth(ctx context.Context, lane string) (d store.Depth, err error) {
	err = s.read(ctx, OpDepth, lane, optional("queue", func(q store.Queue) error {
		d, err = q.Depth(ctx, lane)
		return err
	}))
	return d, err
}

// Dead implements [store.Queue].
func (s *Store) Dead(ctx context.Context, lane string, limit int) (dead []store.DeadEffect, err error) {
	err = s.read(ctx, OpDead, lane, optional("queue", func(q store.Queue) error {
		dead, err = q.Dead(ctx, lane, limit)
		return err
	}))
	return dead, err
}

// Requeue implements [store.Queue].
func (s *Store) Requeue(ctx context.Context, ref store.EffectRef) error {
	return s.write(ctx, OpRequeue, ref.Thread, optional("queue", func(q store.Queue) error { return q.Requeue(ctx, ref) }))
}

// Notify implements [store.Notifier].
func (s *Store) Notify(ctx context.Context, topic string, data []byte) error {
	return s.write(ctx, OpNotify, topic, optional("notices", func(n store.Notifier) error { return n.Notify(ctx, topic, data) }))
}

// Listen implements [store.Notifier]. A crash closes the channel. A connection that only
// loses notices is made with Lose.
func (s *Store) Listen(ctx context.Context, topic string) (heard <-chan []byte, err error) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	err = s.read(ctx, OpListen, topic, optional("notices", func(n store.Notifier) error {
		heard, err = n.Listen(ctx, topic)
		return err
	}))
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer cancel()
		select {
		case <-broken:
		case <-ctx.Done():
		}
	}()
	return heard, nil
}
