package trace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// watched runs an agent of three steps with the trace and returns how long that took.
func watched(t *testing.T, tr *trace.Trace) time.Duration {
	t.Helper()
	c, _ := enginetest.Config(t)
	c.Observers = append(c.Observers, tr)
	c.Model = enginetest.NewScript(enginetest.Call("c1", "look", nil), enginetest.Call("c2", "look", nil), enginetest.Say("done"))
	start := time.Now()
	require.NoError(t, run(t, c, t.Context(), engine.AgentSpec{ID: "a"}).Err)
	return time.Since(start)
}

// A writer that fails, in whatever way, hurts neither the run nor the other writers,
// and is told of.
func TestFaultyWriters(t *testing.T) {
	full := errors.New("disk full")
	for name, c := range map[string]struct {
		write writerFunc
		want  string
	}{
		"error":  {func([]byte) (int, error) { return 0, full }, "disk full"},
		"short":  {func(p []byte) (int, error) { return len(p) - 1, nil }, io.ErrShortWrite.Error()},
		"panic":  {func([]byte) (int, error) { panic("no paper") }, "the writer panicked: no paper"},
		"goexit": {func([]byte) (int, error) { runtime.Goexit(); return 0, nil }, "the writer ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			var chrome bytes.Buffer
			tr := trace.New(trace.Options{Text: c.write, Lines: c.write, Chrome: &chrome})
			watched(t, tr)
			err := tr.Close(t.Context())
			require.ErrorContains(t, err, "trace: writing text: "+c.want)
			require.ErrorContains(t, err, "trace: writing lines: "+c.want)
			require.NotContains(t, err.Error(), "chrome")
			if name == "error" {
				require.ErrorIs(t, err, full)
			}
			require.Equal(t, err.Error(), tr.Err().Error())
			checkChrome(t, chrome.Bytes())
		})
	}
}

// A writer that hangs holds nobody up. What did not fit into its buffer is counted,
// and the file is sound all the same once it goes on.
func TestBlockedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var chrome, text bytes.Buffer
		tr := trace.New(trace.Options{Text: &text, Buffer: 2000, Chrome: writerFunc(func(p []byte) (int, error) {
			<-release
			return chrome.Write(p)
		})})
		require.Less(t, watched(t, tr), time.Second, "the engine waits 10 s for an observer that is behind")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := tr.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "trace: writing chrome: the writer has not taken everything")
		close(release)
		err = tr.Close(t.Context())
		require.Regexp(t, `^trace: writing chrome: [0-9]+ pieces were dropped, the writer was too slow$`, err.Error())
		checkChrome(t, chrome.Bytes())
	})
}

// Without events, and without writers, a trace is fine too, and it leaves no goroutine.
func TestEmptyTrace(t *testing.T) {
	enginetest.CheckLeaks(t)
	tr := newTrace()
	require.NoError(t, tr.Close(t.Context()))
	require.Empty(t, checkChrome(t, tr.chrome.Bytes()))
	require.Empty(t, tr.text.String()+tr.lines.String())

	none := trace.New(trace.Options{})
	watched(t, none)
	require.NoError(t, none.Close(t.Context()))

	open := newTrace() // and is never closed
	watched(t, open.Trace)
}

// An event with JSON that is none is told of all the same, and one that cannot be
// written costs no more than itself.
func TestEventsThatAreNoJSON(t *testing.T) {
	tr := newTrace()
	tr.Observe(engine.CallEdited{After: "{"})
	tr.Observe(engine.Warning{Header: engine.Header{Time: time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)}})
	tr.Observe(engine.RunStarted{Input: "x"})
	err := tr.Close(t.Context())
	require.ErrorContains(t, err, "trace: an event is missing: ")
	require.ErrorIs(t, err, engine.ErrBadEvent)
	lines := slices.Collect(strings.Lines(tr.lines.String()))
	require.Len(t, lines, 4)
	require.Contains(t, lines[1], `"after":"{"`)
	require.Equal(t, `{"type":"dropped","count":1}`+"\n", lines[2])
	require.Contains(t, lines[3], `"input":"x"`)
}

// blocking is a writer that takes nothing until it is released.
type blocking struct {
	bytes.Buffer
	release chan struct{}
}

func (b *blocking) Write(p []byte) (int, error) {
	<-b.release
	return b.Buffer.Write(p)
}

