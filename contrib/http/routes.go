package serve

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
)

// handler answers a request of a caller. What it returns is written as a fault.
type handler func(c caller, w http.ResponseWriter, r *http.Request) error

type callerKey struct{}

// table has all the routes that there are, each as method, path and handler.
func (s *Server) table() map[string]handler {
	return map[string]handler{
		"POST /v1/runs":                 s.startRun,
		"GET /v1/runs/{run}":            s.showRun,
		"GET /v1/runs/{run}/events":     s.showEvents,
		"POST /v1/runs/{run}/decisions": s.decide,
		"POST /v1/runs/{run}/cancel":    s.cancel,
		"GET /v1/threads":               s.listThreads,
		"GET /v1/threads/{thread}":      s.showThread,
		"DELETE /v1/threads/{thread}":   s.deleteThread,
		"GET /v1/threads/{thread}/runs": s.listRuns,
		"POST /v1/agui/{agent}":         s.agui,
		"GET /v1/openapi.json":          s.describe,
	}
}

func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, h := range s.table() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c, _ := r.Context().Value(callerKey{}).(caller)
			err := h(c, w, r)
			if err == nil {
				return
			}
			if s.logger != nil && c.faultOf(err).status == http.StatusInternalServerError {
				s.logger.ErrorContext(r.Context(), "serve: a request failed", "route", pattern, "error", err)
			}
			c.answer(w, err)
		})
	}
	return mux
}

// ServeHTTP answers a request. All paths begin with /v1/; mount the server elsewhere with
// [http.StripPrefix].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	p, err := s.options.Authorize(r)
	if err != nil || p.ID == "" {
		h.Set("WWW-Authenticate", "Bearer")
		caller{}.answer(w, refuse(http.StatusUnauthorized, "unauthorized", "say who you are"))
		return
	}
	c := callerOf(p)
	// The mux would answer other spellings of a path with a redirect.
	if r.URL.Path != path.Clean(r.URL.Path) || r.URL.Path == "" || r.URL.Path[0] != '/' {
		c.answer(w, hidden())
		return
	}
	found, pattern := s.routes.Handler(r)
	if pattern == "" {
		c.answer(w, noRoute(found, r))
		return
	}
	s.routes.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
}

// noRoute asks the mux's own answer whether another method would do.
func noRoute(found http.Handler, r *http.Request) *fault {
	var probe probe
	found.ServeHTTP(&probe, r)
	if allow := probe.Header().Get("Allow"); allow != "" {
		f := refuse(http.StatusMethodNotAllowed, "method", "the method is not for this path")
		f.allow = allow
		return f
	}
	return hidden()
}

// probe is a ResponseWriter of which only the header counts.
type probe struct{ header http.Header }

func (p *probe) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(int)             {}

// query returns the query's values, of which only those named may be there, each once.
func query(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "query", "the query cannot be read")
	}
	for name, all := range values {
		if !slices.Contains(names, name) || len(all) != 1 {
			return nil, refuse(http.StatusBadRequest, "query", "a parameter of the query is unknown here, or is there twice")
		}
	}
	return values, nil
}

// The sizes of pages.
const (
	usualPage   = 50
	longestPage = 200
)

// page returns the parameters of a list.
func page(r *http.Request) (after string, limit int, err error) {
	values, err := query(r, "after", "limit")
	if err != nil {
		return "", 0, err
	}
	limit = usualPage
	if text := values.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > longestPage {
			return "", 0, refuse(http.StatusBadRequest, "query", "limit is a number from 1 to 200")
		}
	}
	if after = values.Get("after"); after != "" && !goodID(after) {
		return "", 0, refuse(http.StatusBadRequest, "query", "after is what the page before calls next")
	}
	return after, limit, nil
}
