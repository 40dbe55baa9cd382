package memstore

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// DeadEffect is an effect that was given up.
type DeadEffect struct {
	Ref      store.EffectRef
	Effect   store.Effect
	Attempts int
	Error    string // of the settlement that gave it up
}

// outbox holds the effects. Each entry that can still be delivered is in one of
// the queues of its lane: ready, in the order of the commits, or waiting, by the
// time at which it becomes ready. Entries that are claimed wait for the end of
// their claim.
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
	token    uint64 // of the claim that runs or ran out; 0: none
	due      time.Time
	dead     bool
	err      string

	in *queue // nil: in none
	at int    // position there
}

type lane struct{ ready, waiting *queue }

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
		l = &lane{
			ready:   &queue{before: func(a, b *entry) bool { return a.order < b.order }},
			waiting: &queue{before: func(a, b *entry) bool { return a.due.Before(b.due) }},
		}
		o.lanes[name] = l
	}
	return l
}

func (o *outbox) add(ref store.EffectRef, effect store.Effect, now time.Time) {
	o.order++
	e := &entry{ref: ref, effect: effect, order: o.order, due: effect.NotBefore}
	o.entries[ref] = e
	l := o.lane(effect.Lane)
	if e.due.After(now) {
		heap.Push(l.waiting, e)
	} else {
		heap.Push(l.ready, e)
	}
}

func (o *outbox) remove(ref store.EffectRef) {
	if e := o.entries[ref]; e != nil {
		e.leave()
		delete(o.entries, ref)
	}
}

func (o *outbox) removeThread(id string) {
	for ref := range o.entries {
		if ref.Thread == id {
			o.remove(ref)
		}
	}
}

func (e *entry) leave() {
	if e.in != nil {
		heap.Remove(e.in, e.at)
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
// it as done again is no error.
func (s *Store) Settle(ctx context.Context, c store.Claim, how store.Settlement) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e := s.outbox.entries[c.Ref]
	done := !how.Dead && how.RetryAt.IsZero()
	switch {
	case e == nil && done:
		return nil
	case e == nil || e.token != c.Token || e.token == 0:
		return fmt.Errorf("memstore: effect %s was settled or claimed by somebody else: %w", c.Ref, store.ErrFenced)
	case how.Dead:
		e.leave()
		e.dead, e.err = true, how.Error
	case done:
		s.outbox.remove(c.Ref)
	default:
		e.leave()
		e.due, e.err, e.token = how.RetryAt, how.Error, 0
		heap.Push(s.outbox.lane(e.effect.Lane).waiting, e)
	}
	return nil
}

// Dead returns effects of a lane that were given up, oldest first, at most limit
// of them. They are kept until their thread is deleted or a commit settles them.
func (s *Store) Dead(ctx context.Context, lane string, limit int) ([]DeadEffect, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var dead []*entry
	for _, e := range s.outbox.entries {
		if e.dead && e.effect.Lane == lane {
			dead = append(dead, e)
		}
	}
	slices.SortFunc(dead, func(a, b *entry) int { return cmp.Compare(a.order, b.order) })
	var effects []DeadEffect
	for _, e := range dead[:min(max(limit, 0), len(dead))] {
		effects = append(effects, DeadEffect{e.ref, copyEffect(e.effect), e.attempts, e.err})
	}
	return effects, nil
}

func copyEffect(e store.Effect) store.Effect {
	e.Body = copyBytes(e.Body)
	return e
}