// Lines that a slow writer did not get are counted where they are missing.
func TestDroppedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blocking{release: make(chan struct{})}
		tr := trace.New(trace.Options{Lines: w, Buffer: 3000})
		tell := func(from, to uint64) {
			for i := from; i <= to; i++ {
				tr.Observe(engine.Warning{Header: engine.Header{Seq: i}, Message: strings.Repeat("x", 1000)})
			}
			synctest.Wait()
		}
		tell(1, 1) // which the writer hangs over
		tell(2, 9)
		close(w.release)
		synctest.Wait()
		tell(10, 10)
		require.ErrorContains(t, tr.Close(t.Context()), "pieces were dropped, the writer was too slow")
		checkSeq(t, w.String(), 10, 1)
	})
}

// checkSeq holds a file with one run's events, numbered up to last, to what it says about
// those that are missing, in so many places.
func checkSeq(t *testing.T, file string, last uint64, places int) {
	t.Helper()
	next, found := uint64(1), 0
	for l, err := range trace.Read(strings.NewReader(file)) {
		require.NoError(t, err)
		switch {
		case l.Dropped > 0:
			next += uint64(l.Dropped)
			found++
		case l.Event != nil:
			require.Equal(t, next, l.Event.Head().Seq)
			next++
		}
	}
	require.Equal(t, last+1, next)
	require.Equal(t, places, found)
}

// hanging is a value whose encoding waits.
type hanging struct{ release chan struct{} }

func (h hanging) MarshalJSON() ([]byte, error) {
	<-h.release
	return []byte("1"), nil
}

// A codec of an application may hang. That holds no run up; events that find no place
// are counted where they are missing.
func TestHangingCodec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hanging{make(chan struct{})}
		key := state.NewCell("hangs", state.Options[hanging]{})
		var lines bytes.Buffer
		tr := trace.New(trace.Options{Lines: &lines, Events: 5})
		tr.Observe(engine.Committed{Header: engine.Header{Seq: 1}, Writes: []engine.Write{{Key: "hangs", Update: key.With(h)}}})
		synctest.Wait()
		for i := range uint64(9) {
			tr.Observe(engine.Warning{Header: engine.Header{Seq: i + 2}})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := tr.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "trace: events are still being encoded")
		close(h.release)
		require.EqualError(t, tr.Close(t.Context()), "trace: 4 events dropped, which came faster than they were encoded")
		checkSeq(t, lines.String(), 10, 1)
	})
}

// bad is a value whose encoding fails as it says.
type bad string

func (b bad) MarshalJSON() ([]byte, error) {
	switch b {
	case "panics":
		panic("no")
	case "ends":
		runtime.Goexit()
	case "lies":
		return []byte("{"), nil
	}
	return nil, errors.New("no")
}

// A codec that fails in another way costs its value, or its event.
func TestFaultyCodecs(t *testing.T) {
	for _, how := range []bad{"fails", "panics", "lies", "ends"} {
		key := state.NewCell("bad", state.Options[bad]{})
		good := state.NewCell("good", state.Options[int]{})
		store, err := state.NewStore(state.Config{Keys: []state.AnyKey{key, good}})
		require.NoError(t, err)
		before := store.Snapshot()
		res, err := store.Commit(state.Batch{Owner: "x", Updates: []state.Update{key.With(how), good.With(1)}})
		require.NoError(t, err)
		var lines bytes.Buffer
		tr := trace.New(trace.Options{Lines: &lines})
		tr.Observe(engine.Committed{Writes: []engine.Write{{Key: "bad", Update: key.With(how)}, {Key: "good", Update: good.With(7)}}, Before: before, After: res.Snapshot})
		tr.Observe(engine.RunStarted{Base: engine.Base{State: res.Snapshot}})
		tr.Observe(engine.Warning{Message: "last"})
		err = tr.Close(t.Context())
		if how == "ends" {
			require.ErrorContains(t, err, "what encoded it ended its goroutine")
			require.Contains(t, lines.String(), `{"type":"dropped","count":2}`)
		} else {
			require.NoError(t, err)
			require.Contains(t, lines.String(), `"key":"bad","op":"","value":{"$hidden":true}},{"plugin":"","key":"good","op":"","value":7}]`)
			require.Contains(t, lines.String(), `"changes":[{"name":"bad","scope":"run","version":0,"raw":{"$hidden":true}},`)
			require.Contains(t, lines.String(), `"base":{"revision":1,"entries":[{"name":"bad","scope":"run","version":0,"raw":{"$hidden":true}},`)
		}
		require.Contains(t, lines.String(), `"message":"last"`)
	}
}
