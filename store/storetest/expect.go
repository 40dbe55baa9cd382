package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// noError stops the test at an error.
func noError(t testing.TB, err error, doing string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

// isError stops the test unless err is one of the kinds wanted.
func isError(t testing.TB, err error, doing string, kinds ...error) {
	t.Helper()
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return
		}
	}
	t.Fatalf("%s: got error %v, want one of the kind %v", doing, err, kinds)
}

// equal stops the test unless the values are equal.
func equal[T comparable](t testing.TB, want, got T, what string, args ...any) {
	t.Helper()
	if want != got {
		t.Fatalf("%s: got %v, want %v", fmt.Sprintf(what, args...), got, want)
	}
}

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// commit makes a commit whose record tells thread and base.
func commit(thread string, base uint64) store.Commit {
	return store.Commit{
		ID: newID(), Thread: thread, Base: base,
		Time:   time.Date(2030, 1, 2, 3, 4, 5, 678_901_234, time.UTC).Add(time.Duration(base) * time.Hour),
		Record: fmt.Appendf(nil, "\x01record of %s after %d", thread, base),
	}
}

// snapshotCommit is a commit with a snapshot.
func snapshotCommit(thread string, base uint64) store.Commit {
	c := commit(thread, base)
	c.Snapshot = fmt.Appendf(nil, "\x01state of %s at %d", thread, base+1)
	return c
}

// appendAll appends commits in a row and returns the last revision.
func appendAll(t testing.TB, j store.Journal, commits ...store.Commit) uint64 {
	t.Helper()
	var last uint64
	for _, c := range commits {
		revision, err := j.Append(ctxOf(t), c)
		noError(t, err, "append to %s at %d", c.Thread, c.Base)
		equal(t, c.Base+1, revision, "revision of an append to %s", c.Thread)
		last = revision
	}
	return last
}

// grow appends plain commits to a new thread.
func grow(t testing.TB, j store.Journal, thread string, n int) (commits []store.Commit) {
	t.Helper()
	for base := range n {
		commits = append(commits, commit(thread, uint64(base)))
	}
	appendAll(t, j, commits...)
	return commits
}

func load(t testing.TB, j store.Journal, thread string, atLeast uint64) store.Image {
	t.Helper()
	image, err := j.Load(ctxOf(t), thread, atLeast)
	noError(t, err, "load %s", thread)
	return image
}

// ctxOf returns a context that ends before the test binary's own deadline does.
func ctxOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// imageOf is what a load has to return after these commits, which have the
// revisions first, first+1 and so on.
func imageOf(first uint64, commits []store.Commit) store.Image {
	var image store.Image
	for i, c := range commits {
		image.Revision = first + uint64(i)
		image.LastID = c.ID
		image.Epoch = max(image.Epoch, c.Epoch)
		image.Tail = append(image.Tail, store.Record{Revision: image.Revision, ID: c.ID, Time: c.Time, Record: c.Record})
		if c.Snapshot != nil {
			image.Snapshot, image.SnapshotAt, image.Tail = c.Snapshot, image.Revision, nil
		}
	}
	return image
}

// sameImage stops the test unless two images are equal.
func sameImage(t testing.TB, want, got store.Image, what string) {
	t.Helper()
	if difference := diffImages(want, got); difference != "" {
		t.Fatalf("%s: %s", what, difference)
	}
}

func diffImages(want, got store.Image) string {
	switch {
	case want.Revision != got.Revision:
		return fmt.Sprintf("revision %d, want %d", got.Revision, want.Revision)
	case want.Epoch != got.Epoch:
		return fmt.Sprintf("epoch %d, want %d", got.Epoch, want.Epoch)
	case want.LastID != got.LastID:
		return fmt.Sprintf("last id %x, want %x", got.LastID, want.LastID)
	case want.SnapshotAt != got.SnapshotAt:
		return fmt.Sprintf("snapshot of revision %d, want %d", got.SnapshotAt, want.SnapshotAt)
	case (want.Snapshot == nil) != (got.Snapshot == nil) || !bytes.Equal(want.Snapshot, got.Snapshot):
		return fmt.Sprintf("snapshot %q, want %q", got.Snapshot, want.Snapshot)
	case len(want.Tail) != len(got.Tail):
		return fmt.Sprintf("%d records after the snapshot, want %d", len(got.Tail), len(want.Tail))
	}
	for i, w := range want.Tail {
		g := got.Tail[i]
		if w.Revision != g.Revision || w.ID != g.ID || !w.Time.Equal(g.Time) || !bytes.Equal(w.Record, g.Record) {
			return fmt.Sprintf("record %d is %+v, want %+v", i, g, w)
		}
	}
	return ""
}
