package modeltest

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

// patience is how long anything may take that ought to happen at once.
var patience = 20 * time.Second

// Key is the key that models are made with.
const Key = "modeltest-not-a-real-key-5e1f"

// service is a local server and a model that talks to it. At the end of the test it makes sure that no connection and
// no goroutine is left.
type service struct {
	t        testing.TB
	provider Provider
	model    inference.Model
	url      string
	stop     chan struct{}

	mu       sync.Mutex
	wires    []Wire
	open     map[net.Conn]bool
	warnings []error
}

// serve starts a service, which answers requests as script says.
func serve(t testing.TB, p Provider, script func(s *service, w http.ResponseWriter, r *http.Request, wire Wire)) *service {
	t.Helper()
	s := &service{t: t, provider: p, stop: make(chan struct{}), open: map[net.Conn]bool{}}
	before := goroutines()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		wire := Wire{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body}
		s.mu.Lock()
		s.wires = append(s.wires, wire)
		s.mu.Unlock()
		script(s, w, r, wire)
	}))
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch state {
		case http.StateNew:
			s.open[c] = true
		case http.StateClosed, http.StateHijacked:
			delete(s.open, c)
		case http.StateActive, http.StateIdle: // still open
		}
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	var logged lockedBuffer
	was := log.Writer()
	log.SetOutput(&logged)
	s.url = server.URL
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(func() {
		close(s.stop)
		transport.CloseIdleConnections()
		if n := settle(func() int {
			transport.CloseIdleConnections() // one that just became idle
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.open)
		}); n > 0 {
			t.Errorf("modeltest: %d connections are left open; is the body of each answer closed?", n)
		}
		server.CloseClientConnections()
		server.Close()
		log.SetOutput(was)
		if text := logged.String(); text != "" {
			t.Errorf("modeltest: the adapter, or its SDK, writes to the standard log: %s", text)
		}
		var left []string
		if n := settle(func() int {
			left = left[:0]
			for id, stack := range goroutines() {
				if before[id] == "" {
					left = append(left, stack)
				}
			}
			return len(left)
		}); n > 0 {
			t.Errorf("modeltest: %d goroutines are left:\n%s", n, strings.Join(left, "\n\n"))
		}
	})
	s.model = p.New(t, Setup{BaseURL: s.url, Client: &http.Client{Transport: transport}, Key: Key, Warn: func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.warnings = append(s.warnings, err)
	}})
	require.NotNil(t, s.model, "Provider.New returned no model")
	require.Implements(t, (*inference.Streamer)(nil), s.model)
	return s
}

// lockedBuffer is a buffer that many may write to.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// settle waits until count is 0 and returns what it is at last.
func settle(count func() int) int {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		n := count()
		if n == 0 || time.Now().After(end) {
			return n
		}
	}
}

// goroutines returns the stacks of all goroutines but those that run tests, by their ids.
func goroutines() map[string]string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	out := map[string]string{}
	for i, stack := range strings.Split(string(buf), "\n\n") {
		if i == 0 || strings.Contains(stack, "testing.tRunner(") || strings.Contains(stack, "os/signal.loop") {
			continue
		}
		id, _, _ := strings.Cut(stack, " [")
		out[id] = stack
	}
	return out
}

// answering is a script that gives the same answer to everybody.
func answering(a Answer) func(*service, http.ResponseWriter, *http.Request, Wire) {
	return func(s *service, w http.ResponseWriter, _ *http.Request, wire Wire) { s.answer(w, wire, a) }
}

// replying is a script that replies the same to everybody.
func replying(r Reply) func(*service, http.ResponseWriter, *http.Request, Wire) {
	return func(_ *service, w http.ResponseWriter, _ *http.Request, _ Wire) { reply(w, r) }
}

func (s *service) answer(w http.ResponseWriter, wire Wire, a Answer) {
	if s.provider.Streams(wire) {
		s.frames(w, s.provider.Stream(a)...)
		return
	}
	reply(w, s.provider.Whole(a))
}

// frames sends frames, each as soon as it is written.
func (s *service) frames(w http.ResponseWriter, frames ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, frame := range frames {
		if _, err := io.WriteString(w, frame); err != nil {
			return // the client is gone
		}
		w.(http.Flusher).Flush()
	}
}

func reply(w http.ResponseWriter, r Reply) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	if r.Status != 0 {
		w.WriteHeader(r.Status)
	}
	_, _ = io.WriteString(w, r.Body)
}

// hang waits until the client is gone, and tells that by closing gone. A client that stays is sent away.
func (s *service) hang(r *http.Request, gone chan<- struct{}) {
	select {
	case <-r.Context().Done():
		close(gone)
	case <-time.After(patience):
		s.t.Errorf("modeltest: the client keeps the connection open, %v on", patience)
	case <-s.stop:
	}
}

// sent returns the requests that came.
func (s *service) sent() []Wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wires
}

// mode is one of the two ways to ask.
type mode struct {
	name   string
	stream bool
}

var modes = []mode{{"whole", false}, {"stream", true}}

// ask asks in the given mode.
func (s *service) ask(ctx context.Context, m mode, r inference.Request) (inference.Response, error) {
	if m.stream {
		return inference.Collect(s.model.(inference.Streamer).Stream(ctx, r))
	}
	return s.model.Generate(ctx, r)
}

// hello is a request like any other.
func (p Provider) hello() inference.Request {
	return inference.Request{Model: p.Model, System: "Be brief.", Messages: []inference.Message{inference.User("Hello")}, Tools: tools}
}

// within fails the test if c does not become ready.
func within(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("modeltest: %s did not happen within %v", what, patience)
	}
}

// split returns the frames up to the one that has the given text, which is included, and the rest.
func split(t testing.TB, frames []string, text string) (head, tail []string) {
	t.Helper()
	for i, frame := range frames {
		if strings.Contains(frame, text) {
			return frames[:i+1], frames[i+1:]
		}
	}
	t.Fatalf("modeltest: Provider.Stream wrote no frame with %q:\n%s", text, strings.Join(frames, ""))
	return nil, nil
}
