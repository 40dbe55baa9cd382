package mcp

import (
	"context"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// asksLater is the version of the protocol from which on servers ask in results, not
// while a call runs.
const asksLater = "2026-07-28"

// link is one connection to a server, from start to loss.
type link struct {
	session *sdk.ClientSession
	opened  opened
	process *process // nil without one
	release func()
	began   time.Time
	gone    chan struct{} // closed after the session ended
	stale   chan struct{} // the server says that its list changed
}

// close ends the session, in good order if the server lets it.
func (l *link) close(patience time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.session.Close() // what a server that goes away says about it changes nothing
	}()
	within(done, patience)
	l.drop()
	within(done, patience)
}

// within waits for done, and reports whether it came in time.
func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// drop closes the connection, whatever its session says.
func (l *link) drop() {
	l.opened.close()
	l.release()
}

// opened is a transport that remembers its connection, to close it when the session
// hangs.
type opened struct {
	sdk.Transport

	mu     sync.Mutex
	conn   sdk.Connection
	closed bool
}

func (o *opened) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := o.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn = conn; o.closed {
		_ = conn.Close() // nobody waits for it any more
	}
	return conn, nil
}

func (o *opened) close() {
	o.mu.Lock()
	o.closed = true
	conn := o.conn
	o.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // again, mostly
	}
}

// asksInCalls reports whether the server's protocol is one in which it asks the user
// while a call runs.
func (l *link) asksInCalls() bool {
	init := l.session.InitializeResult()
	return init == nil || init.ProtocolVersion < asksLater
}
