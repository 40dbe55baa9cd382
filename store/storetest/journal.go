package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

var journalTests = []test{
	{"a thread that was never written", func(t *testing.T, f Fixture) {
		sameImage(t, store.Image{}, load(t, f.Journal, "nobody", 0), "load")
	}},
	{"append and load", func(t *testing.T, f Fixture) {
		commits := grow(t, f.Journal, "t", 5)
		grow(t, f.Journal, "t2", 2)
		sameImage(t, imageOf(1, commits), load(t, f.Journal, "t", 0), "load")
		sameImage(t, imageOf(1, commits), load(t, f.Journal, "t", 5), "load of at least the newest")
	}},
	{"a snapshot ends the tail", func(t *testing.T, f Fixture) {
		commits := []store.Commit{commit("t", 0), snapshotCommit("t", 1), commit("t", 2), snapshotCommit("t", 3), commit("t", 4)}
		for i := range commits {
			appendAll(t, f.Journal, commits[i])
			sameImage(t, imageOf(1, commits[:i+1]), load(t, f.Journal, "t", 0), "load")
		}
	}},
	{"empty records and snapshots", func(t *testing.T, f Fixture) {
		empty := commit("t", 0)
		empty.Record = nil
		bare := commit("t", 1)
		bare.Record, bare.Snapshot, bare.Time = []byte{}, []byte{}, time.Time{}
		last := commit("t", 2)
		last.Time = time.Time{}
		appendAll(t, f.Journal, empty)
		sameImage(t, imageOf(1, []store.Commit{empty}), load(t, f.Journal, "t", 0), "load")
		appendAll(t, f.Journal, bare, last)
		sameImage(t, imageOf(1, []store.Commit{empty, bare, last}), load(t, f.Journal, "t", 0), "load")
	}},
	{"conflict", func(t *testing.T, f Fixture) {
		commits := grow(t, f.Journal, "t", 3)
		for _, base := range []uint64{0, 1, 2, 4, 1 << 40, 1<<64 - 1} {
			_, err := f.Journal.Append(t.Context(), commit("t", base))
			isError(t, err, "append at another revision", store.ErrConflict)
			var conflict *store.Conflict
			if !errors.As(err, &conflict) {
				t.Fatalf("%v holds no *JournalConflict", err)
			}
			equal(t, store.Conflict{Thread: "t", Base: base, Have: 3}, *conflict, "conflict")
		}
		_, err := f.Journal.Append(t.Context(), commit("new", 1))
		isError(t, err, "append to a thread that is not there", store.ErrConflict)
		sameImage(t, store.Image{}, load(t, f.Journal, "new", 0), "load of the thread that is not there")
		sameImage(t, imageOf(1, commits), load(t, f.Journal, "t", 0), "load after conflicts")
	}},
	{"a repeat gives the same answer", func(t *testing.T, f Fixture) {
		commits := grow(t, f.Journal, "t", 4)
		for range 2 {
			for _, c := range commits { // old ones are stale writers that arrive twice
				appendAll(t, f.Journal, c)
			}
		}
		changed := commits[3]
		changed.Record, changed.Snapshot = []byte("other"), []byte("other")
		appendAll(t, f.Journal, changed)
		sameImage(t, imageOf(1, commits), load(t, f.Journal, "t", 0), "load after repeats")
	}},
	{"an id counts only at its own revision", func(t *testing.T, f Fixture) {
		commits := grow(t, f.Journal, "t", 2)
		again := commits[0]
		again.Base = 1
		_, err := f.Journal.Append(t.Context(), again)
		isError(t, err, "the id of revision 1 at base 1", store.ErrConflict)
		elsewhere := commits[0]
		elsewhere.Thread = "u"
		appendAll(t, f.Journal, elsewhere)
		equal(t, 1, load(t, f.Journal, "u", 0).Revision, "revision of the other thread")
	}},
	{"commits without an id are never repeats", func(t *testing.T, f Fixture) {
		c := commit("t", 0)
		c.ID = [16]byte{}
		appendAll(t, f.Journal, c)
		_, err := f.Journal.Append(t.Context(), c)
		isError(t, err, "second commit without an id", store.ErrConflict)
	}},
	{"load waits for a revision", func(t *testing.T, f Fixture) {
		grow(t, f.Journal, "t", 1)
		arrived := waiter(t, f.Journal, "t", 3)
		appendAll(t, f.Journal, commit("t", 1), commit("t", 2))
		arrived()
		for base := uint64(3); base < 6; base++ {
			arrived = waiter(t, f.Journal, "t", base+1)
			<-time.After(10 * time.Millisecond) // most likely it waits by then
			appendAll(t, f.Journal, commit("t", base))
			arrived()
		}
		arrived = waiter(t, f.Journal, "new", 1)
		<-time.After(10 * time.Millisecond)
		appendAll(t, f.Journal, commit("new", 0))
		arrived()
		leaser, ok := f.Journal.(store.Leaser)
		if !ok {
			return
		}
		arrived = waiter(t, f.Journal, "new", 2)
		<-time.After(10 * time.Millisecond)
		_, err := leaser.Acquire(t.Context(), "new", "ann", time.Hour)
		noError(t, err, "acquire")
		arrived()
	}},
	{"load gives up with its context", func(t *testing.T, f Fixture) {
		grow(t, f.Journal, "t", 1)
		for _, thread := range []string{"t", "nobody"} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err := f.Journal.Load(ctx, thread, 2)
			cancel()
			isError(t, err, "load of what does not come", store.ErrBehind)
		}
	}},
	{"a context that has ended", func(t *testing.T, f Fixture) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := commit("t", 0)
		_, err := f.Journal.Append(ctx, c)
		isError(t, err, "append", context.Canceled, store.ErrUnknownOutcome)
		if !errors.Is(err, store.ErrUnknownOutcome) {
			equal(t, 0, load(t, f.Journal, "t", 0).Revision, "revision after an append that did nothing")
		}
		appendAll(t, f.Journal, c)
	}},
	{"threads in pages", func(t *testing.T, f Fixture) {
		ids := []string{"b", "a", "a/b", "a\x00", "a\x00b", "ab", "ü", "z z", "Z", "\xff\xfe", "10", "9"}
		for i := range 30 {
			ids = append(ids, fmt.Sprintf("thread-%02d", i*7%30))
		}
		for _, id := range ids {
			appendAll(t, f.Journal, commit(id, 0))
		}
		slices.Sort(ids)
		for _, size := range []int{1, 5, len(ids), 1000} {
			var got []string
			after := ""
			for {
				page, err := f.Journal.Threads(t.Context(), after, size)
				noError(t, err, "threads after %q", after)
				if len(page) == 0 {
					break
				}
				if len(page) > size {
					t.Fatalf("a page of %d has %d threads", size, len(page))
				}
				got = append(got, page...)
				after = page[len(page)-1]
			}
			if !slices.Equal(ids, got) {
				t.Fatalf("pages of %d: got %q, want %q", size, got, ids)
			}
		}
		page, err := f.Journal.Threads(t.Context(), "thread-05x", 2)
		noError(t, err, "threads after an id that is not there")
		equal(t, "[thread-06 thread-07]", fmt.Sprint(page), "page")
	}},
	{"delete", func(t *testing.T, f Fixture) {
		grow(t, f.Journal, "t", 3)
		appendAll(t, f.Journal, snapshotCommit("t", 3))
		kept := grow(t, f.Journal, "t2", 2)
		for range 2 {
			noError(t, f.Journal.Delete(t.Context(), "t"), "delete")
		}
		page, err := f.Journal.Threads(t.Context(), "", 10)
		noError(t, err, "threads")
		equal(t, "[t2]", fmt.Sprint(page), "threads left")
		sameImage(t, store.Image{}, load(t, f.Journal, "t", 0), "load of a deleted thread")
		sameImage(t, imageOf(1, kept), load(t, f.Journal, "t2", 0), "load of another thread")
		fresh := grow(t, f.Journal, "t", 1)
		sameImage(t, imageOf(1, fresh), load(t, f.Journal, "t", 0), "load of the thread made anew")
	}},
}

// waiter loads a thread at a revision that is to come. What it returns waits for that.
func waiter(t *testing.T, j store.Journal, thread string, atLeast uint64) (arrived func()) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	loaded := make(chan error, 1)
	go func() {
		defer cancel()
		image, err := j.Load(ctx, thread, atLeast)
		if err == nil && image.Revision < atLeast {
			err = fmt.Errorf("it returned revision %d", image.Revision)
		}
		loaded <- err
	}()
	return func() {
		t.Helper()
		noError(t, <-loaded, "load of at least %d of %s", atLeast, thread)
	}
}
