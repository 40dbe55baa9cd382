package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// spoil overwrites what a caller owns.
func spoil(slices ...[]byte) {
	for _, b := range slices {
		for i := range b[:cap(b)] {
			b[:cap(b)][i] = 0xee
		}
	}
}

var byteTests = []test{
	{"nothing is shared with callers", func(t *testing.T, f Fixture) {
		c := withEffects("t", 0, "mail", 1)
		first, want := c, c
		first.Record, want.Record = bytes.Clone(c.Record), bytes.Clone(c.Record)
		first.Effects = []store.Effect{{Lane: "mail", Body: bytes.Clone(c.Effects[0].Body)}}
		body := bytes.Clone(c.Effects[0].Body)
		appendAll(t, f.Journal, first)
		spoil(first.Record, first.Effects[0].Body)
		first.Effects[0].Lane = "elsewhere"
		sameImage(t, imageOf(1, []store.Commit{want}), load(t, f.Journal, "t", 0), "load after the commit was reused")

		image := load(t, f.Journal, "t", 0)
		spoil(image.Tail[0].Record)
		image.Tail = append(image.Tail[:0], store.Record{})
		sameImage(t, imageOf(1, []store.Commit{want}), load(t, f.Journal, "t", 0), "load after the image was changed")

		if _, ok := f.Journal.(store.Outbox); ok {
			for range 2 {
				claimed := claimOne(t, f.Journal, "mail", 0)
				equal(t, string(body), string(claimed.Effect.Body), "body")
				spoil(claimed.Effect.Body)
				f.wait(time.Millisecond)
			}
		}

		s := snapshotCommit("t", 1)
		state := bytes.Clone(s.Snapshot)
		appendAll(t, f.Journal, s)
		spoil(s.Snapshot)
		spoil(load(t, f.Journal, "t", 0).Snapshot)
		equal(t, string(state), string(load(t, f.Journal, "t", 0).Snapshot), "snapshot")
	}},
	{"every byte comes back", func(t *testing.T, f Fixture) {
		var commits []store.Commit
		for i, size := range []int{0, 1, 255, 256, 4095, 4096, 4097, 70_000, 300_000} {
			c := commit("t", uint64(i))
			c.Record = make([]byte, size)
			for at := range c.Record {
				c.Record[at] = byte(at * 7)
			}
			if limit := f.Journal.Caps().MaxBytes; limit > 0 && size > limit {
				break
			}
			commits = append(commits, c)
		}
		appendAll(t, f.Journal, commits...)
		sameImage(t, imageOf(1, commits), load(t, f.Journal, "t", 0), "load")
		last := snapshotCommit("t", uint64(len(commits)))
		last.Snapshot = commits[len(commits)-1].Record
		appendAll(t, f.Journal, last)
		sameImage(t, imageOf(1, append(commits, last)), load(t, f.Journal, "t", 0), "load of the snapshot")
	}},
}

var sizeTests = []test{
	{"up to the limit and beyond", func(t *testing.T, f Fixture) {
		limit := f.Journal.Caps().MaxBytes
		if limit > 1<<24 {
			t.Logf("a limit of %d bytes is not tried", limit)
			return
		}
		_, outbox := f.Journal.(store.Outbox)
		large := make([]byte, limit+1)
		for name, c := range map[string]store.Commit{
			"record":   {Record: large},
			"snapshot": {Record: []byte{1}, Snapshot: large},
			"effect":   {Record: []byte{1}, Effects: []store.Effect{{Lane: "x", Body: large}}},
		} {
			if name == "effect" && !outbox {
				continue
			}
			c.ID, c.Thread = newID(), "t"
			_, err := f.Journal.Append(t.Context(), c)
			isError(t, err, name+" beyond the limit", store.ErrTooLarge)
		}
		equal(t, 0, load(t, f.Journal, "t", 0).Revision, "revision after refusals")
		c := commit("t", 0)
		c.Record, c.Snapshot = large[:limit], large[:limit]
		if outbox {
			c.Effects = []store.Effect{{Lane: "x", Body: large[:limit]}, {Lane: "x", Body: []byte("small")}}
		}
		appendAll(t, f.Journal, c)
		sameImage(t, imageOf(1, []store.Commit{c}), load(t, f.Journal, "t", 0), "load")
		appendAll(t, f.Journal, c) // a repeat of what is large
		if outbox {
			claims := claim(t, f.Journal, "x", 2, time.Hour)
			equal(t, "t/1/0 t/1/1", keys(claims), "claims")
			equal(t, true, bytes.Equal(claims[0].Effect.Body, large[:limit]), "the body of the large effect comes back")
		}
	}},
}

