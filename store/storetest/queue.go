package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

func lanes(t testing.TB, j store.Journal, prefix string) []string {
	t.Helper()
	names, err := j.(store.Queue).Lanes(ctxOf(t), prefix)
	noError(t, err, "lanes that start with %q", prefix)
	return names
}

// hasLanes stops the test unless these are the lanes that start with prefix.
func hasLanes(t testing.TB, j store.Journal, prefix string, want ...string) {
	t.Helper()
	if got := lanes(t, j, prefix); !slices.Equal(want, got) {
		t.Fatalf("lanes that start with %q: got %q, want %q", prefix, got, want)
	}
}

// hasDepth stops the test unless the lane holds so many effects. It returns since when
// the oldest is due.
func hasDepth(t testing.TB, j store.Journal, lane string, due, waiting, claimed, dead int) time.Time {
	t.Helper()
	d, err := j.(store.Queue).Depth(ctxOf(t), lane)
	noError(t, err, "depth of lane %q", lane)
	oldest := d.Oldest
	d.Oldest = time.Time{}
	equal(t, store.Depth{Due: due, Waiting: waiting, Claimed: claimed, Dead: dead}, d, "depth of lane %q", lane)
	equal(t, due == 0, oldest.IsZero(), "no time of the oldest of %d due on lane %q", due, lane)
	return oldest
}

func deadOf(t testing.TB, j store.Journal, lane string, limit int) []store.DeadEffect {
	t.Helper()
	dead, err := j.(store.Queue).Dead(ctxOf(t), lane, limit)
	noError(t, err, "dead effects of lane %q", lane)
	if len(dead) > max(limit, 0) {
		t.Fatalf("at most %d dead effects were asked for, got %d", limit, len(dead))
	}
	return dead
}

// deadKeys lists the references of dead effects.
func deadKeys(dead []store.DeadEffect) string {
	var all []string
	for _, d := range dead {
		all = append(all, d.Ref.String())
	}
	return strings.Join(all, " ")
}

// giveUp claims all of a lane and gives it up.
func giveUp(t testing.TB, j store.Journal, lane string) {
	t.Helper()
	for _, c := range claim(t, j, lane, 1000, time.Hour) {
		settle(t, j, c, store.Settlement{Dead: true, Error: "given up " + c.Ref.String()})
	}
}

func requeue(t testing.TB, j store.Journal, ref store.EffectRef) {
	t.Helper()
	noError(t, j.(store.Queue).Requeue(ctxOf(t), ref), "requeue %s", ref)
}

// farOff is a time that no clock of a test reaches.
func farOff() time.Time { return time.Now().AddDate(100, 0, 0) }

// around reports whether a store's time is one between two that were read off it. Stores
// round.
func around(at, from, to time.Time) bool {
	const rounding = 5 * time.Millisecond
	return !at.Before(from.Add(-rounding)) && !at.After(to.Add(rounding))
}

