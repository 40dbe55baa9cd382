package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// patience is how long something that must come may take.
const patience = 20 * time.Second

// byHeader takes the header X-User at its word.
func byHeader(r *http.Request) (serve.Principal, error) {
	if r.Header.Get("X-User") == "" {
		return serve.Principal{}, errors.New("nobody")
	}
	return serve.Principal{ID: r.Header.Get("X-User")}, nil
}

// till is a plugin with a tool that takes money, and a gate that asks about it.
func till() engine.Plugin {
	type bill struct {
		Amount int `json:"amount"`
	}
	return engine.NewPlugin("till", func(r *engine.Registrar) error {
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "pay"}, func(ctx context.Context, _ *phase.Context, in bill) (engine.Output, error) {
			p, _ := serve.PrincipalOf(ctx)
			return engine.Text(p.ID + " paid " + strings.Repeat("x", in.Amount)), nil
		}))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if a, ok := pc.Answer(); ok && a.Approved {
				return gate.Approve(), nil
			}
			return gate.Ask(gate.Ticket{Message: "Pay?"}), nil
		}))
		return nil
	})
}

// asking is a model that wants to pay and then says so.
func asking() inference.Model {
	return enginetest.NewScript(
		enginetest.Call("c1", "pay", map[string]int{"amount": 3}), enginetest.Say("paid"),
		enginetest.Call("c1", "pay", map[string]int{"amount": 4}), enginetest.Say("paid again"),
	)
}

// config is an engine's configuration with one agent.
func config(model inference.Model) engine.Config {
	return engine.Config{
		Model: model, Stream: true, Agents: []engine.AgentSpec{{ID: "clerk"}}, Plugins: []engine.Plugin{till()},
	}
}

// site is a server that listens, and a client of it.
type site struct {
	*serve.Server
	http *httptest.Server
	user string
}

func open(t testing.TB, c engine.Config, o serve.Options) *site {
	t.Helper()
	if o.Authorize == nil {
		o.Authorize = byHeader
	}
	s, err := serve.New(c, o)
	require.NoError(t, err)
	web := httptest.NewServer(s)
	out := &site{Server: s, http: web, user: "ann"}
	t.Cleanup(func() { out.close(t) })
	return out
}

// close shuts the server down, once.
func (s *site) close(t testing.TB) {
	if s.http == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // what is under way is cancelled
	require.NoError(t, s.Shutdown(ctx))
	s.http.CloseClientConnections()
	s.http.Close()
	s.http = nil
}

func (s *site) as(user string) *site {
	other := *s
	other.user = user
	return &other
}

// reply is what a request was answered with.
type reply struct {
	status int
	header http.Header
	body   string
}

func (s *site) request(t testing.TB, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-User", s.user)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (s *site) do(t testing.TB, method, path, body string, headers ...string) reply {
	t.Helper()
	resp, err := s.http.Client().Do(s.request(t, method, path, body, headers...))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return reply{resp.StatusCode, resp.Header, string(text)}
}

// view reads a run out of a reply.
func (r reply) view(t testing.TB) (v serve.View) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.body), &v), r.body)
	return v
}

// fault reads why a request was refused.
func (r reply) fault(t testing.TB) (f struct {
	Code     string
	Message  string
	Position *int64
	Decision *int
	Run      *serve.View
	After    string
}) {
	t.Helper()
	var body struct{ Error any }
	body.Error = &f
	require.NoError(t, json.Unmarshal([]byte(r.body), &body), r.body)
	return f
}

// start starts a run that must start.
func (s *site) start(t testing.TB, body string, headers ...string) serve.View {
	t.Helper()
	r := s.do(t, "POST", "/v1/runs", body, headers...)
	require.Equal(t, http.StatusCreated, r.status, r.body)
	v := r.view(t)
	require.Equal(t, "/v1/runs/"+v.Run, r.header.Get("Location"))
	return v
}

// await follows a run's stream until it has an event of the type, and tells where the
// run stands then.
func (s *site) await(t testing.TB, run, kind string) serve.View {
	t.Helper()
	sub := s.stream(t, run, "")
	defer sub.close()
	for e := range sub.events {
		if e.kind == kind {
			break
		}
	}
	return s.do(t, "GET", "/v1/runs/"+run, "").view(t)
}

// told is a server-sent event.
type told struct{ id, kind, data string }

// subscription is an open stream.
type subscription struct {
	events <-chan told // closed at its end
	close  func()
	resp   *http.Response
}

// stream opens a stream; the answer must be one.
func (s *site) stream(t testing.TB, run, last string) *subscription {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := s.request(t, "GET", "/v1/runs/"+run+"/events", "")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := s.http.Client().Do(r.WithContext(ctx))
	require.NoError(t, err)
	if resp.StatusCode != http.StatusOK {
		cancel()
		require.Fail(t, "no stream", "%d %s", resp.StatusCode, readAll(resp))
	}
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	return read(resp, cancel)
}

func read(resp *http.Response, cancel func()) *subscription {
	events, stop := make(chan told), make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer close(events)
		defer resp.Body.Close()
		scan(resp.Body, func(e told) bool {
			select {
			case events <- e:
				return true
			case <-stop:
				return false
			}
		})
	}()
	return &subscription{events: events, resp: resp, close: func() { close(stop); cancel(); <-gone }}
}

// scan reads server-sent events until yield has enough.
func scan(r io.Reader, yield func(told) bool) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	var e told
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if lines.Text() == "" && e.data != "" && !yield(e) {
				return
			}
			if lines.Text() == "" {
				e = told{}
			}
		}
	}
}

// readAll reads what came before the end.
func readAll(resp *http.Response) string {
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// all takes a stream to its end.
func (s *subscription) all() (events []told) {
	for e := range s.events {
		events = append(events, e)
	}
	return events
}
