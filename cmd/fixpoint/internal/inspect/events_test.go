package inspect_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// message is one server-sent event, or a comment.
type message struct{ name, id, data, comment string }

// reader reads server-sent events as a browser does.
type reader struct {
	t    *testing.T
	body io.ReadCloser
	scan *bufio.Reader
}

func newReader(t *testing.T, url, last string) *reader {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	require.NoError(t, err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
	t.Cleanup(func() { _ = got.Body.Close() })
	return &reader{t: t, body: got.Body, scan: bufio.NewReader(got.Body)}
}

// more reads a message; false at the end.
func (r *reader) more() (m message, ok bool) {
	for {
		line, err := r.scan.ReadString('\n')
		if err != nil {
			return m, false
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n" && m == (message{}):
		case line == "\n":
			return m, true
		case name == "":
			m.comment = value
		case name == "event":
			m.name = value
		case name == "id":
			m.id = value
		case name == "data":
			m.data += value
		default:
			require.Equal(r.t, "retry", name)
		}
	}
}

// next reads an event.
func (r *reader) next() message {
	r.t.Helper()
	for {
		m, ok := r.more()
		require.True(r.t, ok, "the stream has ended")
		if m.name != "" {
			return m
		}
	}
}

// fold is what a page knows: a view and the patches after it.
type fold struct {
	view recording.View
	id   string
	runs map[string]recording.Run
	span map[string]recording.Span
	made map[string]recording.Commit
	call map[string]recording.Call
	done map[string]recording.Effect
}

func (f *fold) take(t *testing.T, m message) {
	t.Helper()
	f.id = m.id
	var p recording.Patch
	require.NoError(t, json.Unmarshal([]byte(m.data), &p))
	switch m.name {
	case "view":
		f.view = recording.View{}
		require.NoError(t, json.Unmarshal([]byte(m.data), &f.view))
		f.runs, f.span, f.made = map[string]recording.Run{}, map[string]recording.Span{}, map[string]recording.Commit{}
		f.call, f.done = map[string]recording.Call{}, map[string]recording.Effect{}
	case "patch":
		require.NotEmpty(t, f.view.Version, "a view comes first")
	default:
		require.Fail(t, "unknown event", m.name)
	}
	if p.Live != nil {
		f.view.Live = *p.Live
	}
	if p.Notes != nil {
		f.view.Notes = p.Notes
	}
	if p.Zero != nil {
		f.view.Zero = *p.Zero
	}
	for _, x := range p.Runs {
		f.runs[x.ID] = x
	}
	for _, x := range p.Spans {
		f.span[x.ID] = x
	}
	for _, x := range p.Commits {
		f.made[x.ID] = x
	}
	for _, x := range p.Calls {
		f.call[x.ID] = x
	}
	for _, x := range p.Effects {
		f.done[x.ID] = x
	}
}

// whole is the view that the page shows, all in the order of ids.
func (f *fold) whole() recording.View {
	v := f.view
	v.Runs, v.Spans, v.Commits, v.Calls, v.Effects = ordered(f.runs), ordered(f.span), ordered(f.made), ordered(f.call), ordered(f.done)
	return v
}

func ordered[V any](all map[string]V) []V {
	out := []V{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[id])
	}
	return out
}

// same checks that a page shows what a recording has.
func same(t *testing.T, want recording.View, f *fold) {
	t.Helper()
	text, err := json.Marshal(want)
	require.NoError(t, err)
	direct := &fold{}
	direct.take(t, message{name: "view", data: string(text)})
	equal(t, direct.whole(), f.whole())
}

// equal compares what is too long to be shown.
func equal(t *testing.T, want, got any) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			require.FailNow(t, "different", "at %d: want %s, got %s", i, a[max(0, i-200):min(len(a), i+100)], b[max(0, i-200):min(len(b), i+100)])
		}
	}
	require.Len(t, b, len(a))
}

// lines are those of a trace.
func lines(t *testing.T, text []byte) []trace.Line {
	var all []trace.Line
	for l, err := range trace.Read(bytes.NewReader(text)) {
		require.NoError(t, err)
		all = append(all, l)
	}
	return all
}

