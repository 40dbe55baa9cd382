package memstore

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// outbox holds the effects. Each entry is in one of the queues of its lane: ready, in
// the order of the commits; waiting, by the time at which it becomes ready; or dead.
// Entries that are claimed wait for the end of their claim. A lane without entries is
// not kept.
type outbox struct {
	entries map[store.EffectRef]*entry
	lanes   map[string]*lane
	order   uint64 // of the last entry
	token   uint64 // of the last claim
}

type entry struct {
	ref      store.EffectRef
	effect   store.Effect
	order    uint64
	attempts int
	token    uint64    // of the claim that runs or ran out; 0: none
	due      time.Time // since when, or from when on, it can be claimed
	err      string

	in *queue // nil: in none
	at int    // position there
}

type lane struct{ ready, waiting, dead *queue }

// queue is a heap of entries that knows where each one is.
type queue struct {
	entries []*entry
	before  func(a, b *entry) bool
}

func (q *queue) Len() int           { return len(q.entries) }
func (q *queue) Less(i, j int) bool { return q.before(q.entries[i], q.entries[j]) }
func (q *queue) Swap(i, j int) {
	q.entries[i], q.entries[j] = q.entries[j], q.entries[i]
	q.entries[i].at, q.entries[j].at = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	e := x.(*entry)
	e.in, e.at = q, len(q.entries)
	q.entries = append(q.entries, e)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(q.entries) - 1
	e := q.entries[last]
	q.entries[last] = nil
	q.entries = q.entries[:last]
	e.in = nil
	return e
}

func newOutbox() outbox {
	return outbox{entries: map[store.EffectRef]*entry{}, lanes: map[string]*lane{}}
}

func (o *outbox) lane(name string) *lane {
	l := o.lanes[name]
	if l == nil {
		inOrder := func(a, b *entry) bool { return a.order < b.order }
		l = &lane{
			ready:   &queue{before: inOrder},
			waiting: &queue{before: func(a, b *entry) bool { return a.due.Before(b.due) }},
			dead:    &queue{before: inOrder},
		}
		o.lanes[name] = l
	}
	return l
}

func (o *outbox) add(ref store.EffectRef, effect store.Effect, now time.Time) {
	o.order++
	e := &entry{ref: ref, effect: effect, order: o.order}
	o.entries[ref] = e
	o.schedule(e, effect.NotBefore, now)
}

// schedule puts an entry that is in no queue where it can be claimed from a time on.
func (o *outbox) schedule(e *entry, at, now time.Time) {
	l := o.lane(e.effect.Lane)
	if at.After(now) {
		e.due = at
		heap.Push(l.waiting, e)
	} else {
		e.due = now
		heap.Push(l.ready, e)
	}
}

func (o *outbox) remove(ref store.EffectRef) {
	e := o.entries[ref]
	if e == nil {
		return
	}
	heap.Remove(e.in, e.at)
	delete(o.entries, ref)
	if l := o.lanes[e.effect.Lane]; l.ready.Len()+l.waiting.Len()+l.dead.Len() == 0 {
		delete(o.lanes, e.effect.Lane)
	}
}

func (o *outbox) removeThread(id string) {
	for ref := range o.entries {
		if ref.Thread == id {
			o.remove(ref)
		}
	}
}

// Claim implements [store.Outbox]. Effects come in the order of their commits. One
// that is claimed or waits does not hold up those behind it.
func (s *Store) Claim(ctx context.Context, name, worker string, limit int, ttl time.Duration) ([]store.Claim, error) {
	now := s.now()
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	l := s.outbox.lanes[name]
	if l == nil {
		return nil, nil
	}
	for l.waiting.Len() > 0 && !l.waiting.entries[0].due.After(now) {
		heap.Push(l.ready, heap.Pop(l.waiting))
	}
	var claims []store.Claim
	for len(claims) < limit && l.ready.Len() > 0 {
		e := heap.Pop(l.ready).(*entry)
		s.outbox.token++
		e.token = s.outbox.token
		e.attempts++
		e.due = now.Add(ttl)
		claims = append(claims, store.Claim{Ref: e.ref, Effect: copyEffect(e.effect), Attempts: e.attempts, Token: e.token})
		// A claim without time to live is due at once; it cannot come twice here, because what
		// waits is not looked at again.
		heap.Push(l.waiting, e)
	}
	return claims, nil
}

// Settle implements [store.Outbox]. A claim that ran out still counts until
// somebody else claims the effect. An effect that is gone is settled, so to settle
// it as done again is no error, and neither is to give it up again.
func (s *Store) Settle(ctx context.Context, c store.Claim, how store.Settlement) error {
	now := s.now()
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e := s.outbox.entries[c.Ref]
	done := !how.Dead && how.RetryAt.IsZero()
	if e == nil && done {
		return nil
	}
	if e == nil || e.token != c.Token || e.token == 0 {
		return fmt.Errorf("memstore: effect %s was settled or claimed by somebody else: %w", c.Ref, store.ErrFenced)
	}
	l := s.outbox.lane(e.effect.Lane)
	switch {
	case e.in == l.dead && !how.Dead:
		return fmt.Errorf("memstore: effect %s was given up; requeue it: %w", c.Ref, store.ErrFenced)
	case e.in == l.dead:
	case done:
		s.outbox.remove(c.Ref)
	default:
		heap.Remove(e.in, e.at)
		e.err = how.Error
		if how.Dead {
			heap.Push(l.dead, e)
		} else {
			e.token = 0
			s.outbox.schedule(e, how.RetryAt, now)
		}
	}
	return nil
}

func copyEffect(e store.Effect) store.Effect {
	e.Body = copyBytes(e.Body)
	return e
}
