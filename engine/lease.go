package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/internal/fanout"
)

// acquire takes the thread's lease, where there is one to take, or joins those in this
// engine that have it. It fails when somebody else has it, or has changed the thread
// since it was opened. Whoever got a lease gives it up again.
func (c *chain) acquire(ctx context.Context) (*Lease, error) {
	if c == nil || c.eng.config.Owner == "" {
		return nil, nil
	}
	leaser, ok := c.eng.config.Journal.(Leaser)
	if !ok {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	if c.holders > 0 {
		c.holders++
		return c.lease, nil
	}
	// An owner may take its own lease again, so its threads must look out for each other.
	if _, taken := c.eng.leased.LoadOrStore(c.thread, true); taken {
		return nil, ErrBusy
	}
	lease, err := surely(ctx, c.eng, func(ctx context.Context) (Lease, error) {
		// If an earlier try did land, this is one commit later.
		return leaser.Acquire(ctx, c.thread, c.eng.config.Owner, c.eng.config.Limits.Lease)
	})
	if err != nil {
		c.eng.leased.Delete(c.thread)
		return nil, fmt.Errorf("engine: the lease of thread %s: %w", c.thread, err)
	}
	c.lease, c.holders = &lease, 1
	if lease.Epoch != c.revision+1 {
		if err := c.unchanged(ctx, lease); err != nil {
			c.drop(ctx)
			return nil, err
		}
	}
	c.revision, c.epoch = lease.Epoch, lease.Epoch
	return c.lease, nil
}

// unchanged returns nil if there was nothing but leases and settled effects between
// the chain's revision and the lease. The lease is a write, so the load cannot miss
// what came before it.
func (c *chain) unchanged(ctx context.Context, lease Lease) error {
	image, err := c.eng.load(ctx, c.thread, lease.Epoch)
	if err != nil {
		return err
	}
	moved := image.SnapshotAt > c.revision || image.Revision != lease.Epoch || lease.Epoch <= c.revision
	for _, r := range image.Tail {
		moved = moved || r.Revision > c.revision && len(r.Record) > 0
	}
	if !moved {
		return nil
	}
	c.broken = fmt.Errorf("engine: thread %s was changed by somebody else: %w", c.thread,
		&JournalConflict{Thread: c.thread, Base: c.revision, Have: image.Revision})
	return c.broken
}

// hold renews the run's lease until stop is called. When somebody took the thread
// over, the returned context ends with ErrFenced.
func (r *run) hold(ctx context.Context) (held context.Context, stop func()) {
	if r.lease == nil {
		return ctx, func() {}
	}
	leaser, limit, lease := r.eng.config.Journal.(Leaser), r.eng.config.Limits.Lease, *r.lease
	while := limit/3 + 1
	return fanout.Repeat(ctx, while, func(ctx context.Context) error {
		_, err := within(ctx, nil, while, "Config.Journal", 0, func(ctx context.Context) (Lease, error) {
			return leaser.Renew(ctx, lease, limit)
		})
		if errors.Is(err, ErrFenced) {
			return fmt.Errorf("engine: thread %s: %w", lease.Thread, err)
		}
		return nil // another error may pass; if it does not, the next commit will tell
	})
}

// giveUp ends the use of a lease. The last one to do so releases it.
func (c *chain) giveUp(ctx context.Context, lease *Lease) {
	if lease == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(ctx)
}

// drop is giveUp for who has the mutex. If the release fails, the lease runs out.
func (c *chain) drop(ctx context.Context) {
	if c.holders--; c.holders == 0 {
		_, _ = within(context.WithoutCancel(ctx), nil, c.eng.config.Limits.Grace, "Config.Journal", 0, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.eng.config.Journal.(Leaser).Release(ctx, *c.lease)
		})
		c.eng.leased.Delete(c.thread)
	}
}
