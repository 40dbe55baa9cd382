package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

var modelLanes = []string{"", "lane", "lane/2"}

// modelEffects is the model's outbox.
type modelEffects map[store.EffectRef]*modelEffect

type modelEffect struct {
	effect   store.Effect
	order    int
	place    int
	attempts int
	claim    store.Claim // the last one
	err      string
}

// The places of an effect.
const (
	isDue = iota
	isWaiting
	isClaimed
	isDead
)

// sorted lists the effects that fit, in the order of their commits; nil: all.
func (m modelEffects) sorted(fit func(*modelEffect) bool) (refs []store.EffectRef) {
	for ref, e := range m {
		if fit == nil || fit(e) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b store.EffectRef) int { return cmp.Compare(m[a].order, m[b].order) })
	return refs
}

func in(lane string, place int) func(*modelEffect) bool {
	return func(e *modelEffect) bool { return e.effect.Lane == lane && e.place == place }
}

// commit does what an append that landed does.
func (m modelEffects) commit(c store.Commit) {
	order := 0
	for _, e := range m {
		order = max(order, e.order)
	}
	for _, ref := range c.Settles {
		delete(m, ref)
	}
	for i, e := range c.Effects {
		order++
		place := isDue
		if !e.NotBefore.IsZero() {
			place = isWaiting
		}
		m[store.EffectRef{Thread: c.Thread, Revision: c.Base + 1, Index: uint32(i)}] = &modelEffect{effect: e, order: order, place: place}
	}
}

// claim takes some effects, checks their order, and settles half of them.
func (m modelEffects) claim(t *testing.T, j store.Journal, random *rand.Rand) {
	lane := modelLanes[random.IntN(len(modelLanes))]
	free := m.sorted(in(lane, isDue))
	limit := random.IntN(len(free) + 2)
	claims := claim(t, j, lane, limit, time.Hour)
	equal(t, min(limit, len(free)), len(claims), "claims of at most %d among %d", limit, len(free))
	got := map[string][]store.EffectRef{}
	for _, c := range claims {
		got[c.Ref.Thread] = append(got[c.Ref.Thread], c.Ref)
	}
	for _, ref := range free { // of each thread the first ones, in order
		if refs := got[ref.Thread]; len(refs) > 0 {
			equal(t, ref, refs[0], "the next effect of %s to be claimed", ref.Thread)
			got[ref.Thread] = refs[1:]
		}
	}
	for thread, refs := range got {
		equal(t, 0, len(refs), "claims on %s of effects that were claimed, or settled, or never emitted", thread)
	}
	for _, c := range claims {
		e := m[c.Ref]
		e.attempts++
		equal(t, fmt.Sprint(e.attempts, e.effect.Lane, e.effect.Body), fmt.Sprint(c.Attempts, c.Effect.Lane, c.Effect.Body), "claim of %s", c.Ref)
		equal(t, true, e.effect.NotBefore.Equal(c.Effect.NotBefore), "the time not to deliver before is kept")
		if c.Token == e.claim.Token {
			t.Fatalf("two claims of %s have one token", c.Ref)
		}
		e.place, e.claim = isClaimed, c
		if random.IntN(2) == 0 {
			m.end(t, j, c, random)
		}
	}
}

// settle ends a claim of before, and tries one that is over.
func (m modelEffects) settle(t *testing.T, j store.Journal, random *rand.Rand) {
	for _, ref := range m.sorted(func(e *modelEffect) bool { return e.claim.Token != 0 }) {
		e := m[ref]
		switch {
		case random.IntN(3) > 0:
		case e.place == isClaimed:
			m.end(t, j, e.claim, random)
		default:
			err := j.(store.Outbox).Settle(t.Context(), e.claim, store.Settlement{})
			isError(t, err, fmt.Sprintf("settle of %s by a claim that is over", ref), store.ErrFenced)
		}
	}
}

// end settles a claim in some way.
func (m modelEffects) end(t *testing.T, j store.Journal, c store.Claim, random *rand.Rand) {
	e := m[c.Ref]
	how := store.Settlement{Error: fmt.Sprint("error ", random.IntN(100))}
	switch random.IntN(4) {
	case 0:
		how.Error = ""
		delete(m, c.Ref)
	case 1:
		how.Dead = true
		e.place, e.err = isDead, how.Error
	case 2:
		how.RetryAt = time.Unix(1, 0)
		e.place = isDue
	case 3:
		how.RetryAt = farOff()
		e.place = isWaiting
	}
	settle(t, j, c, how)
}

// requeue tries what is dead and what is not.
func (m modelEffects) requeue(t *testing.T, j store.Journal, random *rand.Rand) {
	refs := append(m.sorted(nil), store.EffectRef{Thread: modelThreads[0], Revision: 1 << 40})
	ref := refs[random.IntN(len(refs))]
	if dead := m.sorted(func(e *modelEffect) bool { return e.place == isDead }); len(dead) > 0 && random.IntN(2) == 0 {
		ref = dead[random.IntN(len(dead))]
	}
	err := j.(store.Queue).Requeue(t.Context(), ref)
	e := m[ref]
	if e == nil || e.place != isDead {
		isError(t, err, fmt.Sprintf("requeue of %s, which is not dead", ref), store.ErrNoEffect)
		return
	}
	noError(t, err, "requeue of %s", ref)
	e.place, e.attempts, e.err = isDue, 0, ""
}

// compare compares what a store says of its lanes.
func (m modelEffects) compare(t *testing.T, j store.Journal) {
	held := map[string]bool{}
	for _, e := range m {
		if e.place != isDead {
			held[e.effect.Lane] = true
		}
	}
	hasLanes(t, j, "", slices.Sorted(maps.Keys(held))...)
	for _, lane := range modelLanes {
		count := func(place int) int { return len(m.sorted(in(lane, place))) }
		hasDepth(t, j, lane, count(isDue), count(isWaiting), count(isClaimed), count(isDead))
		var want, got []string
		for _, ref := range m.sorted(in(lane, isDead)) {
			e := m[ref]
			want = append(want, fmt.Sprint(ref, e.effect.Body, e.attempts, e.err))
		}
		for _, d := range deadOf(t, j, lane, 1000) {
			got = append(got, fmt.Sprint(d.Ref, d.Effect.Body, d.Attempts, d.Error))
		}
		if !slices.Equal(want, got) {
			t.Fatalf("dead effects of lane %q are %q, want %q", lane, got, want)
		}
	}
}
