package modeltest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var failureTests = []test{
	{"refusals", testRefusals},
	{"times to wait", testWaits},
	{"answers that are none", testNonsense},
	{"redirects", testRedirects},
	{"nobody there", testNobodyThere},
	{"interruptions", testInterruptions},
	{"broken streams", testBrokenStreams},
	{"broken whole answer", testBrokenWhole},
}

// failed asks for a *resilient.Failure of the given class that tells where it came from and holds no secret.
func (s *service) failed(t *testing.T, err error, class resilient.Class) *resilient.Failure {
	t.Helper()
	require.Error(t, err)
	var f *resilient.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, class.String(), f.Class.String(), "class of %v", err)
	require.ErrorIs(t, err, class)
	require.NotEmpty(t, f.Provider)
	require.True(t, strings.HasPrefix(err.Error(), f.Provider+": "), "the text begins with the adapter's name: %v", err)
	require.Equal(t, s.provider.Model, f.Model)
	require.NotContains(t, err.Error(), Key)
	return f
}

func testRefusals(t *testing.T, p Provider) {
	for _, refusal := range p.Failures {
		t.Run(refusal.Name, func(t *testing.T) {
			for _, m := range modes {
				s := serve(t, p, replying(refusal.Reply))
				r, err := s.ask(context.Background(), m, p.hello())
				f := s.failed(t, err, refusal.Class)
				require.Equal(t, refusal.Code, f.Code, m.name)
				require.False(t, f.Partial, m.name)
				require.Empty(t, r.Message.Text, m.name)
				if refusal.Reply.Status != 0 {
					require.Equal(t, refusal.Reply.Status, f.Status, m.name)
				}
				if refusal.Class == resilient.RateLimited {
					require.Equal(t, 7*time.Second, f.RetryAfter, m.name)
				}
				require.Len(t, s.sent(), 1, "%s: the adapter or its SDK asked again by itself", m.name)
			}
		})
	}
}

// testWaits is about the ways in which a header asks for time: whole seconds, fractions, milliseconds, a date.
func testWaits(t *testing.T, p Provider) {
	date := func(in time.Duration) string { return time.Now().Add(in).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		name     string
		header   map[string]string
		min, max time.Duration
	}{
		{"seconds", map[string]string{"Retry-After": "7"}, 7 * time.Second, 7 * time.Second},
		{"a fraction", map[string]string{"Retry-After": "0.5"}, time.Second / 2, time.Second / 2},
		{"milliseconds, and seconds that are rounded", map[string]string{"Retry-After": "8", "Retry-After-Ms": "7250"}, 7250 * time.Millisecond, 7250 * time.Millisecond},
		{"a date", map[string]string{"Retry-After": date(time.Hour)}, time.Hour - 2*patience, time.Hour},
		{"a date that has passed", map[string]string{"Retry-After": date(-time.Hour)}, 0, 0},
		{"a negative number", map[string]string{"Retry-After": "-7", "Retry-After-Ms": "-7000"}, 0, 0},
		{"words", map[string]string{"Retry-After": "soon", "Retry-After-Ms": "NaN"}, 0, 0},
		{"nothing", nil, 0, 0},
	} {
		for status, class := range map[int]resilient.Class{429: resilient.RateLimited, 503: resilient.Overloaded, 529: resilient.Overloaded} {
			t.Run(fmt.Sprintf("%s with %d", c.name, status), func(t *testing.T) {
				for _, m := range modes {
					s := serve(t, p, replying(Reply{Status: status, Header: c.header, Body: "{}"}))
					_, err := s.ask(context.Background(), m, p.hello())
					f := s.failed(t, err, class)
					require.GreaterOrEqual(t, f.RetryAfter, c.min, m.name)
					require.LessOrEqual(t, f.RetryAfter, c.max, m.name)
					require.Equal(t, status, f.Status, m.name)
				}
			})
		}
	}
}