var closeTests = []test{
	{"a closed store says so", func(t *testing.T, f Fixture) {
		j := f.Journal
		appendAll(t, j, withEffects("t", 0, "mail", 1))
		var lease store.Lease
		leaser, leases := j.(store.Leaser)
		if leases {
			var err error
			lease, err = leaser.Acquire(t.Context(), "t", "ann", time.Hour)
			noError(t, err, "acquire")
		}
		outbox, ok := j.(store.Outbox)
		var claimed store.Claim
		if ok {
			claimed = claimOne(t, j, "mail", time.Hour)
		}
		noError(t, j.Close(), "close")

		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		calls := map[string]func() error{
			"append":  func() error { _, err := j.Append(ctx, commit("t", 1)); return err },
			"load":    func() error { _, err := j.Load(ctx, "t", 0); return err },
			"wait":    func() error { _, err := j.Load(ctx, "t", 100); return err },
			"threads": func() error { _, err := j.Threads(ctx, "", 1); return err },
			"prune":   func() error { return j.Prune(ctx, "t", store.PrunePolicy{KeepSnapshots: 1}) },
			"delete":  func() error { return j.Delete(ctx, "t") },
		}
		if leases {
			calls["acquire"] = func() error { _, err := leaser.Acquire(ctx, "t", "ann", time.Hour); return err }
			calls["renew"] = func() error { _, err := leaser.Renew(ctx, lease, time.Hour); return err }
			calls["release"] = func() error { return leaser.Release(ctx, lease) }
		}
		if ok {
			calls["claim"] = func() error { _, err := outbox.Claim(ctx, "mail", "w", 1, time.Hour); return err }
			calls["settle"] = func() error { return outbox.Settle(ctx, claimed, store.Settlement{}) }
		}
		if queue, ok := j.(store.Queue); ok {
			calls["lanes"] = func() error { _, err := queue.Lanes(ctx, ""); return err }
			calls["depth"] = func() error { _, err := queue.Depth(ctx, "mail"); return err }
			calls["dead"] = func() error { _, err := queue.Dead(ctx, "mail", 1); return err }
			calls["requeue"] = func() error { return queue.Requeue(ctx, claimed.Ref) }
		}
		for name, call := range calls {
			isError(t, call(), name+" after close", store.ErrClosed)
		}
		if err := j.Close(); err != nil {
			isError(t, err, "second close", store.ErrClosed)
		}
	}},
	{"close with calls under way", func(t *testing.T, f Fixture) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		failed := make(chan error, 3)
		started := make(chan struct{}, 1)
		go func() {
			_, err := f.Journal.Load(ctx, "t", 1<<40)
			failed <- err
		}()
		for n := range 2 {
			go func() {
				thread := fmt.Sprint("writer ", n)
				for base := uint64(0); ; base++ {
					if _, err := f.Journal.Append(ctx, commit(thread, base)); err != nil {
						failed <- err
						return
					}
					select {
					case started <- struct{}{}:
					default:
					}
				}
			}()
		}
		select {
		case <-started:
		case err := <-failed:
			t.Fatalf("a call ended before the close: %v", err)
		}
		noError(t, f.Journal.Close(), "close")
		for range cap(failed) {
			err := <-failed
			if !errors.Is(err, store.ErrClosed) {
				t.Fatalf("a call under way ended with %v", err)
			}
		}
	}},
}
