package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Lanes implements [store.Queue]. It tells what this process knows; see Claim.
func (j *Journal) Lanes(ctx context.Context, prefix string) ([]string, error) {
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := j.outbox.use(ctx); err != nil {
		return nil, err
	}
	j.outbox.mu.Lock()
	defer j.outbox.mu.Unlock()
	var names []string
	for name, l := range j.outbox.index.lanes {
		if strings.HasPrefix(name, prefix) && l.live() > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Depth implements [store.Queue]. It tells what this process knows; see Claim.
func (j *Journal) Depth(ctx context.Context, lane string) (store.Depth, error) {
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return store.Depth{}, err
	}
	defer end()
	if err := j.outbox.use(ctx); err != nil {
		return store.Depth{}, err
	}
	now := j.now()
	j.outbox.mu.Lock()
	defer j.outbox.mu.Unlock()
	return j.outbox.index.depth(lane, now), nil
}

func (x *index) depth(name string, now time.Time) (d store.Depth) {
	l := x.lanes[name]
	if l == nil {
		return d
	}
	x.promote(l, now)
	d.Due, d.Dead = l.ready.Len()+l.taken, l.dead.Len()
	for _, e := range l.ready.items {
		if d.Oldest.IsZero() || e.due.Before(d.Oldest) {
			d.Oldest = e.due
		}
	}
	for _, e := range l.waiting.items {
		if e.kind == isClaimed {
			d.Claimed++
		} else {
			d.Waiting++
		}
	}
	return d
}

// Dead implements [store.Queue]. It reads two messages for each effect.
func (j *Journal) Dead(ctx context.Context, lane string, limit int) ([]store.DeadEffect, error) {
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := j.outbox.use(ctx); err != nil {
		return nil, err
	}
	items := j.outbox.dead(lane)
	var dead []store.DeadEffect
	for n := 0; len(dead) < limit && n < len(items); {
		some := items[n:min(len(items), n+limit-len(dead))]
		n += len(some)
		found := make([]*store.DeadEffect, len(some))
		err := inParallel(len(some), func(i int) (err error) {
			found[i], err = j.deadEffect(ctx, some[i].ref)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			if d != nil {
				dead = append(dead, *d)
			}
		}
	}
	return dead, nil
}

func (o *outbox) dead(lane string) (items []item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.index.lanes[lane]; l != nil {
		for _, e := range l.dead.items {
			items = append(items, *e)
		}
	}
	slices.SortFunc(items, func(a, b item) int {
		if before(&a, &b) {
			return -1
		}
		return 1
	})
	return items
}

// deadEffect returns nil for an effect that is not dead any more.
func (j *Journal) deadEffect(ctx context.Context, ref store.EffectRef) (*store.DeadEffect, error) {
	s, _, text, err := j.effect(ctx, ref)
	if err != nil || s.kind != isDead {
		return nil, err
	}
	effect, err := j.body(ctx, ref, s.bodySeq)
	if err != nil {
		return nil, ifAbsent(err, nil)
	}
	return &store.DeadEffect{Ref: ref, Effect: effect, Attempts: s.attempts, Error: string(text)}, nil
}

// Requeue implements [store.Queue].
func (j *Journal) Requeue(ctx context.Context, ref store.EffectRef) error {
	if err := checkName("thread id", ref.Thread); err != nil {
		return err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s, seq, _, err := j.effect(ctx, ref)
	if err != nil {
		return err
	}
	if s.kind == isDead {
		s.kind, s.attempts, s.due, s.of, s.nonce = isWaiting, 0, j.now(), 0, newID()
		if _, err = j.change(ctx, ref, seq, s, nil); !errors.Is(err, errNoSuchClaim) {
			return err
		}
	}
	return fmt.Errorf("nats: effect %s: %w", ref, store.ErrNoEffect)
}
