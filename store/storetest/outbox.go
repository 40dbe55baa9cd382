package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// withEffects is a commit that emits n effects on a lane.
func withEffects(thread string, base uint64, lane string, n int) store.Commit {
	c := commit(thread, base)
	for i := range n {
		c.Effects = append(c.Effects, store.Effect{Lane: lane, Body: fmt.Appendf(nil, "effect %d of %s after %d", i, thread, base)})
	}
	return c
}

func claim(t testing.TB, j store.Journal, lane string, limit int, ttl time.Duration) []store.Claim {
	t.Helper()
	claims, err := j.(store.Outbox).Claim(ctxOf(t), lane, "worker", limit, ttl)
	noError(t, err, "claim on lane %q", lane)
	if len(claims) > max(limit, 0) {
		t.Fatalf("claim of at most %d gave %d", limit, len(claims))
	}
	return claims
}

// claimOne claims an effect that has to be there.
func claimOne(t testing.TB, j store.Journal, lane string, ttl time.Duration) store.Claim {
	t.Helper()
	claims := claim(t, j, lane, 1, ttl)
	equal(t, 1, len(claims), "effects to claim on lane %q", lane)
	return claims[0]
}

func settle(t testing.TB, j store.Journal, c store.Claim, how store.Settlement) {
	t.Helper()
	noError(t, j.(store.Outbox).Settle(ctxOf(t), c, how), "settle %s as %+v", c.Ref, how)
}

// keys lists the references of claims.
func keys(claims []store.Claim) string {
	var all []string
	for _, c := range claims {
		all = append(all, c.Ref.String())
	}
	return strings.Join(all, " ")
}

