package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Name is the name of the plugin that brings the keys of this package.
const Name = "serve"

// Options say who may do what. Authorize is required; a zero field otherwise means the
// default named with it, and a negative number is an error.
type Options struct {
	// Authorize tells whose request it is. An error, or a Principal without an ID, is
	// answered with 401 and nothing of what the error says. It is called once for every
	// request, before anything else is looked at, and must be safe for concurrent use.
	Authorize func(*http.Request) (Principal, error)
	// Agents are the ids of those of the engine's agents that may be started; empty: all.
	Agents []string
	// Rules say what the outside is not told. They hold for events and for what is said
	// of a run in any other way.
	Rules  trace.Rules
	Limits Limits
	// NewID makes what is unique in the ids of runs and streams: a few letters and
	// digits. Nil means random ones. It must never return an id twice.
	NewID func() string
}

// Limits bound what one principal, or one request, may use.
type Limits struct {
	Body        int64         // bytes of a request's body: 1 MiB
	Text        int           // bytes of the texts and parts of one message: 256 KiB
	Messages    int           // of one request: 64
	Runs        int           // under way at the same time, of one principal: 16
	Streams     int           // open at the same time, of one principal: 64
	Events      int           // kept of a run, for clients that come back: 8192
	EventBytes  int           // likewise, in bytes; the newest event is always kept: 4 MiB
	Kept        int           // runs that are not under way whose events are kept, of all principals; who has most loses the oldest first: 64
	KeepAlive   time.Duration // between comments on a stream on which nothing happens: 15 s
	WriteWithin time.Duration // that a client has for taking what is written to a stream: 30 s
	Grace       time.Duration // for runs to end once Shutdown cancelled them: 15 s
}

func (l Limits) filled() (Limits, error) {
	if l.Body < 0 || min(l.Text, l.Messages, l.Runs, l.Streams, l.Events, l.EventBytes, l.Kept) < 0 || min(l.KeepAlive, l.WriteWithin, l.Grace) < 0 {
		return l, errors.New("serve: a limit is negative; leave it 0 for its default")
	}
	l.Body = cmp.Or(l.Body, 1<<20)
	l.Text = cmp.Or(l.Text, 256<<10)
	l.Messages = cmp.Or(l.Messages, 64)
	l.Runs = cmp.Or(l.Runs, 16)
	l.Streams = cmp.Or(l.Streams, 64)
	l.Events = cmp.Or(l.Events, 8192)
	l.EventBytes = cmp.Or(l.EventBytes, 4<<20)
	l.Kept = cmp.Or(l.Kept, 64)
	l.KeepAlive = cmp.Or(l.KeepAlive, 15*time.Second)
	l.WriteWithin = cmp.Or(l.WriteWithin, 30*time.Second)
	l.Grace = cmp.Or(l.Grace, 15*time.Second)
	return l, nil
}

// Server serves the runs of one engine. It is an [http.Handler] and safe for concurrent
// use. Runs belong to it, not to the connections that they were started by: end it with
// Shutdown.
type Server struct {
	options Options
	engine  *engine.Engine
	journal store.Journal
	agents  map[string]engine.AgentSpec
	logger  *slog.Logger
	only    string // the agent to start when a request names none
	routes  *http.ServeMux

	streams streams

	mu      sync.Mutex
	threads map[string]*thread // those that a request or a run is at, by the engine's id
	runs    map[string]int     // under way, by namespace
	open    map[string]int     // streams, by namespace
	active  int                // runs under way
	idle    chan struct{}      // closed when active is 0 after closing began
	closing bool
	leaving chan struct{} // closed when streams of runs that are not under way are to end
	cut     chan struct{} // closed when all others are
}

// New builds an engine from c, with the server as one more plugin and observer, and a
// server for it. Without a Journal threads are kept in memory until they are deleted.
// The agents that can be started are those of c.Agents.
func New(c engine.Config, o Options) (*Server, error) {
	if o.Authorize == nil {
		return nil, errors.New("serve: Options.Authorize is missing; a program that only its owner can reach may use serve.Sole")
	}
	var err error
	if o.Limits, err = o.Limits.filled(); err != nil {
		return nil, err
	}
	if o.NewID == nil {
		o.NewID = func() string { return strings.ToLower(rand.Text()) }
	}
	if c.Journal == nil {
		c.Journal = memstore.New(memstore.Options{Now: c.Now})
	}
	s := &Server{
		options: o, journal: c.Journal, logger: c.Logger, agents: map[string]engine.AgentSpec{},
		threads: map[string]*thread{}, runs: map[string]int{}, open: map[string]int{},
		idle: make(chan struct{}), leaving: make(chan struct{}), cut: make(chan struct{}),
	}
	for _, a := range c.Agents {
		if len(o.Agents) == 0 || slices.Contains(o.Agents, a.ID) {
			s.agents[a.ID], s.only = a, a.ID
		}
	}
	for _, id := range o.Agents {
		if _, ok := s.agents[id]; !ok {
			return nil, fmt.Errorf("serve: there is no agent %q in Config.Agents", id)
		}
	}
	switch len(s.agents) {
	case 0:
		return nil, errors.New("serve: there is no agent to start; list those that there are in Config.Agents")
	case 1:
	default:
		s.only = ""
	}
	s.streams = streams{limits: o.Limits, detail: o.Rules.Detailer(), newID: s.newID, byRun: map[string]*stream{}, delegated: map[string]*stream{}}
	c.Plugins = append(slices.Clone(c.Plugins), engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Key(Runs)
		r.Key(Keys)
		return nil
	}))
	c.Observers = append(slices.Clone(c.Observers), &s.streams)
	if s.engine, err = engine.New(c); err != nil {
		return nil, err
	}
	for _, a := range s.agents {
		if err := s.engine.Check(a); err != nil {
			return nil, errors.Join(err, s.engine.Close(context.Background()))
		}
	}
	s.routes = s.mux()
	return s, nil
}

// Engine returns the engine that runs are run by. Call its Open before the first
// request if a plugin needs that; Shutdown closes it.
func (s *Server) Engine() *engine.Engine { return s.engine }

// newID returns an id of which nothing can be mistaken for the marks around it.
func (s *Server) newID() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s.options.NewID())
}
