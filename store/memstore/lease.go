package memstore

import (
	"context"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Acquire implements [store.Leaser].
func (s *Store) Acquire(ctx context.Context, id, owner string, ttl time.Duration) (store.Lease, error) {
	now := s.now()
	if err := s.lock(ctx); err != nil {
		return store.Lease{}, err
	}
	defer s.mu.Unlock()
	t := s.threads[id]
	if t == nil {
		t = &thread{}
	}
	if l := t.lease; l.Epoch != 0 && l.Owner != owner && now.Before(l.Until) {
		return store.Lease{}, &store.LeaseHeld{Thread: id, Owner: l.Owner, Until: l.Until}
	}
	s.threads[id] = t
	t.add(newID(), now, nil)
	t.epoch = t.revision
	t.lease = store.Lease{Thread: id, Owner: owner, Epoch: t.epoch, Until: now.Add(ttl)}
	s.wake()
	return t.lease, nil
}

// Renew implements [store.Leaser]. A lease that ran out can be renewed as long as
// nobody else took it; one that was released cannot.
func (s *Store) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	now := s.now()
	if err := s.lock(ctx); err != nil {
		return store.Lease{}, err
	}
	defer s.mu.Unlock()
	t := s.threads[l.Thread]
	if t == nil || l.Epoch == 0 || t.lease.Epoch != l.Epoch || t.lease.Owner != l.Owner {
		return store.Lease{}, fenced(l.Thread, l.Epoch, s.epochOf(l.Thread))
	}
	t.lease.Until = now.Add(ttl)
	return t.lease, nil
}

// Release implements [store.Leaser]. The epoch stays, so that whoever comes next
// has to acquire the lease or to know the epoch from a load.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	t := s.threads[l.Thread]
	if t == nil || l.Epoch == 0 || t.epoch != l.Epoch {
		return fenced(l.Thread, l.Epoch, s.epochOf(l.Thread))
	}
	t.lease = store.Lease{}
	return nil
}

func (s *Store) epochOf(id string) uint64 {
	if t := s.threads[id]; t != nil {
		return t.epoch
	}
	return 0
}