var outboxTests = []test{
	{"claim and settle", func(t *testing.T, f Fixture) {
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 3), commit("t", 1), withEffects("t", 2, "mail", 1))
		long, _ := f.ttl()
		equal(t, "", keys(claim(t, f.Journal, "fax", 10, long)), "effects of another lane")
		equal(t, "", keys(claim(t, f.Journal, "mail", 0, long)), "claim of none")
		first := claim(t, f.Journal, "mail", 2, long)
		equal(t, "t/1/0 t/1/1", keys(first), "first claim")
		c := first[1]
		equal(t, "mail|effect 1 of t after 0|1", fmt.Sprintf("%s|%s|%d", c.Effect.Lane, c.Effect.Body, c.Attempts), "claim")
		equal(t, true, c.Effect.NotBefore.IsZero(), "no time not to deliver before")
		second := claim(t, f.Journal, "mail", 10, long)
		equal(t, "t/1/2 t/3/0", keys(second), "second claim")
		equal(t, "", keys(claim(t, f.Journal, "mail", 10, long)), "third claim")
		for _, c := range slices.Concat(first, second) {
			settle(t, f.Journal, c, store.Settlement{})
			settle(t, f.Journal, c, store.Settlement{}) // the answer got lost, and it asks again
		}
		f.wait(time.Millisecond)
		equal(t, "", keys(claim(t, f.Journal, "mail", 10, long)), "claim when all is settled")
	}},
	{"many effects of one commit", func(t *testing.T, f Fixture) {
		const effects = 200
		appendAll(t, f.Journal, withEffects("t", 0, "mail", effects))
		for first := 0; first < effects; first += 40 {
			for i, c := range claim(t, f.Journal, "mail", 40, time.Hour) {
				equal(t, fmt.Sprintf("t/1/%d effect %d of t after 0", first+i, first+i), fmt.Sprintf("%s %s", c.Ref, c.Effect.Body), "claim")
			}
		}
		c := commit("t", 1)
		for i := range uint32(effects) {
			c.Settles = append(c.Settles, store.EffectRef{Thread: "t", Revision: 1, Index: i})
		}
		c.Effects = withEffects("t", 1, "mail", 1).Effects
		appendAll(t, f.Journal, c)
		equal(t, "t/2/0", keys(claim(t, f.Journal, "mail", 10, time.Hour)), "what is left")
	}},
	{"lanes and threads keep apart", func(t *testing.T, f Fixture) {
		for base := range uint64(4) {
			for _, thread := range []string{"a", "b"} {
				c := withEffects(thread, base, "x", 1)
				c.Effects = append(c.Effects, store.Effect{Lane: "y"}, store.Effect{Lane: "x/y"}, store.Effect{Lane: ""})
				appendAll(t, f.Journal, c)
			}
		}
		for lane, index := range map[string]uint32{"x": 0, "y": 1, "x/y": 2, "": 3} {
			claims := claim(t, f.Journal, lane, 100, time.Hour)
			equal(t, 8, len(claims), "claims on %q", lane)
			last := map[string]uint64{}
			for _, c := range claims {
				equal(t, index, c.Ref.Index, "index of %s on lane %q", c.Ref, lane)
				if c.Ref.Revision <= last[c.Ref.Thread] {
					t.Fatalf("%s comes after revision %d: %s", c.Ref, last[c.Ref.Thread], keys(claims))
				}
				last[c.Ref.Thread] = c.Ref.Revision
			}
		}
	}},
	{"not before its time", func(t *testing.T, f Fixture) {
		// The clock of the store is unknown here, so it is read off a lease.
		now := time.Now()
		if leaser, ok := f.Journal.(store.Leaser); ok {
			lease, err := leaser.Acquire(t.Context(), "clock", "kit", 0)
			noError(t, err, "acquire")
			now = lease.Until
		}
		long, short := f.ttl()
		c := withEffects("t", 0, "mail", 4)
		c.Effects[1].NotBefore = now.Add(20 * short)
		c.Effects[2].NotBefore = now.Add(long)
		c.Effects[3].NotBefore = now.Add(-long)
		appendAll(t, f.Journal, c)
		equal(t, "t/1/0 t/1/3", keys(claim(t, f.Journal, "mail", 10, 2*long)), "at once")
		f.wait(21 * short)
		later := claim(t, f.Journal, "mail", 10, 2*long)
		equal(t, "t/1/1", keys(later), "later")
		equal(t, true, later[0].Effect.NotBefore.Equal(c.Effects[1].NotBefore), "its time comes back")
	}},
	{"retry", func(t *testing.T, f Fixture) {
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 2))
		_, short := f.ttl()
		first := claimOne(t, f.Journal, "mail", time.Hour)
		settle(t, f.Journal, first, store.Settlement{RetryAt: time.Unix(1, 0), Error: "busy"})
		again := claim(t, f.Journal, "mail", 10, short)
		equal(t, "t/1/0 t/1/1", keys(again), "a retry comes in order")
		equal(t, 2, again[0].Attempts, "attempts")
		if again[0].Token == first.Token {
			t.Fatal("two claims have one token")
		}
		isError(t, f.Journal.(store.Outbox).Settle(t.Context(), first, store.Settlement{}), "settle of the first claim", store.ErrFenced)
		for _, c := range again {
			settle(t, f.Journal, c, store.Settlement{RetryAt: time.Now().AddDate(100, 0, 0)})
		}
		f.wait(2 * short)
		equal(t, "", keys(claim(t, f.Journal, "mail", 10, time.Hour)), "before the time of the retry")
	}},
	{"dead", func(t *testing.T, f Fixture) {
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 2))
		_, short := f.ttl()
		settle(t, f.Journal, claimOne(t, f.Journal, "mail", short), store.Settlement{Dead: true, Error: "no such address"})
		f.wait(2 * short)
		equal(t, "t/1/1", keys(claim(t, f.Journal, "mail", 10, time.Hour)), "what is not dead")
	}},
	{"a claim runs out", func(t *testing.T, f Fixture) {
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 1))
		_, short := f.ttl()
		first := claimOne(t, f.Journal, "mail", short)
		f.wait(short)
		second := claim(t, f.Journal, "mail", 10, short)
		equal(t, "t/1/0", keys(second), "claim after the first ran out")
		equal(t, 2, second[0].Attempts, "attempts")
		outbox := f.Journal.(store.Outbox)
		for _, how := range []store.Settlement{{}, {Dead: true}, {RetryAt: time.Unix(1, 0)}} {
			isError(t, outbox.Settle(t.Context(), first, how), "settle by a stale claim", store.ErrFenced)
		}
		f.wait(short)
		settle(t, f.Journal, second[0], store.Settlement{}) // it ran out, but nobody else has it
		err := outbox.Settle(t.Context(), first, store.Settlement{RetryAt: time.Unix(1, 0)})
		isError(t, err, "retry of what is settled", store.ErrFenced)
		f.wait(short)
		equal(t, "", keys(claim(t, f.Journal, "mail", 10, short)), "claim of what is settled")
	}},
	{"a commit settles", func(t *testing.T, f Fixture) {
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 3), withEffects("u", 0, "mail", 1))
		claimed := claimOne(t, f.Journal, "mail", time.Hour)
		c := withEffects("t", 1, "mail", 1)
		c.Settles = []store.EffectRef{
			{Thread: "t", Revision: 1, Index: 0}, {Thread: "t", Revision: 1, Index: 1},
			{Thread: "u", Revision: 1, Index: 0}, {Thread: "nobody", Revision: 7, Index: 9},
		}
		appendAll(t, f.Journal, c, c) // the second is a repeat
		equal(t, "t/1/2 t/2/0", keys(claim(t, f.Journal, "mail", 10, time.Hour)), "what is left")
		settle(t, f.Journal, claimed, store.Settlement{})
	}},
	{"a refused commit emits and settles nothing", func(t *testing.T, f Fixture) {
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 1))
		c := withEffects("t", 0, "mail", 5)
		c.Settles = []store.EffectRef{{Thread: "t", Revision: 1, Index: 0}}
		_, err := f.Journal.Append(t.Context(), c)
		isError(t, err, "append", store.ErrConflict)
		equal(t, "t/1/0", keys(claim(t, f.Journal, "mail", 10, time.Hour)), "effects")
	}},
	{"delete drops the effects, prune does not", func(t *testing.T, f Fixture) {
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 2), snapshotCommit("t", 1), snapshotCommit("t", 2), withEffects("t2", 0, "mail", 1))
		noError(t, f.Journal.Prune(t.Context(), "t", store.PrunePolicy{KeepSnapshots: 1}), "prune")
		_, short := f.ttl()
		claims := claim(t, f.Journal, "mail", 10, short)
		equal(t, 3, len(claims), "claims after prune")
		noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
		f.wait(2 * short)
		equal(t, "t2/1/0", keys(claim(t, f.Journal, "mail", 10, time.Hour)), "claims after delete")
		err := f.Journal.(store.Outbox).Settle(t.Context(), claims[0], store.Settlement{RetryAt: time.Unix(1, 0)})
		isError(t, err, "retry of what was deleted", store.ErrFenced)
	}},
	{"many workers", func(t *testing.T, f Fixture) {
		const commits, effects = 10, 10
		for base := range uint64(commits) {
			appendAll(t, f.Journal, withEffects("t", base, "mail", effects))
		}
		var mu sync.Mutex
		delivered := map[store.EffectRef]int{}
		var group sync.WaitGroup
		failures := make([]error, 8)
		for n := range failures {
			group.Go(func() {
				for failures[n] == nil {
					claims, err := f.Journal.(store.Outbox).Claim(ctxOf(t), "mail", fmt.Sprint(n), 7, time.Hour)
					failures[n] = err
					if len(claims) == 0 {
						return
					}
					for _, c := range claims {
						mu.Lock()
						delivered[c.Ref]++
						mu.Unlock()
						failures[n] = errors.Join(failures[n], f.Journal.(store.Outbox).Settle(ctxOf(t), c, store.Settlement{}))
					}
				}
			})
		}
		group.Wait()
		noError(t, errors.Join(failures...), "workers")
		equal(t, commits*effects, len(delivered), "effects delivered")
		for ref, n := range delivered {
			equal(t, 1, n, "deliveries of %s", ref)
		}
	}},
}
