package modeltest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var endTests = []test{
	{"cancelled beforehand", testCancelledBeforehand},
	{"cancelled while the service thinks", testCancelledWhileWaiting},
	{"cancelled in mid stream", testCancelledMidStream},
	{"deadline of a stalled stream", testStalledStream},
	{"stream left early", testStreamLeft},
	{"stream nobody walks", testStreamUnwalked},
}

var errCause = errors.New("the user went home")

func testCancelledBeforehand(t *testing.T, p Provider) {
	s := serve(t, p, answering(p.said("Too late.")))
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCause)
	for _, m := range modes {
		_, err := s.ask(ctx, m, p.hello())
		s.cancelled(t, err)
	}
	require.Empty(t, s.sent())
}

func (s *service) cancelled(t *testing.T, err error) *resilient.Failure {
	t.Helper()
	f := s.failed(t, err, resilient.Cancelled)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errCause, "the cause of the context's end is told")
	return f
}

func testCancelledWhileWaiting(t *testing.T, p Provider) {
	for _, m := range modes {
		came, gone := make(chan struct{}), make(chan struct{})
		s := serve(t, p, func(s *service, _ http.ResponseWriter, r *http.Request, _ Wire) {
			close(came)
			s.hang(r, gone)
		})
		ctx, cancel := context.WithCancelCause(context.Background())
		failure := make(chan error, 1)
		go func() {
			_, err := s.ask(ctx, m, p.hello())
			failure <- err
		}()
		within(t, came, "a request")
		cancel(errCause)
		select {
		case err := <-failure:
			require.False(t, s.cancelled(t, err).Partial)
		case <-time.After(patience):
			t.Fatalf("%s: the model goes on though its context ended", m.name)
		}
		within(t, gone, "the end of the connection")
	}
}

func testCancelledMidStream(t *testing.T, p Provider) {
	gone := make(chan struct{})
	s := serve(t, p, func(s *service, w http.ResponseWriter, r *http.Request, _ Wire) {
		head, _ := split(t, p.Stream(p.said("Once ", "upon")), "Once ")
		s.frames(w, head...)
		s.hang(r, gone)
	})
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	watchdog := time.AfterFunc(patience, func() { cancel(errors.New("modeltest: no text came")) })
	defer watchdog.Stop()
	r, err := inference.Collect(func(yield func(inference.Chunk, error) bool) {
		for c, err := range s.model.(inference.Streamer).Stream(ctx, p.hello()) {
			if c.Text != "" {
				cancel(errCause)
			}
			if !yield(c, err) {
				return
			}
		}
	})
	require.True(t, s.cancelled(t, err).Partial)
	require.Equal(t, "Once ", r.Message.Text)
	within(t, gone, "the end of the connection")
}

// testStalledStream lets the caller's time run out while the service says nothing more.
func testStalledStream(t *testing.T, p Provider) {
	gone := make(chan struct{})
	s := serve(t, p, func(s *service, w http.ResponseWriter, r *http.Request, _ Wire) {
		head, _ := split(t, p.Stream(p.said("Once ", "upon")), "Once ")
		s.frames(w, head...)
		s.hang(r, gone)
	})
	ctx := &expiring{Context: context.Background(), done: make(chan struct{})}
	expire := sync.OnceFunc(func() { close(ctx.done) })
	watchdog := time.AfterFunc(patience, expire)
	defer watchdog.Stop()
	var failure error
	said := ""
	for c, err := range s.model.(inference.Streamer).Stream(ctx, p.hello()) {
		if said += c.Text; c.Text != "" {
			expire()
		}
		failure = err
	}
	require.True(t, s.failed(t, failure, resilient.Transient).Partial)
	require.ErrorIs(t, failure, context.DeadlineExceeded)
	require.Equal(t, "Once ", said)
	within(t, gone, "the end of the connection")
}

// expiring is a context whose deadline passes when the test says so.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e *expiring) Done() <-chan struct{} { return e.done }

func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func testStreamLeft(t *testing.T, p Provider) {
	gone := make(chan struct{})
	s := serve(t, p, func(s *service, w http.ResponseWriter, r *http.Request, _ Wire) {
		head, _ := split(t, p.Stream(p.said("Once ", "upon")), "Once ")
		s.frames(w, head...)
		s.hang(r, gone)
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for c, err := range s.model.(inference.Streamer).Stream(ctx, p.hello()) {
		require.NoError(t, err)
		if c.Text != "" {
			break
		}
	}
	within(t, gone, "the end of the connection of a stream that was left")
	require.NoError(t, ctx.Err())
}

// testStreamUnwalked: to ask for a stream costs nothing until somebody walks it.
func testStreamUnwalked(t *testing.T, p Provider) {
	s := serve(t, p, answering(p.said("Nobody hears this.")))
	require.NotNil(t, s.model.(inference.Streamer).Stream(context.Background(), p.hello()))
	require.Empty(t, s.sent())
}
