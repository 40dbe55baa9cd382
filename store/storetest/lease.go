package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

var leaseTests = []test{
	{"acquire is a commit", func(t *testing.T, f Fixture) {
		leaser, long := f.Journal.(store.Leaser), time.Hour
		commits := grow(t, f.Journal, "t", 2)
		lease, err := leaser.Acquire(t.Context(), "t", "ann", long)
		noError(t, err, "acquire")
		equal(t, "t/ann/3", fmt.Sprintf("%s/%s/%d", lease.Thread, lease.Owner, lease.Epoch), "lease")
		if !lease.Until.After(time.Time{}) {
			t.Fatalf("the lease runs until %s", lease.Until)
		}
		image := load(t, f.Journal, "t", lease.Epoch)
		equal(t, 3, image.Revision, "revision")
		equal(t, 3, image.Epoch, "epoch")
		if last := image.Tail[2]; len(last.Record) != 0 || last.ID != image.LastID || last.ID == [16]byte{} {
			t.Fatalf("the lease commit is %+v", last)
		}
		_, err = f.Journal.Append(t.Context(), commit("t", 2))
		isError(t, err, "append of one who does not know of the lease", store.ErrConflict, store.ErrFenced)
		appendAll(t, f.Journal, commits[1]) // a repeat is still a repeat

		c := commit("t", 3)
		c.Epoch = lease.Epoch
		appendAll(t, f.Journal, c)
		equal(t, 3, load(t, f.Journal, "t", 0).Epoch, "epoch after an append")
	}},
	{"acquire of a new thread", func(t *testing.T, f Fixture) {
		lease, err := f.Journal.(store.Leaser).Acquire(t.Context(), "t", "ann", time.Hour)
		noError(t, err, "acquire")
		equal(t, 1, lease.Epoch, "epoch")
		c := commit("t", 1)
		c.Epoch = 1
		appendAll(t, f.Journal, c)
		page, err := f.Journal.Threads(t.Context(), "", 2)
		noError(t, err, "threads")
		equal(t, "[t]", fmt.Sprint(page), "threads")
	}},
	{"held, taken again by its owner, released", func(t *testing.T, f Fixture) {
		leaser := f.Journal.(store.Leaser)
		first, err := leaser.Acquire(t.Context(), "t", "ann", time.Hour)
		noError(t, err, "acquire")
		_, err = leaser.Acquire(t.Context(), "t", "bob", time.Hour)
		isError(t, err, "acquire of a lease that is held", store.ErrLeaseHeld)
		var held *store.LeaseHeld
		if !errors.As(err, &held) || held.Thread != "t" || held.Owner != "ann" || !held.Until.Equal(first.Until) {
			t.Fatalf("the error holds %+v, the lease is %+v", held, first)
		}
		equal(t, 1, load(t, f.Journal, "t", 0).Revision, "revision after a refusal")

		second, err := leaser.Acquire(t.Context(), "t", "ann", time.Hour)
		noError(t, err, "acquire again")
		equal(t, 2, second.Epoch, "epoch of the second lease")
		_, err = leaser.Renew(t.Context(), first, time.Hour)
		isError(t, err, "renew of the first lease", store.ErrFenced)
		isError(t, leaser.Release(t.Context(), first), "release of the first lease", store.ErrFenced)

		noError(t, leaser.Release(t.Context(), second), "release")
		equal(t, 2, load(t, f.Journal, "t", 2).Epoch, "epoch after a release")
		_, err = f.Journal.Append(t.Context(), commit("t", 2))
		isError(t, err, "append without an epoch after a release", store.ErrFenced)
		_, err = leaser.Renew(t.Context(), second, time.Hour)
		isError(t, err, "renew of a lease that was released", store.ErrFenced)
		third, err := leaser.Acquire(t.Context(), "t", "bob", time.Hour)
		noError(t, err, "acquire of a lease that was released")
		equal(t, 3, third.Epoch, "epoch of the third lease")
		isError(t, leaser.Release(t.Context(), second), "release after a takeover", store.ErrFenced)
	}},
	{"expiry and takeover", func(t *testing.T, f Fixture) {
		leaser := f.Journal.(store.Leaser)
		long, short := f.ttl()
		old, err := leaser.Acquire(t.Context(), "t", "ann", short)
		noError(t, err, "acquire")
		f.wait(short)
		renewed, err := leaser.Renew(t.Context(), old, short) // nobody took over
		noError(t, err, "renew after the end")
		if !renewed.Until.After(old.Until) || renewed.Epoch != old.Epoch {
			t.Fatalf("renewed %+v to %+v", old, renewed)
		}
		equal(t, 1, load(t, f.Journal, "t", 0).Revision, "revision after a renewal")
		f.wait(short)
		next, err := leaser.Acquire(t.Context(), "t", "bob", long)
		noError(t, err, "takeover")
		equal(t, 2, next.Epoch, "epoch of the takeover")

		for _, base := range []uint64{1, 2} { // with the revision it knows, and with the right one
			zombie := commit("t", base)
			zombie.Epoch = old.Epoch
			_, err = f.Journal.Append(t.Context(), zombie)
			if base == 2 {
				isError(t, err, "append of the former owner at the right revision", store.ErrFenced)
			}
			isError(t, err, "append of the former owner", store.ErrFenced, store.ErrConflict)
		}
		_, err = f.Journal.Append(t.Context(), commit("t", 2))
		isError(t, err, "append without an epoch", store.ErrFenced)
		_, err = leaser.Renew(t.Context(), renewed, long)
		isError(t, err, "renew after a takeover", store.ErrFenced)
		isError(t, leaser.Release(t.Context(), renewed), "release after a takeover", store.ErrFenced)
		c := commit("t", 2)
		c.Epoch = next.Epoch
		appendAll(t, f.Journal, c)
	}},
	{"a renewal holds", func(t *testing.T, f Fixture) {
		leaser := f.Journal.(store.Leaser)
		long, short := f.ttl()
		lease, err := leaser.Acquire(t.Context(), "t", "ann", short)
		noError(t, err, "acquire")
		renewed, err := leaser.Renew(t.Context(), lease, long)
		noError(t, err, "renew")
		f.wait(2 * short)
		_, err = leaser.Acquire(t.Context(), "t", "bob", long)
		var held *store.LeaseHeld
		if !errors.As(err, &held) || !held.Until.Equal(renewed.Until) {
			t.Fatalf("acquire of a lease that was renewed until %s: %v", renewed.Until, err)
		}
		_, err = leaser.Renew(t.Context(), renewed, short) // a renewal may also cut it short
		noError(t, err, "renew once more")
		f.wait(2 * short)
		next, err := leaser.Acquire(t.Context(), "t", "bob", long)
		noError(t, err, "acquire after the end of the second renewal")
		equal(t, 2, next.Epoch, "epoch of the takeover")
	}},
	{"many want it, one gets it", func(t *testing.T, f Fixture) {
		leaser := f.Journal.(store.Leaser)
		leases := make([]store.Lease, 16)
		failures := make([]error, len(leases))
		var group sync.WaitGroup
		for n := range leases {
			group.Go(func() {
				leases[n], failures[n] = leaser.Acquire(ctxOf(t), "t", fmt.Sprintf("owner %d", n), time.Hour)
			})
		}
		group.Wait()
		winners := 0
		for n, err := range failures {
			if err == nil {
				winners++
				equal(t, 1, leases[n].Epoch, "epoch of the winner")
				continue
			}
			isError(t, err, "acquire of a loser", store.ErrLeaseHeld)
		}
		equal(t, 1, winners, "winners")
	}},
	{"owners that take over from each other", func(t *testing.T, f Fixture) {
		// Every owner believes its lease to be good for ever. No two commits may
		// stand on one revision, and none may carry an epoch that was over.
		leaser := f.Journal.(store.Leaser)
		ctx := ctxOf(t)
		failures := make([]error, 6)
		var group sync.WaitGroup
		for n := range failures {
			group.Go(func() { failures[n] = takeTurns(t, leaser, f.Journal, fmt.Sprintf("owner %d", n)) })
		}
		group.Wait()
		noError(t, errors.Join(failures...), "owners")
		image, err := f.Journal.Load(ctx, "t", 0)
		noError(t, err, "load")
		inEpochs(t, image)
	}},
}

