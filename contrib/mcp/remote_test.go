package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
)

// listen serves over streamable HTTP for the time of the test, and lets wrap see every
// request.
func listen(t *testing.T, s *sdk.Server, wrap func(http.ResponseWriter, *http.Request, http.Handler)) *httptest.Server {
	t.Helper()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wrap == nil {
			h.ServeHTTP(w, r)
			return
		}
		wrap(w, r, h)
	}))
	t.Cleanup(server.Close)
	return server
}

// Servers over HTTP: calls, questions and cancellations work, each connection has a
// session of its own that is ended at Close, and headers go with every request.
func TestRemote(t *testing.T) {
	enginetest.CheckLeaks(t)
	s := newAsker(legacy)
	began, told := make(chan struct{}), make(chan struct{})
	add(s.Server, "hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		close(told)
		return nil, ctx.Err()
	})
	var mu sync.Mutex
	sessions, ended, bare := map[string]bool{}, 0, 0
	server := listen(t, s.Server, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		if id := r.Header.Get("Mcp-Session-Id"); id != "" {
			sessions[id] = true
		}
		if r.Method == http.MethodDelete {
			ended++
		}
		if r.Header.Get("X-Key") != "hunter2" {
			bare++
		}
		mu.Unlock()
		next.ServeHTTP(w, r)
	})
	servers, err := mcp.Connect(t.Context(), mcp.Options{Servers: []mcp.Server{
		{Name: "shop", URL: server.URL, Elicit: true, Header: http.Header{"X-Key": {"hunter2"}}},
		{Name: "slow", URL: server.URL, Header: http.Header{"X-Key": {"hunter2"}}},
	}})
	require.NoError(t, err)
	require.Equal(t, "here", one(t, servers.Shared(), "shop__echo", nil).Content)
	w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "shop__order", nil), enginetest.Say("done"))
	res := w.run(t)
	for len(res.Tickets) > 0 {
		res = w.resume(t, yes(res.Tickets[0], value(res.Tickets[0])))
	}
	require.Equal(t, "order: map[name:Ada] map[size:3]", w.results()[0].Content)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() { <-began; cancel(errTest) }()
	w = newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "slow__hang", nil), enginetest.Say("done"))
	w.ctx = ctx
	require.ErrorIs(t, w.run(t).Err, errTest)
	<-told
	require.NoError(t, servers.Close(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, sessions, 2)
	require.Equal(t, 2, ended)
	require.Zero(t, bare)
}

// A server that forgot the session, as after its restart, ends the call; the next one
// begins a new session.
func TestLostSession(t *testing.T) {
	enginetest.CheckLeaks(t)
	s := newServer(legacy)
	var calls atomic.Int32
	add(s, "echo", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls.Add(1)
		return say("here"), nil
	})
	var forget atomic.Value
	forget.Store("")
	var last atomic.Value
	server := listen(t, s, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		id := r.Header.Get("Mcp-Session-Id")
		if id != "" && id == forget.Load() {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		if id != "" {
			last.Store(id)
		}
		next.ServeHTTP(w, r)
	})
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", URL: server.URL}}})
	require.Equal(t, "here", one(t, servers.Shared(), "s__echo", nil).Content)
	forget.Store(last.Load())
	res := one(t, servers.Shared(), "s__echo", nil)
	require.True(t, res.IsError)
	require.Contains(t, res.Content, mcp.ErrLost.Error())
	require.Equal(t, "here", one(t, servers.Shared(), "s__echo", nil).Content)
	require.EqualValues(t, 2, calls.Load())
}

// A connection that breaks in the middle of a call is taken up again where it broke: the
// call is made once and its result arrives.
func TestBrokenConnection(t *testing.T) {
	enginetest.CheckLeaks(t)
	s := newServer(legacy)
	var calls atomic.Int32
	var server *httptest.Server
	add(s, "slow", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls.Add(1)
		if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "half"}); err != nil {
			return nil, err
		}
		return say("whole"), nil
	})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil)})
	var resumed atomic.Int32
	var broken atomic.Bool
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-Id") != "" {
			resumed.Add(1)
		}
		h.ServeHTTP(&breaking{w, server.CloseClientConnections, &broken}, r)
	}))
	t.Cleanup(server.Close)
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", URL: server.URL}}})
	require.Equal(t, "whole", one(t, servers.Shared(), "s__slow", nil).Content)
	require.EqualValues(t, 1, calls.Load())
	require.Positive(t, resumed.Load())
}

// breaking breaks all connections instead of sending the result, the first time.
type breaking struct {
	http.ResponseWriter
	cut    func()
	broken *atomic.Bool
}

func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *breaking) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "whole") && !b.broken.Swap(true) {
		b.cut()
		return 0, io.ErrClosedPipe
	}
	return b.ResponseWriter.Write(p)
}

// A secret goes to no other host, and an answer without end is cut off.
func TestHostileRemote(t *testing.T) {
	enginetest.CheckLeaks(t)
	var got atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer thief.Close()
	for name, h := range map[string]http.HandlerFunc{
		"redirects to another host": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		},
		"longer than Limits.Message": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for {
				if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
					return
				}
			}
		},
		"Unauthorized": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) },
	} {
		server := httptest.NewServer(h)
		_, err := mcp.Connect(t.Context(), mcp.Options{Servers: []mcp.Server{{Name: "s", URL: server.URL, Header: http.Header{"Authorization": {"hunter2"}}}}, Limits: mcp.Limits{Message: 1 << 20}})
		server.Close()
		require.ErrorIs(t, err, mcp.ErrDown)
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.Zero(t, got.Load())
}

// Many calls at once over one session each get their own answer.
func TestConcurrentCalls(t *testing.T) {
	s := newServer()
	add(s, "echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return say(string(r.Params.Arguments)), nil
	})
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", URL: listen(t, s, nil).URL}}})
	var all enginetest.Answer
	for i := range 50 {
		all = all.And(enginetest.Call(fmt.Sprint("c", i), "s__echo", map[string]int{"n": i}))
	}
	w := newWorld(t, servers.Shared(), nil, all, enginetest.Say("done"))
	w.spec.ToolExecution = engine.ToolsParallel
	require.NoError(t, w.run(t).Err)
	require.Len(t, w.results(), 50)
	for _, r := range w.results() {
		require.Equal(t, fmt.Sprintf(`{"n":%s}`, r.CallID[1:]), r.Content)
	}
}
