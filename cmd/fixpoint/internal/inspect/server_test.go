package inspect_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

func ask(t *testing.T, h http.Handler, method, target, host string, more ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// A name that leads here by somebody else's doing is refused, and so are pages of others.
func TestWhoIsAnswered(t *testing.T) {
	h := inspect.Handler(inspect.NewSource(recording.New("x")))
	for host, status := range map[string]int{
		"127.0.0.1:8080": 200, "127.0.0.1": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:8080": 200, "[::1]": 200, "127.9.9.9:1": 200,
		"": 403, "evil.example": 403, "evil.example:8080": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example:80": 403,
		"10.0.0.1:8080": 403, "0.0.0.0:8080": 403, "[::]:80": 403, "[::1": 403, "localhost:1:2": 403, "127.1": 403,
	} {
		for _, path := range []string{"/", "/view.json", "/assets/main.js"} {
			got := ask(t, h, "GET", path, host)
			require.Equal(t, status, got.StatusCode, "%q %s", host, path)
		}
	}
	for origin, status := range map[string]int{
		"http://127.0.0.1:80": 200, "https://127.0.0.1:80": 403, "http://127.0.0.1:81": 403, "http://evil.example": 403, "null": 403, "%": 403,
	} {
		require.Equal(t, status, ask(t, h, "GET", "/view.json", "127.0.0.1:80", "Origin", origin).StatusCode, origin)
	}
}

// Nothing can be changed, kept in a cache, framed, or loaded from elsewhere.
func TestHowItIsAnswered(t *testing.T) {
	h := inspect.Handler(inspect.NewSource(recording.New("x")))
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"} {
		got := ask(t, h, method, "/view.json", "localhost")
		require.Equal(t, http.StatusMethodNotAllowed, got.StatusCode, method)
		require.Equal(t, "GET, HEAD", got.Header.Get("Allow"))
	}
	types := map[string]string{
		"/": "text/html", "/assets/main.js": "text/javascript", "/assets/tokens.css": "text/css",
		"/view.json": "application/json", "/events": "text/event-stream",
	}
	for path, kind := range types {
		for _, method := range []string{"GET", "HEAD"} {
			if path == "/events" && method == "GET" {
				continue // it has no end
			}
			got := ask(t, h, method, path, "localhost")
			require.Equal(t, http.StatusOK, got.StatusCode, path)
			require.Contains(t, got.Header.Get("Content-Type"), kind)
			require.Equal(t, inspect.ServedPolicy, got.Header.Get("Content-Security-Policy"))
			require.Equal(t, "nosniff", got.Header.Get("X-Content-Type-Options"))
			require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
			require.Empty(t, got.Header.Get("Access-Control-Allow-Origin"))
			text, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			require.Equal(t, method == "HEAD", len(text) == 0, "%s %s", method, path)
		}
	}
	for _, path := range []string{
		"/index.html", "/assets/", "/assets", "/assets/index.html", "/assets/nothing.js", "/page/main.js", "/assets/../server.go", "/assets/%2e%2e/server.go", "/x",
	} {
		require.NotEqual(t, http.StatusOK, ask(t, h, "GET", path, "localhost").StatusCode, path)
	}
}

func TestListen(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := inspect.Listen(t.Context(), addr)
		require.NoError(t, err)
		require.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback())
		_, err = inspect.Listen(t.Context(), l.Addr().String())
		require.Error(t, err)
		require.NotErrorIs(t, err, inspect.ErrAddress, "the port is taken")
		require.NoError(t, l.Close())
	}
	for _, addr := range []string{"", ":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1", "localhost.example.com:0"} {
		_, err := inspect.Listen(t.Context(), addr)
		require.ErrorIs(t, err, inspect.ErrAddress, addr)
		require.ErrorContains(t, err, "127.0.0.1:0")
	}
}

// served is a server that ends with the test, and the error that it ended with.
func served(t *testing.T, source *inspect.Source) (address string, stop func() error) {
	t.Helper()
	l, err := inspect.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- inspect.Serve(ctx, l, source) }()
	t.Cleanup(cancel)
	return "http://" + l.Addr().String(), func() error {
		cancel()
		return <-ended
	}
}

// A server that is told to end sends its pages away, and leaves nothing behind.
func TestShutdown(t *testing.T) {
	enginetest.CheckLeaks(t)
	rec := recording.New("x")
	rec.SetLive(true)
	address, stop := served(t, inspect.NewSource(rec))
	var pages []*reader
	for range 5 {
		p := newReader(t, address+"/events", "")
		p.next()
		pages = append(pages, p)
	}
	began := time.Now()
	require.NoError(t, stop())
	require.Less(t, time.Since(began), 20*time.Second)
	for _, p := range pages {
		_, ok := p.more()
		require.False(t, ok)
	}
	_, err := http.Get(address)
	require.Error(t, err)
	http.DefaultClient.CloseIdleConnections()
}

// A served page has all that it needs from where it came.
func TestPageNamesNothingOutside(t *testing.T) {
	h := inspect.Handler(inspect.NewSource(recording.New("x")))
	page, err := io.ReadAll(ask(t, h, "GET", "/", "localhost").Body)
	require.NoError(t, err)
	for _, name := range referred(string(page)) {
		require.Equal(t, http.StatusOK, ask(t, h, "HEAD", "/"+name, "localhost").StatusCode, name)
	}
	require.Contains(t, string(page), `data-events="events"`)
}

// The page as one file refers to nothing, and has the view in it whatever that says.
func TestSingleFile(t *testing.T) {
	rec := recording.New(harmful)
	play(t, 3, rec)
	view, err := json.Marshal(rec.View())
	require.NoError(t, err)
	raw, err := inspect.SingleFile(view)
	require.NoError(t, err)
	page := string(raw)
	require.Empty(t, referred(page))
	require.NotContains(t, page, "<script>alert(1)")
	_, rest, found := strings.Cut(page, `<script type="application/json" id="view">`)
	require.True(t, found)
	inside, _, _ := strings.Cut(rest, "</script>")
	require.JSONEq(t, string(view), inside)
	var back recording.View
	require.NoError(t, json.Unmarshal([]byte(inside), &back))
	require.Equal(t, harmful, back.Source)
	require.NotEmpty(t, back.Spans)
}