// Capability B4. Pages that are opened while a run goes on, or come back to it, are
// shown all of it: the view that they get and the patches after it make the whole.
func TestPagesFollow(t *testing.T) {
	all := lines(t, written(t, 12))
	rec := recording.New("run")
	rec.SetLive(true)
	source := inspect.NewSource(rec)
	server := httptest.NewServer(inspect.HandlerAt(source, time.Millisecond, time.Hour, time.Minute))
	t.Cleanup(server.Close) // behind its pages
	var pages sync.WaitGroup
	begun := make(chan struct{}, 100)
	page := func(cut int) {
		defer pages.Done()
		r := newReader(t, server.URL+"/events", "")
		f := &fold{}
		for n := 1; ; n++ {
			m, ok := r.more()
			if !ok {
				break
			}
			f.take(t, m)
			if n == 1 {
				begun <- struct{}{}
			}
			if n == cut && f.view.Live { // the connection is lost, and the page comes back
				_ = r.body.Close()
				r = newReader(t, server.URL+"/events", f.id)
			}
		}
		same(t, rec.Outline(), f)
	}
	for i, l := range all {
		if i%10 == 0 && i < 60 {
			pages.Add(1)
			go page(i/10 + 1)
			<-begun
		}
		rec.Add(l)
	}
	rec.SetLive(false)
	pages.Wait()
	require.False(t, rec.View().Live)
	require.Len(t, rec.View().Calls, 11)
}

// A page that comes back is told what is new only if it can be.
func TestComingBack(t *testing.T) {
	rec := recording.New("run")
	rec.SetLive(true)
	source := inspect.NewSource(rec)
	server := httptest.NewServer(inspect.HandlerAt(source, time.Millisecond, time.Hour, time.Minute))
	t.Cleanup(server.Close) // behind its pages
	play(t, 2, rec)
	r := newReader(t, server.URL+"/events", "")
	first := r.next()
	require.Equal(t, "view", first.name)
	require.NoError(t, r.body.Close())

	rec.Note("something else")
	r = newReader(t, server.URL+"/events", first.id)
	m := r.next()
	require.Equal(t, "patch", m.name)
	require.Contains(t, m.data, "something else")
	require.Less(t, len(m.data), len(first.data)/2)

	for _, id := range []string{"x 0 1", "1", strings.Replace(m.id, " 0 ", " 1 ", 1), harmful[:20], m.id[3:]} {
		if strings.ContainsAny(id, "\r\n") {
			continue
		}
		require.Equal(t, "view", newReader(t, server.URL+"/events", id).next().name, id)
	}

	// A recording that takes the place of another one is shown from its beginning.
	other := recording.New("another")
	other.SetLive(true)
	source.Replace(other)
	n := r.next()
	require.Equal(t, "view", n.name)
	require.Contains(t, n.data, `"another"`)
	require.Equal(t, "view", newReader(t, server.URL+"/events", m.id).next().name)
}

// A page where nothing happens is told that somebody is still there.
func TestHeartbeat(t *testing.T) {
	rec := recording.New("run")
	rec.SetLive(true)
	source := inspect.NewSource(rec)
	server := httptest.NewServer(inspect.HandlerAt(source, time.Millisecond, 3*time.Millisecond, time.Minute))
	t.Cleanup(server.Close) // behind its pages
	r := newReader(t, server.URL+"/events", "")
	r.next()
	for range 3 {
		m, ok := r.more()
		require.True(t, ok)
		require.Equal(t, "still here", m.comment)
	}
	require.NoError(t, r.body.Close())
}

