//go:build unix

package scale

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/internal/faults/servers"
	"github.com/ddd26017/fixpoint/store"
)

// Calls are the calls that a store got, and what they carried.
type Calls struct {
	Commits, InboxCommits int64 // appends that succeeded: of threads, and of inboxes
	Leases                int64 // taken, prolonged and released
	Loads                 int64
	Claims, EmptyClaims   int64 // those that found nothing are not among the first
	Settles               int64
	Lists                 int64 // of lanes
	Notices               int64
	RecordBytes           int64 // of threads
	InboxBytes            int64
	Snapshots             int64
	SnapshotBytes         int64
	Effects               int64 // those of inboxes, which are wake-ups, included
}

// All returns how many calls there were, without notices.
func (c Calls) All() int64 {
	return c.Commits + c.InboxCommits + c.Leases + c.Loads + c.Claims + c.EmptyClaims + c.Settles + c.Lists
}

// counter is a store that counts. The counts are its own, so that two of them over one
// store tell two workers apart.
type counter struct {
	servers.Store
	commits, inbox, leases, loads, claims, empty, settles, lists, notices atomic.Int64
	mu                                                                    sync.Mutex
	sizes                                                                 Calls
}

func (c *counter) calls() Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.sizes
	n.Commits, n.InboxCommits, n.Leases, n.Loads = c.commits.Load(), c.inbox.Load(), c.leases.Load(), c.loads.Load()
	n.Claims, n.EmptyClaims, n.Settles, n.Lists, n.Notices = c.claims.Load(), c.empty.Load(), c.settles.Load(), c.lists.Load(), c.notices.Load()
	return n
}

func (c *counter) Append(ctx context.Context, commit store.Commit) (uint64, error) {
	revision, err := c.Store.Append(ctx, commit)
	if err != nil {
		return revision, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if worker.IsInbox(commit.Thread) {
		c.inbox.Add(1)
		c.sizes.InboxBytes += int64(len(commit.Record))
	} else {
		c.commits.Add(1)
		c.sizes.RecordBytes += int64(len(commit.Record))
	}
	if commit.Snapshot != nil {
		c.sizes.Snapshots++
		c.sizes.SnapshotBytes += int64(len(commit.Snapshot))
	}
	c.sizes.Effects += int64(len(commit.Effects))
	return revision, nil
}

func (c *counter) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (store.Lease, error) {
	c.leases.Add(1)
	return c.Store.Acquire(ctx, thread, owner, ttl)
}

func (c *counter) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	c.leases.Add(1)
	return c.Store.Renew(ctx, l, ttl)
}

func (c *counter) Release(ctx context.Context, l store.Lease) error {
	c.leases.Add(1)
	return c.Store.Release(ctx, l)
}

func (c *counter) Load(ctx context.Context, thread string, atLeast uint64) (store.Image, error) {
	c.loads.Add(1)
	return c.Store.Load(ctx, thread, atLeast)
}

func (c *counter) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]store.Claim, error) {
	claims, err := c.Store.Claim(ctx, lane, worker, limit, ttl)
	if len(claims) > 0 {
		c.claims.Add(1)
	} else {
		c.empty.Add(1)
	}
	return claims, err
}

func (c *counter) Settle(ctx context.Context, claim store.Claim, s store.Settlement) error {
	c.settles.Add(1)
	return c.Store.Settle(ctx, claim, s)
}

func (c *counter) Lanes(ctx context.Context, prefix string) ([]string, error) {
	c.lists.Add(1)
	return c.Store.Lanes(ctx, prefix)
}

func (c *counter) Notify(ctx context.Context, topic string, data []byte) error {
	c.notices.Add(1)
	return c.Store.Notify(ctx, topic, data)
}
