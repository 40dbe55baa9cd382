package inspect

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// How a page is kept up to date.
const (
	newsEvery = 200 * time.Millisecond
	beatEvery = 15 * time.Second
	patience  = 30 * time.Second // for a page that takes nothing
)

// handler serves a source.
type handler struct {
	source   *Source
	key      string // of this server, in the ids of its messages
	every    time.Duration
	beat     time.Duration
	patience time.Duration
}

// Handler serves the page of a source: the page at "/", and at "/events" what it shows,
// as server-sent events, and at "/commit" what it asks for. It answers only requests that name a host of the loopback
// interface, so that no name of the outside can be made to lead here, and tells
// browsers to let no other site read or frame it.
func Handler(source *Source) http.Handler {
	return newHandler(&handler{source: source, every: newsEvery, beat: beatEvery, patience: patience})
}

func newHandler(h *handler) http.Handler {
	h.key = rand.Text()
	mux := http.NewServeMux()
	files := http.FileServerFS(Assets())
	mux.Handle("/{$}", files)
	mux.Handle("/assets/", http.StripPrefix("/assets/", plain(files)))
	mux.HandleFunc("/events", h.events)
	mux.HandleFunc("/commit", h.commit)
	mux.HandleFunc("/view.json", h.view)
	return guarded(mux)
}

// plain leaves out what a file server has besides files.
func plain(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" || strings.HasSuffix(r.URL.Path, "/") || strings.HasSuffix(r.URL.Path, ".html") {
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})
}

// guarded refuses what is no request of a page of this server.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", ServedPolicy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		switch {
		case !local(r.Host) || !sameOrigin(r):
			http.Error(w, "fixpoint: the inspector answers this machine's own pages only; open it by the address that it printed", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			head.Set("Allow", "GET, HEAD")
			http.Error(w, "fixpoint: the inspector shows things and changes nothing", http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// local reports whether the host of a request is this machine, by a name that nobody
// else can give to another one.
func local(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport // without a port
		if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
			host = strings.TrimSuffix(inner, "]")
		}
	}
	return strings.EqualFold(host, "localhost") || loopback(host)
}

// loopback reports whether a text is an address of the loopback interface.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// sameOrigin reports whether a request comes from no other site, as far as the browser
// says where it comes from.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && strings.EqualFold(u.Host, r.Host)
}

// view is all that is known, for other programs.
func (h *handler) view(w http.ResponseWriter, r *http.Request) {
	answer(w, r, h.source.Recording().View())
}

// commit is the commit of an id, with the explanations that the events leave out.
func (h *handler) commit(w http.ResponseWriter, r *http.Request) {
	c, found := h.source.Recording().Commit(r.URL.Query().Get("id"))
	if !found {
		http.NotFound(w, r)
		return
	}
	answer(w, r, c)
}

func answer(w http.ResponseWriter, r *http.Request, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		http.Error(w, "fixpoint: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		_, _ = w.Write(text) // who went away misses nothing
	}
}