// oddNames are names of lanes and topics that a store must keep apart, sorted. Between
// them are separators and wildcards of transports, other cases, and what is no UTF-8.
var oddNames = func() []string {
	names := []string{
		"", " ", " a", "*", ">", ".", "a", "a ", "a.", "a.*", "a.>", "a.b", "a..b", "a/", "a/b", "a*", "a%", "a%2f", "a_", "A", "A/B",
		"ä", "a\u0308", "日本語", "run/5/tenant", "run/5/tenant.x", "\x00", "a\x00", "a\x00b", "\xff\xfe", "a\nb", "'; --", `"`, `\`, "$",
		strings.Repeat("x", 200), strings.Repeat("x", 199), strings.Repeat("日", 66),
	}
	slices.Sort(names)
	return names
}()

var queueTests = []test{
	{"lanes", func(t *testing.T, f Fixture) {
		hasLanes(t, f.Journal, "")
		c := commit("t", 0)
		for _, lane := range []string{"run/9/b", "run/5/a", "mail", "run/5/b", "run/5/a"} {
			c.Effects = append(c.Effects, store.Effect{Lane: lane})
		}
		c.Effects = append(c.Effects, store.Effect{Lane: "run/5/late", NotBefore: farOff()})
		appendAll(t, f.Journal, c)
		hasLanes(t, f.Journal, "", "mail", "run/5/a", "run/5/b", "run/5/late", "run/9/b")
		hasLanes(t, f.Journal, "run/5/", "run/5/a", "run/5/b", "run/5/late")
		hasLanes(t, f.Journal, "run/5/a", "run/5/a")
		hasLanes(t, f.Journal, "run/6/")
		hasLanes(t, f.Journal, "run/5/aa")

		// A lane is one as long as there is something to deliver, claimed or not.
		first := claimOne(t, f.Journal, "run/5/a", time.Hour)
		second := claimOne(t, f.Journal, "run/5/a", time.Hour)
		settle(t, f.Journal, first, store.Settlement{})
		hasLanes(t, f.Journal, "run/5/a", "run/5/a")
		settle(t, f.Journal, second, store.Settlement{RetryAt: farOff()})
		hasLanes(t, f.Journal, "run/5/a", "run/5/a")
		giveUp(t, f.Journal, "mail")
		settle(t, f.Journal, claimOne(t, f.Journal, "run/9/b", time.Hour), store.Settlement{})
		hasLanes(t, f.Journal, "", "run/5/a", "run/5/b", "run/5/late")
		requeue(t, f.Journal, store.EffectRef{Thread: "t", Revision: 1, Index: 2})
		hasLanes(t, f.Journal, "", "mail", "run/5/a", "run/5/b", "run/5/late")
		noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
		hasLanes(t, f.Journal, "")
	}},
	{"lanes with odd names", func(t *testing.T, f Fixture) {
		for base, lane := range oddNames {
			c := commit("t", uint64(base))
			c.Effects = []store.Effect{{Lane: lane, Body: []byte(lane)}}
			appendAll(t, f.Journal, c)
		}
		hasLanes(t, f.Journal, "", oddNames...)
		for _, prefix := range []string{"a", "a.", "a/", "a*", "*", "a\x00", "%", "日", "x", "\xff"} {
			var want []string
			for _, lane := range oddNames {
				if strings.HasPrefix(lane, prefix) {
					want = append(want, lane)
				}
			}
			hasLanes(t, f.Journal, prefix, want...)
		}
		for base, lane := range oddNames {
			hasDepth(t, f.Journal, lane, 1, 0, 0, 0)
			c := claimOne(t, f.Journal, lane, time.Hour)
			equal(t, fmt.Sprintf("t/%d/0 %q", base+1, lane), fmt.Sprintf("%s %q", c.Ref, c.Effect.Body), "claim on lane %q", lane)
			equal(t, lane, c.Effect.Lane, "lane of the claim")
			settle(t, f.Journal, c, store.Settlement{Dead: true})
			hasDepth(t, f.Journal, lane, 0, 0, 0, 1)
			equal(t, c.Ref.String(), deadKeys(deadOf(t, f.Journal, lane, 2)), "dead effects of lane %q", lane)
		}
		hasLanes(t, f.Journal, "")
	}},
	{"depth", func(t *testing.T, f Fixture) {
		hasDepth(t, f.Journal, "mail", 0, 0, 0, 0)
		c := withEffects("t", 0, "mail", 6)
		c.Effects[5].NotBefore = farOff()
		c.Effects = append(c.Effects, store.Effect{Lane: "mail/2"}, store.Effect{Lane: "mai"})
		appendAll(t, f.Journal, c)
		hasDepth(t, f.Journal, "mail", 5, 1, 0, 0)
		_, short := f.ttl()
		claims := claim(t, f.Journal, "mail", 4, time.Hour)
		hasDepth(t, f.Journal, "mail", 1, 1, 4, 0)
		settle(t, f.Journal, claims[0], store.Settlement{})
		settle(t, f.Journal, claims[1], store.Settlement{RetryAt: farOff()})
		settle(t, f.Journal, claims[2], store.Settlement{RetryAt: time.Unix(1, 0)})
		settle(t, f.Journal, claims[3], store.Settlement{Dead: true})
		hasDepth(t, f.Journal, "mail", 2, 2, 0, 1)
		equal(t, "t/1/2", keys(claim(t, f.Journal, "mail", 1, short)), "claim")
		f.wait(2 * short)
		hasDepth(t, f.Journal, "mail", 2, 2, 0, 1) // the claim ran out
		c = commit("t", 1)
		c.Settles = []store.EffectRef{claims[1].Ref, claims[3].Ref}
		appendAll(t, f.Journal, c)
		hasDepth(t, f.Journal, "mail", 2, 1, 0, 0)
		hasDepth(t, f.Journal, "mail/2", 1, 0, 0, 0)
		noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
		hasDepth(t, f.Journal, "mail", 0, 0, 0, 0)
	}},
	{"since when the oldest is due", func(t *testing.T, f Fixture) {
		leaser, ok := f.Journal.(store.Leaser)
		if !ok {
			t.Log("the store has no leases, so its clock cannot be read")
			return
		}
		now := func() time.Time {
			lease, err := leaser.Acquire(ctxOf(t), "clock", "kit", 0)
			noError(t, err, "acquire")
			return lease.Until
		}
		_, short := f.ttl()
		is := func(from, to time.Time, due, waiting, claimed int, what string) {
			t.Helper()
			if oldest := hasDepth(t, f.Journal, "mail", due, waiting, claimed, 0); !around(oldest, from, to) {
				t.Fatalf("the oldest is due since %s, want from %s to %s: %s", oldest, from, to, what)
			}
		}
		first := now()
		c := withEffects("t", 0, "mail", 2)
		c.Effects[1].NotBefore = first.AddDate(-1, 0, 0) // it was not there then
		appendAll(t, f.Journal, c)
		second := now()
		is(first, second, 2, 0, 0, "two that came at once")
		f.wait(2 * short)
		third := now()
		later := third.Add(10 * short)
		c = withEffects("t", 1, "mail", 1)
		c.Effects[0].NotBefore = later
		appendAll(t, f.Journal, c)
		is(first, second, 2, 1, 0, "another is not due yet")
		claims := claim(t, f.Journal, "mail", 2, time.Hour)
		f.wait(11 * short)
		is(later, later, 1, 0, 2, "one that waited for its time")
		fourth := now()
		settle(t, f.Journal, claims[0], store.Settlement{RetryAt: time.Unix(1, 0)})
		is(later, later, 2, 0, 1, "a retry came back later")
		appendAll(t, f.Journal, store.Commit{ID: newID(), Thread: "t", Base: 2, Settles: []store.EffectRef{{Thread: "t", Revision: 2}}})
		is(fourth, now(), 1, 0, 1, "the retry, since it came back")
		settle(t, f.Journal, claims[1], store.Settlement{Dead: true})
		from := now().Add(short)
		again := claimOne(t, f.Journal, "mail", short)
		to := now().Add(short)
		f.wait(4 * short)
		fifth := now()
		noError(t, f.Journal.(store.Queue).Requeue(ctxOf(t), claims[1].Ref), "requeue")
		is(from, to, 2, 0, 0, "a claim that ran out, and one that was requeued")
		settle(t, f.Journal, again, store.Settlement{})
		is(fifth, now(), 1, 0, 0, "the one that was requeued")
	}},
	{"dead effects", func(t *testing.T, f Fixture) {
		equal(t, "", deadKeys(deadOf(t, f.Journal, "mail", 10)), "dead effects of a lane that nobody used")
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 2), withEffects("s", 0, "mail", 1), withEffects("t", 1, "fax", 1), withEffects("t", 2, "mail", 1))
		claims := claim(t, f.Journal, "mail", 10, time.Hour)
		for i := range claims { // the last one first
			settle(t, f.Journal, claims[len(claims)-1-i], store.Settlement{Dead: true, Error: fmt.Sprintf("refused %d", i)})
		}
		dead := deadOf(t, f.Journal, "mail", 10)
		equal(t, "t/1/0 t/1/1 s/1/0 t/3/0", deadKeys(dead), "dead effects")
		for i, d := range dead {
			equal(t, fmt.Sprintf("mail %s 1 refused %d", claims[i].Effect.Body, len(dead)-1-i),
				fmt.Sprintf("%s %s %d %s", d.Effect.Lane, d.Effect.Body, d.Attempts, d.Error), "dead effect %s", d.Ref)
			equal(t, true, d.Effect.NotBefore.IsZero(), "no time not to deliver before")
		}
		spoil(dead[0].Effect.Body)
		equal(t, string(claims[0].Effect.Body), string(deadOf(t, f.Journal, "mail", 1)[0].Effect.Body), "body after the caller changed it")
		equal(t, "t/1/0 t/1/1", deadKeys(deadOf(t, f.Journal, "mail", 2)), "two of them")
		equal(t, "", deadKeys(deadOf(t, f.Journal, "mail", 0)), "none of them")
		equal(t, "", deadKeys(deadOf(t, f.Journal, "fax", 10)), "dead effects of another lane")

		// They are not lost by a worker that changes its mind, but by a commit.
		outbox := f.Journal.(store.Outbox)
		settle(t, f.Journal, claims[0], store.Settlement{Dead: true, Error: "the answer got lost"})
		for _, how := range []store.Settlement{{}, {RetryAt: time.Unix(1, 0)}} {
			isError(t, outbox.Settle(t.Context(), claims[0], how), "settle of what was given up", store.ErrFenced)
		}
		f.wait(time.Millisecond)
		equal(t, "", keys(claim(t, f.Journal, "mail", 10, time.Hour)), "claim of dead effects")
		c := commit("u", 0)
		c.Settles = []store.EffectRef{claims[1].Ref}
		appendAll(t, f.Journal, c)
		equal(t, "t/1/0 s/1/0 t/3/0", deadKeys(deadOf(t, f.Journal, "mail", 10)), "dead effects after a commit settled one")
		noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
		equal(t, "s/1/0", deadKeys(deadOf(t, f.Journal, "mail", 10)), "dead effects after their thread was deleted")
	}},
	{"requeue", func(t *testing.T, f Fixture) {
		queue := f.Journal.(store.Queue)
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 3))
		_, short := f.ttl()
		claimOne(t, f.Journal, "mail", short)
		f.wait(2 * short)
		claimOne(t, f.Journal, "mail", short)
		f.wait(2 * short)
		former := claimOne(t, f.Journal, "mail", time.Hour)
		settle(t, f.Journal, former, store.Settlement{Dead: true, Error: "refused"})
		equal(t, 3, deadOf(t, f.Journal, "mail", 1)[0].Attempts, "attempts of the dead effect")
		requeue(t, f.Journal, former.Ref)
		isError(t, queue.Requeue(t.Context(), former.Ref), "second requeue", store.ErrNoEffect)
		hasDepth(t, f.Journal, "mail", 3, 0, 0, 0)
		for _, how := range []store.Settlement{{}, {Dead: true}, {RetryAt: time.Unix(1, 0)}} {
			isError(t, queue.Settle(t.Context(), former, how), "settle by the claim of before", store.ErrFenced)
		}
		claims := claim(t, f.Journal, "mail", 10, time.Hour)
		equal(t, "t/1/0 t/1/1 t/1/2", keys(claims), "it comes in the order of its thread")
		equal(t, 1, claims[0].Attempts, "attempts, counted anew")
		equal(t, "mail effect 0 of t after 0", fmt.Sprintf("%s %s", claims[0].Effect.Lane, claims[0].Effect.Body), "effect")
		settle(t, f.Journal, claims[0], store.Settlement{Dead: true})
		equal(t, "", deadOf(t, f.Journal, "mail", 1)[0].Error, "error of the second time")

		settle(t, f.Journal, claims[1], store.Settlement{})
		for what, ref := range map[string]store.EffectRef{
			"claimed": claims[2].Ref, "settled": claims[1].Ref,
			"of another thread": {Thread: "u", Revision: 1}, "of another index": {Thread: "t", Revision: 1, Index: 9},
			"of another revision": {Thread: "t", Revision: 2},
		} {
			isError(t, queue.Requeue(t.Context(), ref), "requeue of an effect that is "+what, store.ErrNoEffect)
		}
		settle(t, f.Journal, claims[2], store.Settlement{RetryAt: farOff()})
		isError(t, queue.Requeue(t.Context(), claims[2].Ref), "requeue of an effect that waits", store.ErrNoEffect)
		c := commit("t", 1)
		c.Settles = []store.EffectRef{claims[0].Ref}
		appendAll(t, f.Journal, c)
		isError(t, queue.Requeue(t.Context(), claims[0].Ref), "requeue of an effect that a commit settled", store.ErrNoEffect)
		hasDepth(t, f.Journal, "mail", 0, 1, 0, 0)
	}},
	{"one that is dead is requeued by one of many", func(t *testing.T, f Fixture) {
		queue := f.Journal.(store.Queue)
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 1))
		giveUp(t, f.Journal, "mail")
		failures := together(16, func(int) error { return queue.Requeue(ctxOf(t), store.EffectRef{Thread: "t", Revision: 1}) })
		won := 0
		for _, err := range failures {
			if err == nil {
				won++
				continue
			}
			isError(t, err, "requeue by another", store.ErrNoEffect)
		}
		equal(t, 1, won, "those that requeued it")
		hasDepth(t, f.Journal, "mail", 1, 0, 0, 0)
	}},
}
