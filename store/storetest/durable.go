package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

var durableTests = []test{
	{"all is there after a reopen", func(t *testing.T, f Fixture) {
		commits := tenCommits(t, f.Journal)
		other := grow(t, f.Journal, "u", 3)
		grow(t, f.Journal, "gone", 3)
		noError(t, f.Journal.Delete(t.Context(), "gone"), "delete")
		for range 2 {
			j := f.Reopen(t)
			sameImage(t, imageOf(1, commits), load(t, j, "t", 0), "load of t")
			sameImage(t, imageOf(1, other), load(t, j, "u", 0), "load of u")
			page, err := j.Threads(t.Context(), "", 10)
			noError(t, err, "threads")
			equal(t, "[t u]", fmt.Sprint(page), "threads")
			appendAll(t, j, commits[len(commits)-1], other[2]) // repeats after a restart
			commits = append(commits, commit("t", uint64(len(commits))))
			appendAll(t, j, commits[len(commits)-1])
		}
	}},
	{"leases and fences are there after a reopen", func(t *testing.T, f Fixture) {
		leaser, ok := f.Journal.(store.Leaser)
		if !ok {
			t.Log("the store has no leases")
			return
		}
		lease, err := leaser.Acquire(t.Context(), "t", "ann", time.Hour)
		noError(t, err, "acquire")
		j := f.Reopen(t)
		leaser = j.(store.Leaser)
		_, err = leaser.Acquire(t.Context(), "t", "bob", time.Hour)
		isError(t, err, "acquire of a lease that is held", store.ErrLeaseHeld)
		_, err = j.Append(t.Context(), commit("t", 1))
		isError(t, err, "append without an epoch", store.ErrFenced)
		_, err = leaser.Renew(t.Context(), lease, time.Hour)
		noError(t, err, "renew")
		noError(t, leaser.Release(t.Context(), lease), "release")
		j = f.Reopen(t)
		next, err := j.(store.Leaser).Acquire(t.Context(), "t", "bob", time.Hour)
		noError(t, err, "acquire of a lease that was released")
		equal(t, 2, next.Epoch, "epoch")
	}},
	{"the outbox is there after a reopen", func(t *testing.T, f Fixture) {
		if _, ok := f.Journal.(store.Outbox); !ok {
			t.Log("the store has no outbox")
			return
		}
		_, short := f.ttl()
		appendAll(t, f.Journal, withEffects("t", 0, "mail", 4))
		claims := claim(t, f.Journal, "mail", 3, short)
		equal(t, 3, len(claims), "claims")
		settle(t, f.Journal, claims[0], store.Settlement{})
		settle(t, f.Journal, claims[1], store.Settlement{Dead: true})
		j := f.Reopen(t)
		f.wait(2 * short)
		again := claim(t, j, "mail", 10, time.Hour)
		equal(t, "t/1/2 t/1/3", keys(again), "what is not settled")
		equal(t, 2, again[0].Attempts, "attempts")
		equal(t, "effect 3 of t after 0", string(again[1].Effect.Body), "body")
		err := j.(store.Outbox).Settle(t.Context(), claims[2], store.Settlement{})
		isError(t, err, "settle by a claim of before", store.ErrFenced)
		settle(t, j, again[0], store.Settlement{})
	}},
}