// testRedirects: a key does not follow to another host, but it does on the same one.
func testRedirects(t *testing.T, p Provider) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, m := range modes {
		s := serve(t, p, func(_ *service, w http.ResponseWriter, _ *http.Request, wire Wire) {
			w.Header().Set("Location", other.URL+wire.Path)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, err := s.ask(context.Background(), m, p.hello())
		require.Zero(t, elsewhere.Load(), "%s: another host was asked", m.name)
		require.Equal(t, http.StatusTemporaryRedirect, s.failed(t, err, resilient.Transient).Status, m.name)
		require.Len(t, s.sent(), 1, m.name)

		s = serve(t, p, func(s *service, w http.ResponseWriter, _ *http.Request, wire Wire) {
			if strings.HasPrefix(wire.Path, "/modeltest-moved") {
				s.answer(w, wire, p.said("Here."))
				return
			}
			w.Header().Set("Location", "/modeltest-moved"+wire.Path)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		r, err := s.ask(context.Background(), m, p.hello())
		require.NoError(t, err, m.name)
		require.Equal(t, "Here.", r.Message.Text, m.name)
		sent := s.sent()
		require.Len(t, sent, 2, m.name)
		require.Equal(t, string(sent[0].Body), string(sent[1].Body), m.name)
		require.Contains(t, fmt.Sprint(sent[1].Header), Key, "%s: the key of the request that was sent on", m.name)
	}
}

// testNonsense is about what proxies and dying servers say.
func testNonsense(t *testing.T, p Provider) {
	html := map[string]string{"Content-Type": "text/html"}
	for _, c := range []struct {
		name  string
		reply Reply
		class resilient.Class
	}{
		{"half a JSON text", Reply{Body: `{"id": "x", "choi`}, resilient.Transient},
		{"another JSON value", Reply{Body: `"maintenance"`}, resilient.Transient},
		{"nothing", Reply{}, resilient.Transient},
		{"a page", Reply{Header: html, Body: "<html><body>Welcome</body></html>"}, resilient.Transient},
		{"a page of a gateway", Reply{Status: 502, Header: html, Body: "<html><body>Bad gateway</body></html>"}, resilient.Transient},
		{"a busy gateway", Reply{Status: 503, Header: html, Body: "busy"}, resilient.Overloaded},
		{"nothing with a status", Reply{Status: 500}, resilient.Transient},
		{"half an error", Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"error": {"mess`}, resilient.RateLimited},
		{"a redirect nowhere", Reply{Status: 304}, resilient.Transient},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, m := range modes {
				s := serve(t, p, replying(c.reply))
				_, err := s.ask(context.Background(), m, p.hello())
				f := s.failed(t, err, c.class)
				if c.reply.Status >= 400 {
					require.Equal(t, c.reply.Status, f.Status, m.name)
				}
				if c.class == resilient.RateLimited {
					require.Equal(t, 7*time.Second, f.RetryAfter, m.name)
				}
				require.Len(t, s.sent(), 1, m.name)
			}
		})
	}
}

func testNobodyThere(t *testing.T, p Provider) {
	t.Run("no server", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		s := &service{provider: p}
		s.model = p.New(t, Setup{BaseURL: server.URL, Client: &http.Client{Transport: &http.Transport{}}, Key: Key, Warn: func(error) {}})
		for _, m := range modes {
			_, err := s.ask(context.Background(), m, p.hello())
			s.failed(t, err, resilient.Transient)
		}
	})
	t.Run("hangs up", func(t *testing.T) {
		for _, m := range modes {
			s := serve(t, p, func(*service, http.ResponseWriter, *http.Request, Wire) { panic(http.ErrAbortHandler) })
			_, err := s.ask(context.Background(), m, p.hello())
			s.failed(t, err, resilient.Transient)
		}
	})
}

func testInterruptions(t *testing.T, p Provider) {
	if len(p.MidStream) == 0 {
		t.Log("the service has no way to say that it gives up")
	}
	for _, i := range p.MidStream {
		t.Run(i.Name, func(t *testing.T) {
			for _, partial := range []bool{false, true} {
				s := serve(t, p, func(s *service, w http.ResponseWriter, _ *http.Request, _ Wire) {
					if partial {
						head, _ := split(t, p.Stream(p.said("Once ", "upon")), "Once ")
						s.frames(w, head...)
					}
					s.frames(w, i.Frame)
				})
				r, err := s.ask(context.Background(), mode{"stream", true}, p.hello())
				f := s.failed(t, err, i.Class)
				require.Equal(t, i.Code, f.Code)
				require.Equal(t, partial, f.Partial)
				require.Equal(t, partial, r.Message.Text == "Once ", "what came before: %q", r.Message.Text)
				require.Empty(t, r.Stop)
			}
		})
	}
}

// testBrokenStreams cuts streams in the middle of text, of a call and of a frame, by closing the connection and, as
// some gateways do, by ending the answer as if it were complete.
func testBrokenStreams(t *testing.T, p Provider) {
	text := p.said("Once ", "upon ", "a time")
	call := p.called(oslo, rome)
	for _, c := range []struct {
		name    string
		answer  Answer
		until   string
		partial bool
	}{
		{"before anything", text, "", false},
		{"in mid text", text, "upon ", true},
		{"in mid call", call, "Osl", true},
		{"in the second call", call, "Rome", true},
	} {
		for _, cut := range []struct {
			name              string
			half, disconnects bool
		}{
			{"between frames", false, true},
			{"within a frame", true, true},
			{"as if complete", false, false},
		} {
			t.Run(c.name+" "+cut.name, func(t *testing.T) {
				s := serve(t, p, func(s *service, w http.ResponseWriter, _ *http.Request, _ Wire) {
					frames := p.Stream(c.answer)
					var head []string
					if c.until != "" {
						head, frames = split(t, frames, c.until)
					}
					s.frames(w, head...)
					if cut.half {
						s.frames(w, frames[0][:len(frames[0])/2])
					}
					if cut.disconnects {
						s.frames(w, "")
						panic(http.ErrAbortHandler)
					}
					w.Header().Set("Content-Type", "text/event-stream")
				})
				r, err := s.ask(context.Background(), mode{"stream", true}, p.hello())
				f := s.failed(t, err, resilient.Transient)
				if cut.disconnects {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the cause")
				}
				require.Equal(t, c.partial, f.Partial)
				require.Empty(t, r.Stop, "an answer that broke off has no stop reason")
				if c.until == "upon " {
					require.Equal(t, "Once upon ", r.Message.Text)
				}
				if c.until == "Osl" {
					require.NotEmpty(t, r.Message.ToolCalls)
					require.NotEmpty(t, r.Message.ToolCalls[0].Args)
				}
				require.Len(t, s.sent(), 1)
			})
		}
	}
}

func testBrokenWhole(t *testing.T, p Provider) {
	s := serve(t, p, func(_ *service, w http.ResponseWriter, _ *http.Request, _ Wire) {
		r := p.Whole(p.said("Once upon a time"))
		r.Body = r.Body[:len(r.Body)/2]
		reply(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	r, err := s.model.Generate(context.Background(), p.hello())
	s.failed(t, err, resilient.Transient)
	require.Equal(t, inference.Response{}, r)
}
