// Package served lets several processes use one store that allows only one: a server
// in the process that has the store, and clients that implement engine.Journal,
// engine.Leaser and engine.Outbox over a socket.
package served

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// Store is what can be served.
type Store interface {
	engine.Journal
	engine.Leaser
	engine.Outbox
	LoadAt(ctx context.Context, thread string, revision uint64) (engine.JournalImage, error)
}

// Entry is a change that a client made to a thread.
type Entry struct {
	Client   string
	Thread   string
	Revision uint64
	Lease    bool // it took the lease
	Empty    bool // a lease, or effects settled: the state is as before
}

// Server serves a store until Close.
type Server struct {
	store    Store
	listener net.Listener
	mu       sync.Mutex // held over each change, so that log has the order of the store
	log      []Entry
}

// Serve serves a store at a socket of that path.
func Serve(path string, store Store) (*Server, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s := &Server{store: store, listener: listener}
	handler := rpc.NewServer()
	if err := handler.RegisterName("Store", &service{s}); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go handler.ServeConn(conn)
		}
	}()
	return s, nil
}

// Close stops the server. Clients that are connected go on.
func (s *Server) Close() error { return s.listener.Close() }

// Log returns the changes to a thread so far, in order. A commit that was repeated
// under its id, and so did nothing, is there again.
func (s *Server) Log(thread string) (log []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.log {
		if e.Thread == thread {
			log = append(log, e)
		}
	}
	return log
}

// Forget drops the log of all threads.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// change makes a change with nobody else making one, and notes it.
func (s *Server) change(e Entry, make func() (uint64, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, err := make()
	if err == nil && revision > 0 {
		e.Revision = revision
		s.log = append(s.log, e)
	}
	return err
}

// Ask is the question of every call; the fields that it needs are set.
type Ask struct {
	Client   string
	Commit   engine.JournalCommit
	Thread   string
	Revision uint64
	Limit    int
	Policy   engine.PrunePolicy
	Lease    engine.Lease
	TTL      time.Duration
	Lane     string
	Claim    engine.Claim
	How      engine.Settlement
}

// Reply is the answer.
type Reply struct {
	Revision uint64
	Image    engine.JournalImage
	Threads  []string
	Lease    engine.Lease
	Claims   []engine.Claim
	Caps     engine.JournalCaps
	Fault    *Fault
}

// Fault is an error on its way through the socket.
type Fault struct {
	Text     string
	Kinds    []int // indexes of kinds
	Conflict *engine.JournalConflict
	Held     *engine.LeaseHeld
}

func kinds() []error {
	return []error{
		engine.ErrFenced, engine.ErrUnknownOutcome, engine.ErrCorrupt, engine.ErrBehind, engine.ErrJournalClosed,
		engine.ErrTooLarge, engine.ErrNoRevision, context.Canceled, context.DeadlineExceeded,
	}
}

func faultOf(err error) *Fault {
	if err == nil {
		return nil
	}
	f := &Fault{Text: err.Error()}
	for i, kind := range kinds() {
		if errors.Is(err, kind) {
			f.Kinds = append(f.Kinds, i)
		}
	}
	errors.As(err, &f.Conflict)
	errors.As(err, &f.Held)
	return f
}

// faultError is a Fault as the error that it was.
type faultError struct{ *Fault }

func (e faultError) Error() string { return e.Text }

// Unwrap returns what errors.Is and errors.As look for.
func (e faultError) Unwrap() (causes []error) {
	for _, i := range e.Kinds {
		causes = append(causes, kinds()[i])
	}
	if e.Conflict != nil {
		causes = append(causes, e.Conflict)
	}
	if e.Held != nil {
		causes = append(causes, e.Held)
	}
	return causes
}