// inEpochs stops the test unless every record tells the epoch that it stands in.
func inEpochs(t *testing.T, image store.Image) {
	t.Helper()
	noError(t, checkChain(image), "chain")
	epoch := uint64(0)
	for _, r := range image.Tail {
		if len(r.Record) == 0 {
			epoch = r.Revision
			continue
		}
		var of uint64
		_, err := fmt.Sscanf(string(r.Record), "epoch %d", &of)
		noError(t, err, "record %q", r.Record)
		equal(t, epoch, of, "epoch of the commit at revision %d", r.Revision)
	}
}

// takeTurns acquires leases that are over at once and appends under each until it is
// fenced off.
func takeTurns(t *testing.T, leaser store.Leaser, j store.Journal, owner string) error {
	for range 5 {
		lease, err := leaser.Acquire(ctxOf(t), "t", owner, 0)
		if errors.Is(err, store.ErrLeaseHeld) {
			continue // its clock was read a little earlier than that of the holder
		}
		if err != nil {
			return err
		}
		for base := lease.Epoch; base < lease.Epoch+5; base++ {
			c := commit("t", base)
			c.Epoch = lease.Epoch
			c.Record = fmt.Appendf(nil, "epoch %d", lease.Epoch)
			_, err := j.Append(ctxOf(t), c)
			if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
