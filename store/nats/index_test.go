package nats

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
)

// fact is what a message says of an effect.
type fact struct {
	ref store.EffectRef
	s   state
	seq uint64
}

// The index is told of random changes twice, by those who make them, at once, and by the
// feed, late. When the feed is through, it knows what a map would.
func TestIndexKnowsWhatTheFeedBrings(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		x, now := newIndex(), time.Unix(1000, 0)
		truth := map[store.EffectRef]fact{}
		var feed, all []fact
		for seq := uint64(1); seq <= 120; seq++ {
			ref := store.EffectRef{Thread: fmt.Sprint(random.IntN(3)), Revision: uint64(random.IntN(4)), Index: uint32(random.IntN(2))}
			s := state{kind: isWaiting + byte(random.IntN(4)), lane: fmt.Sprint("lane ", ref.Index), due: time.Unix(int64(990+random.IntN(20)), 0)}
			if old, ok := truth[ref]; ok {
				s.bodySeq = cmp.Or(old.s.bodySeq, old.seq)
			}
			f := fact{ref, s, seq}
			if truth[ref] = f; s.kind == isGone {
				delete(truth, ref)
			}
			feed = append(feed, f)
			all = append(all, f)
			if random.IntN(2) == 0 { // this process did it
				x.learn(ref, s, seq, false, now)
			}
			if random.IntN(2) == 0 { // or read it, some time later
				late := all[random.IntN(len(all))]
				x.learn(late.ref, late.s, late.seq, false, now)
			}
			for len(feed) > 0 && random.IntN(3) == 0 {
				x.learn(feed[0].ref, feed[0].s, feed[0].seq, true, now)
				x.pass(feed[0].seq)
				feed = feed[1:]
			}
		}
		for _, f := range feed {
			x.learn(f.ref, f.s, f.seq, true, now)
			x.pass(f.seq)
		}
		require.Len(t, x.effects, len(truth))
		require.Empty(t, x.gone, "what is gone need not be remembered")
		require.Empty(t, x.goneLog)
		depths := map[string]store.Depth{}
		for ref, f := range truth {
			require.Equal(t, f.seq, x.effects[ref].seq)
			d := depths[f.s.lane]
			switch {
			case f.s.kind == isDead:
				d.Dead++
			case !f.s.due.After(now):
				d.Due++
				if d.Oldest.IsZero() || f.s.due.Before(d.Oldest) {
					d.Oldest = f.s.due
				}
			case f.s.kind == isClaimed:
				d.Claimed++
			default:
				d.Waiting++
			}
			depths[f.s.lane] = d
		}
		require.Len(t, x.lanes, len(depths))
		for name, d := range depths {
			require.Equal(t, d, x.depth(name, now), name)
			var due []fact
			for _, f := range truth {
				if f.s.lane == name && f.s.kind != isDead && !f.s.due.After(now) {
					due = append(due, f)
				}
			}
			slices.SortFunc(due, func(a, b fact) int {
				return cmp.Compare(cmp.Or(a.s.bodySeq, a.seq), cmp.Or(b.s.bodySeq, b.seq))
			})
			taken := x.take(name, 1000, now, nil)
			require.Len(t, taken, len(due))
			for i, e := range taken {
				require.Equal(t, due[i].ref, e.ref, "in the order of the commits")
			}
			require.Empty(t, x.take(name, 1000, now, nil), "nobody else gets them meanwhile")
			for _, e := range taken {
				x.putBack(e, now)
			}
			require.Len(t, x.take(name, 1000, now, nil), len(due))
		}
	}
}

// A feed that begins anew drops what it does not bring.
func TestIndexIsSwept(t *testing.T) {
	t.Parallel()
	x, now := newIndex(), time.Unix(1000, 0)
	old, kept, own := store.EffectRef{Thread: "old"}, store.EffectRef{Thread: "kept"}, store.EffectRef{Thread: "own"}
	for i, ref := range []store.EffectRef{old, kept} {
		x.learn(ref, state{kind: isWaiting, lane: "a"}, uint64(i+1), true, now)
	}
	x.age++
	x.learn(own, state{kind: isWaiting, lane: "b"}, 3, true, now)
	x.learn(kept, state{kind: isWaiting, lane: "a"}, 2, true, now)
	x.sweep()
	require.NotContains(t, x.effects, old)
	require.Contains(t, x.effects, kept)
	require.Contains(t, x.effects, own)
	x.forget("kept", 2)
	require.Contains(t, x.effects, kept, "it came after the thread was deleted")
	x.forget("kept", 3)
	x.learn(kept, state{kind: isWaiting, lane: "a"}, 2, true, now)
	require.NotContains(t, x.effects, kept, "a late message about what was deleted")
	require.Len(t, x.lanes, 1)
}

// Processes that get in each other's way look at different threads, each in order.
func TestIndexSpreads(t *testing.T) {
	t.Parallel()
	x, now := newIndex(), time.Unix(1000, 0)
	for seq := uint64(1); seq <= 400; seq++ {
		x.learn(store.EffectRef{Thread: fmt.Sprint(seq % 40), Revision: seq}, state{kind: isWaiting, lane: "a"}, seq, true, now)
	}
	for range 4 {
		x.contended("a", 1, 5)
	}
	require.EqualValues(t, 16, x.lanes["a"].spread)
	last := map[string]uint64{}
	for n := 0; n < 400; {
		taken := x.take("a", 3, now, nil)
		require.NotEmpty(t, taken)
		for _, e := range taken {
			require.Greater(t, e.ref.Revision, last[e.ref.Thread])
			last[e.ref.Thread] = e.ref.Revision
			x.remove(e)
			n++
		}
		if n == 300 {
			x.contended("a", 3, 0)
		}
	}
	require.Empty(t, x.lanes)
	require.Empty(t, x.effects)
}