// A view that is long comes in several messages, which make the whole; what was cut off
// in between begins anew.
func TestLongView(t *testing.T) {
	rec := recording.New("run")
	for _, l := range lines(t, written(t, 300)) {
		rec.Add(l)
	}
	require.Greater(t, len(rec.Outline().Spans), 3000)
	server := httptest.NewServer(inspect.Handler(inspect.NewSource(rec)))
	t.Cleanup(server.Close) // behind its pages
	r := newReader(t, server.URL+"/events", "")
	first := r.next()
	require.Empty(t, first.id)
	require.Contains(t, first.data, `"more":true`)
	f := &fold{}
	f.take(t, first)
	require.Less(t, len(f.span), 3000)
	for {
		m, ok := r.more()
		if !ok {
			break
		}
		f.take(t, m)
		require.Equal(t, len(f.span) == len(rec.Outline().Spans), m.id != "", "the last one has an id")
	}
	same(t, rec.Outline(), f)
}

// Explanations are left out of events, and told when somebody asks for them.
func TestCommit(t *testing.T) {
	rec := recording.New("run")
	play(t, 2, rec)
	h := inspect.Handler(inspect.NewSource(rec))
	for _, want := range rec.View().Commits {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/commit?id="+url.QueryEscape(want.ID), http.NoBody)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		text, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(text), w.Body.String())
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/commit?id=none", http.NoBody))
	require.Equal(t, http.StatusNotFound, w.Code)
}

// What a run said cannot end a message or begin another.
func TestHostileEvents(t *testing.T) {
	rec := recording.New(harmful)
	play(t, 2, rec)
	server := httptest.NewServer(inspect.Handler(inspect.NewSource(rec)))
	t.Cleanup(server.Close) // behind its pages
	r := newReader(t, server.URL+"/events", "")
	f := &fold{}
	f.take(t, r.next())
	_, ok := r.more()
	require.False(t, ok, "it is over with the view, which says so")
	require.Equal(t, harmful, f.view.Source)
	same(t, rec.Outline(), f)
}

// A page that takes nothing holds up neither the run nor other pages, and is given up.
func TestSlowPage(t *testing.T) {
	rec := recording.New("run")
	rec.SetLive(true)
	ended := make(chan struct{})
	h := inspect.HandlerAt(inspect.NewSource(rec), time.Millisecond, time.Millisecond, 500*time.Millisecond)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slow := r.Header.Get("Slow") != ""
		h.ServeHTTP(w, r)
		if slow {
			close(ended)
		}
	}))
	server.Start()
	t.Cleanup(server.Close) // behind its pages
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = io.WriteString(c, "GET /events HTTP/1.1\r\nHost: localhost\r\nSlow: yes\r\n\r\n")
	require.NoError(t, err)
	f := &fold{}
	quick := newReader(t, server.URL+"/events", "")
	f.take(t, quick.next())
	all := lines(t, written(t, 40))
	for n := 0; ; n++ {
		select {
		case <-ended: // it was given up
			rec.SetLive(false)
			for {
				m, ok := quick.more()
				if !ok {
					same(t, rec.Outline(), f)
					return
				}
				if m.name != "" {
					f.take(t, m)
				}
			}
		default:
		}
		if n < len(all) {
			rec.Add(all[n])
		} else {
			rec.Note(strings.Repeat("more ", 1000)) // until what is between the two is full
		}
		require.NoError(t, context.Cause(t.Context()))
		m, ok := quick.more()
		require.True(t, ok)
		if m.name != "" {
			f.take(t, m)
		}
	}
}

var (
	ownParts  = regexp.MustCompile(`(?s)(<(?:script|style)[^>]*>).*?</(?:script|style)>`)
	styleText = regexp.MustCompile(`(?s)<style[^>]*>(.*?)</style>`)
	reference = regexp.MustCompile(`\b(?:src|href|srcset|action|data|poster)\s*=\s*["']?([^"' >]*)`)
	loaded    = regexp.MustCompile(`(?:url\(|@import)[^;)]*`)
)

// referred lists what a page refers to, less what is in it.
func referred(page string) []string {
	var all []string
	for _, m := range reference.FindAllStringSubmatch(ownParts.ReplaceAllString(page, "$1"), -1) {
		if !strings.HasPrefix(m[1], "#") && !strings.HasPrefix(m[1], "data:") {
			all = append(all, m[1])
		}
	}
	for _, m := range styleText.FindAllStringSubmatch(page, -1) {
		all = append(all, loaded.FindAllString(m[1], -1)...)
	}
	return all
}
