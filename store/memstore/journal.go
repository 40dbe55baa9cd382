package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ddd26017/fixpoint/store"
)

// Append implements [store.Journal]. A zero ID is never recognised as a repeat.
// An epoch other than the thread's, newer ones included, is fenced off.
func (s *Store) Append(ctx context.Context, c store.Commit) (uint64, error) {
	if err := s.checkSizes(c); err != nil {
		return 0, err
	}
	now := s.now()
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()

	t := s.threads[c.Thread]
	if t == nil {
		t = &thread{}
	}
	switch {
	case t.made(c.Base+1, c.ID):
		return c.Base + 1, nil
	case c.Epoch != t.epoch:
		return 0, fenced(c.Thread, c.Epoch, t.epoch)
	case c.Base != t.revision:
		return 0, &store.Conflict{Thread: c.Thread, Base: c.Base, Have: t.revision}
	}
	s.threads[c.Thread] = t
	t.add(c.ID, c.Time, copyBytes(c.Record))
	if c.Snapshot != nil {
		t.snapshots = append(t.snapshots, snapshot{t.revision, c.Time, copyBytes(c.Snapshot)})
	}
	for _, ref := range c.Settles {
		s.outbox.remove(ref)
	}
	for i, e := range c.Effects {
		e.Body = copyBytes(e.Body)
		s.outbox.add(store.EffectRef{Thread: c.Thread, Revision: t.revision, Index: uint32(i)}, e, now)
	}
	s.wake()
	return t.revision, nil
}

func fenced(id string, epoch, have uint64) error {
	return fmt.Errorf("memstore: thread %s is at epoch %d, not at %d; acquire its lease again: %w", id, have, epoch, store.ErrFenced)
}

// Load implements [store.Journal].
func (s *Store) Load(ctx context.Context, id string, atLeast uint64) (store.Image, error) {
	for {
		if err := s.lock(ctx); err != nil {
			return store.Image{}, behind(ctx, id, atLeast, err)
		}
		t := s.threads[id]
		if t != nil && t.revision >= atLeast {
			defer s.mu.Unlock()
			return t.image(t.revision), nil
		}
		if t == nil && atLeast == 0 {
			s.mu.Unlock()
			return store.Image{}, nil
		}
		changed := s.changed
		s.waiting++
		s.mu.Unlock()

		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}
}

// behind adds to the end of a wait what was waited for.
func behind(ctx context.Context, id string, atLeast uint64, err error) error {
	if ctx.Err() == nil || atLeast == 0 {
		return err
	}
	return errors.Join(fmt.Errorf("memstore: thread %s did not reach revision %d in time: %w", id, atLeast, store.ErrBehind), context.Cause(ctx))
}

// LoadAt returns a thread as it was at a revision: the newest snapshot up to it
// and the records after that. It fails for a revision that is not kept, because it
// was pruned or never existed.
func (s *Store) LoadAt(ctx context.Context, id string, revision uint64) (store.Image, error) {
	if err := s.lock(ctx); err != nil {
		return store.Image{}, err
	}
	defer s.mu.Unlock()
	t := s.threads[id]
	if t == nil || revision < t.first || revision > t.revision {
		return store.Image{}, fmt.Errorf("memstore: revision %d of thread %s: %w", revision, id, store.ErrNoRevision)
	}
	return t.image(revision), nil
}

// Threads implements [store.Journal].
func (s *Store) Threads(ctx context.Context, after string, limit int) ([]string, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	ids := slices.Sorted(maps.Keys(s.threads))
	if after != "" {
		i, found := slices.BinarySearch(ids, after)
		if found {
			i++
		}
		ids = ids[i:]
	}
	return slices.Clip(ids[:min(max(limit, 0), len(ids))]), nil
}

// Prune implements [store.Journal]. The beginning of a thread counts as a snapshot
// of the time of its first record, so that a policy that keeps more snapshots than
// there are, or only drops what is older than the thread, drops no record.
func (s *Store) Prune(ctx context.Context, id string, p store.PrunePolicy) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	t := s.threads[id]
	if t == nil {
		return nil
	}
	points := t.snapshots
	if t.first == 1 {
		points = slices.Concat([]snapshot{{time: t.records[0].Time}}, points)
	}
	keep, newest := 0, len(points)-1 // indexes of the oldest and newest point to keep
	if p.KeepSnapshots > 0 {
		keep = max(0, newest+1-p.KeepSnapshots)
	}
	for !p.Before.IsZero() && keep < newest && points[keep].time.Before(p.Before) {
		keep++
	}
	oldest := points[keep].revision
	if oldest == 0 {
		return nil
	}
	// The record of the snapshot's own revision stays: it has the commit's id.
	t.snapshots = slices.Clone(points[keep:])
	t.records = slices.Clone(t.records[oldest-t.first:])
	t.first = oldest
	return nil
}

// Delete implements [store.Journal].
func (s *Store) Delete(ctx context.Context, id string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	delete(s.threads, id)
	s.outbox.removeThread(id)
	return nil
}
