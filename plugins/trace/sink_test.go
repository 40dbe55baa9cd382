package trace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/trace"
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

// An event that cannot be written as a line is told of and costs no more than itself.
func TestEventThatIsNoJSON(t *testing.T) {
	tr := newTrace()
	tr.Observe(engine.CallEdited{After: "{"})
	tr.Observe(engine.RunStarted{Input: "x"})
	err := tr.Close(t.Context())
	require.ErrorContains(t, err, "trace: an event is missing: ")
	require.ErrorIs(t, err, engine.ErrBadEvent)
	require.Equal(t, 1, strings.Count(tr.lines.String(), "\n"))
}
