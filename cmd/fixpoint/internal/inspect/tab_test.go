//go:build browser

package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
)

// patience bounds each wait for the browser. It is no measure of speed.
const patience = 60 * time.Second

// browser is one Chromium for all tests of the package.
var browser context.Context

func TestMain(m *testing.M) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, // the tests of a container run as root
		chromedp.WindowSize(1440, 900),
		chromedp.Flag("headless", "new"),
		chromedp.Flag("hide-scrollbars", false),
	)
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocated)
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "no Chromium could be started:", err)
		os.Exit(1)
	}
	browser = ctx
	code := m.Run()
	end()
	stop()
	os.Exit(code)
}

// tab is a page in the browser. What it must never do is collected from its beginning.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	bad      []string // console errors, exceptions, dialogs
	requests []string
}

// newTab opens an empty tab. At the end of the test nothing may have gone wrong in it,
// and it may have asked nobody but whom base names.
func newTab(t *testing.T, base string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	p := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
				p.bad = append(p.bad, fmt.Sprintf("console %s: %s", e.Type, e.Args[0].Value))
			}
		case *runtime.EventExceptionThrown:
			p.bad = append(p.bad, fmt.Sprintf("exception: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description))
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				p.bad = append(p.bad, fmt.Sprintf("log %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
			}
		case *page.EventJavascriptDialogOpening:
			p.bad = append(p.bad, "dialog: "+e.Message)
		case *network.EventRequestWillBeSent:
			p.requests = append(p.requests, e.Request.URL)
		}
	}))
	command(p, network.Enable, network.EnableParams{})
	command(p, log.Enable, cdp.Empty{})
	command(p, runtime.Enable, cdp.Empty{})
	command(p, page.Enable, page.EnableParams{})
	t.Cleanup(func() {
		defer cancel()
		defer stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.bad) > 0 {
			t.Errorf("the page complained: %s", strings.Join(p.bad, "\n"))
		}
		for _, url := range p.requests {
			if !strings.HasPrefix(url, base) && !strings.HasPrefix(url, "data:") {
				t.Errorf("the page asked %s", url)
			}
		}
	})
	return p
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, actions...))
}

// command sends a command of the protocol to the tab.
func command[P, R any](p *tab, cmd cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := chromedp.Call(p.ctx, cmd, params)
	require.NoError(p.t, err)
	return result
}

// open goes to a page and waits until its view is drawn.
func (p *tab) open(url string) {
	p.t.Helper()
	p.run(chromedp.Navigate(url))
	p.until(`performance.getEntriesByName('inspector-painted').length > 0`)
}

// until waits for a condition in the page.
func (p *tab) until(condition string) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Poll[bool](`!!(`+condition+`)`, chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(20*time.Millisecond)))
	require.NoError(p.t, err, "waited for %s", condition)
}

// value is what an expression gives in the page; a promise is awaited.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, "%.300s", expression)
	return v
}

// key presses keys where the focus is. A key and its character are one event, as from a
// keyboard, so that a page which takes the key gets no character.
func (p *tab) key(keys string) {
	p.t.Helper()
	for _, r := range keys {
		k, known := kb.Keys[r]
		require.True(p.t, known, "%q is not on the keyboard", r)
		down := input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeKeyDown, Key: k.Key, Code: k.Code, Text: k.Text, UnmodifiedText: k.Unmodified,
			NativeVirtualKeyCode: k.Native, WindowsVirtualKeyCode: k.Windows,
		}
		if !k.Print {
			down.Type, down.Text, down.UnmodifiedText = input.DispatchKeyEventTypeRawKeyDown, "", ""
		}
		if k.Shift {
			down.Modifiers = int64(kb.ModifierShift)
		}
		up := down
		up.Type, up.Text, up.UnmodifiedText = input.DispatchKeyEventTypeKeyUp, "", ""
		command(p, input.DispatchKeyEvent, down)
		command(p, input.DispatchKeyEvent, up)
	}
}

// shot keeps a picture of the page below the folder that FIXPOINT_SCREENSHOTS names.
func (p *tab) shot(name string) {
	p.t.Helper()
	dir := os.Getenv("FIXPOINT_SCREENSHOTS")
	if dir == "" {
		return
	}
	p.until(`!inspector.minimap.waiting`)
	raw, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	png := fewColours(p.t, raw)
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.run(chromedp.EmulateViewport(width, height))
}

// server serves the page with a view as events, and whatever is sent to it later.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	view    []byte
	streams map[chan string]struct{}
}

func serve(t *testing.T, v any) *server {
	t.Helper()
	s := &server{view: marshal(t, v), streams: map[chan string]struct{}{}}
	mux := http.NewServeMux()
	index, err := fs.ReadFile(inspect.Assets(), "index.html")
	require.NoError(t, err)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", inspect.ServedPolicy)
		_, _ = w.Write(index)
	})
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(inspect.Assets())))
	mux.HandleFunc("GET /events", s.events)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	stream := make(chan string, 64)
	s.mu.Lock()
	s.streams[stream] = struct{}{}
	view := s.view
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, stream)
	}()
	fmt.Fprintf(w, "retry: 50\nevent: view\ndata: %s\n\n", view)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case message, open := <-stream:
			if !open {
				return
			}
			fmt.Fprint(w, message)
			w.(http.Flusher).Flush()
		}
	}
}

// send sends a patch to every page.
func (s *server) send(t *testing.T, patch any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.streams {
		stream <- fmt.Sprintf("event: patch\ndata: %s\n\n", marshal(t, patch))
	}
}

// cut ends every stream; pages come back and get another view.
func (s *server) cut(t *testing.T, v any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = marshal(t, v)
	for stream := range s.streams {
		close(stream)
		delete(s.streams, stream)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}
