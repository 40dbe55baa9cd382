package sim

import (
	"context"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// store is all that a store can be.
type store interface {
	engine.Journal
	engine.Leaser
	engine.Outbox
}

// truth is the store behind all faults. It tells the ledger what really happens.
type truth struct {
	*memstore.Store
	ledger *ledger
}

func (t *truth) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	rev, err := t.Store.Append(ctx, c)
	if err == nil {
		t.ledger.lands(c, rev)
	}
	return rev, err
}

func (t *truth) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (engine.Lease, error) {
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	l, err := t.Store.Acquire(ctx, thread, owner, ttl)
	if err == nil {
		t.ledger.leases(thread, owner, l.Epoch, l.Until)
	}
	return l, err
}

func (t *truth) Renew(ctx context.Context, held engine.Lease, ttl time.Duration) (engine.Lease, error) {
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	l, err := t.Store.Renew(ctx, held, ttl)
	if err == nil {
		t.ledger.thread(l.Thread).until = l.Until
		t.ledger.stats.Renewals++
	}
	return l, err
}

func (t *truth) Release(ctx context.Context, l engine.Lease) error {
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	err := t.Store.Release(ctx, l)
	if err == nil {
		t.ledger.thread(l.Thread).owner = ""
	}
	return err
}

func (t *truth) Settle(ctx context.Context, c engine.Claim, how engine.Settlement) error {
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	err := t.Store.Settle(ctx, c, how)
	if err == nil && how.RetryAt.IsZero() && !how.Dead {
		t.ledger.settled(c.Ref)
	}
	return err
}

func (t *truth) Prune(ctx context.Context, thread string, policy engine.PrunePolicy) error {
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	err := t.Store.Prune(ctx, thread, policy)
	if err == nil {
		h := t.ledger.thread(thread)
		h.pruned = uint64(len(h.commits))
	}
	return err
}

// past shows an engine a thread as it was at a revision, by what the ledger has.
type past struct {
	*memstore.Store
	ledger   *ledger
	revision uint64
}

func (p *past) Load(_ context.Context, thread string, _ uint64) (engine.JournalImage, error) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return p.ledger.image(thread, p.revision), nil
}
