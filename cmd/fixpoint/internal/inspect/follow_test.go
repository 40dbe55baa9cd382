package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// following is a source that follows a file.
type following struct {
	t      *testing.T
	source *inspect.Source
	cancel context.CancelFunc
	ended  chan error
}

func followFile(t *testing.T, path string) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{t: t, source: inspect.NewSource(recording.New(path)), cancel: cancel, ended: make(chan error, 1)}
	caught := make(chan struct{})
	go func() { f.ended <- inspect.FollowAt(ctx, path, f.source, func() { close(caught) }, time.Millisecond) }()
	select {
	case <-caught:
	case err := <-f.ended:
		require.NoError(t, err)
	}
	t.Cleanup(cancel)
	return f
}

// until waits for the source to show something.
func (f *following) until(shown func(recording.View) bool) {
	f.t.Helper()
	for !shown(f.source.Recording().View()) {
		require.NoError(f.t, context.Cause(f.t.Context()))
		select {
		case err := <-f.ended:
			require.FailNow(f.t, "it ended", "%v", err)
		case <-time.After(time.Millisecond):
		}
	}
}

func (f *following) stop() {
	f.t.Helper()
	f.cancel()
	require.NoError(f.t, <-f.ended)
}

func over(v recording.View) bool { return len(v.Runs) == 1 && v.Runs[0].Status == "done" }

func appendTo(t *testing.T, path string, text []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = file.Write(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// shown is a view without what says where it is from.
func shown(v recording.View) recording.View {
	v.Source, v.Notes, v.Live = "", nil, false
	return v
}

func readView(t *testing.T, path string) recording.View {
	t.Helper()
	rec, err := inspect.Read(path)
	require.NoError(t, err)
	return rec.View()
}

// A trace that comes in pieces, cut anywhere, is shown as it is shown whole.
func TestFollowPieces(t *testing.T) {
	whole := written(t, 4)
	path := filepath.Join(t.TempDir(), "whole")
	appendTo(t, path, whole)
	want := readView(t, path)
	require.Empty(t, want.Notes)
	require.True(t, over(want))
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		path := filepath.Join(t.TempDir(), "pieces")
		appendTo(t, path, nil)
		f := followFile(t, path)
		for rest := whole; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(1+len(whole)/20))
			appendTo(t, path, rest[:n])
			rest = rest[n:]
			if random.IntN(3) == 0 {
				time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond) // now and then it is caught in the middle of a line
			}
		}
		f.until(over)
		equal(t, shown(want), shown(f.source.Recording().View()))
		f.stop()
	}
}

// A file that is written over is shown from its beginning, however long it is by then.
func TestFollowBegunAnew(t *testing.T) {
	first, second := written(t, 2), written(t, 5)
	path := filepath.Join(t.TempDir(), "trace")
	appendTo(t, path, first)
	f := followFile(t, path)
	f.until(over)
	require.Len(t, f.source.Recording().View().Calls, 1)
	second = bytes.Replace(second, []byte(`"agent":"actor"`), []byte(`"agent":"other"`), 1)
	require.NoError(t, os.WriteFile(path, second, 0o600))
	f.until(func(v recording.View) bool { return over(v) && len(v.Calls) == 4 })
	require.Contains(t, f.source.Recording().View().Notes, "the file was begun anew; this is what it holds now")

	// Once more, with less in it.
	require.NoError(t, os.WriteFile(path, first, 0o600))
	f.until(func(v recording.View) bool { return over(v) && len(v.Calls) == 1 })
	f.stop()
}

// A file that was moved away is gone on with in the one that took its place, and one
// with another run replaces it.
func TestFollowRotated(t *testing.T) {
	whole := written(t, 5)
	half := bytes.IndexByte(whole[len(whole)/2:], '\n') + len(whole)/2 + 1
	path := filepath.Join(t.TempDir(), "trace")
	appendTo(t, path, whole[:half])
	f := followFile(t, path)
	require.NoError(t, os.Rename(path, path+".1"))
	appendTo(t, path+".new", whole[half:])
	require.NoError(t, os.Rename(path+".new", path))
	f.until(over)
	appendTo(t, path+".whole", whole)
	equal(t, shown(readView(t, path+".whole")), shown(f.source.Recording().View()))

	appendTo(t, path+".new", written(t, 2))
	require.NoError(t, os.Rename(path+".new", path))
	f.until(func(v recording.View) bool { return over(v) && len(v.Calls) == 1 })
	require.Contains(t, f.source.Recording().View().Notes, "another file took the place of the one that was shown before")
	f.stop()
}

// Lines that are no events are told with their numbers, and the rest is read.
func TestBadLines(t *testing.T) {
	rows := strings.SplitAfter(string(written(t, 3)), "\n")
	path := filepath.Join(t.TempDir(), "trace")
	appendTo(t, path, []byte(rows[0]+"what?\n"+strings.Join(rows[1:], "")+`{"type":"run_st`))
	v := readView(t, path)
	require.True(t, over(v))
	require.Len(t, v.Calls, 2)
	notes := strings.Join(v.Notes, "\n")
	require.Contains(t, notes, "line 2:")
	require.Contains(t, notes, "ends in the middle of a line")
	require.Contains(t, notes, fmt.Sprint("line ", len(rows)+1))

	// Only so many are told.
	appendTo(t, path+"2", []byte(rows[0]+rows[1]+strings.Repeat("what?\n", 1000)))
	v = readView(t, path+"2")
	require.Less(t, len(v.Notes), 30)
	require.Contains(t, strings.Join(v.Notes, "\n"), "more lines that are no events are not told")
}

// What is no trace is refused, and what cannot be read.
func TestNoTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	appendTo(t, path, []byte("# Notes\n\nabout roses\n"))
	_, err := inspect.Read(path)
	require.ErrorIs(t, err, inspect.ErrNoTrace)
	require.ErrorContains(t, err, "line 1")
	source := inspect.NewSource(recording.New(path))
	require.ErrorIs(t, inspect.FollowAt(t.Context(), path, source, func() {}, time.Millisecond), inspect.ErrNoTrace)
	for _, path := range []string{path + ".none", t.TempDir(), os.DevNull + "/x"} {
		_, err = inspect.Read(path)
		require.Error(t, err)
		require.Error(t, inspect.FollowAt(t.Context(), path, source, func() {}, time.Millisecond))
	}
	newer := filepath.Join(t.TempDir(), "newer")
	appendTo(t, newer, []byte(`{"type":"trace","version":99}`+"\n"))
	_, err = inspect.Read(newer)
	require.ErrorContains(t, err, "update Fixpoint")
	require.ErrorContains(t, inspect.FollowAt(t.Context(), newer, source, func() {}, time.Millisecond), "update Fixpoint")

	for _, text := range []string{"", "\n \n"} {
		empty := filepath.Join(t.TempDir(), "empty")
		appendTo(t, empty, []byte(text))
		_, err = inspect.Read(empty)
		require.ErrorIs(t, err, inspect.ErrNoTrace)
		require.ErrorContains(t, err, "it is empty, and nothing was recorded in it")
		// A run may be about to begin.
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, inspect.FollowAt(ctx, empty, source, cancel, time.Millisecond))
		require.Error(t, ctx.Err(), "it was shown")
	}
	begun := filepath.Join(t.TempDir(), "begun")
	appendTo(t, begun, []byte(`{"type":"trace","version":1}`+"\n"))
	rec, err := inspect.Read(begun)
	require.NoError(t, err)
	require.Empty(t, rec.View().Runs)
}
