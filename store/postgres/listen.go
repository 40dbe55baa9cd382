package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ddd26017/fixpoint/store/internal/notices"
)

// ear is the one connection that hears all notices of a store.
type ear struct {
	journal *Journal
	config  *pgxpool.Config
	board   notices.Board
	wake    chan struct{} // tells the goroutine that the topics have changed
	done    chan struct{} // closed when the goroutine has ended; nil: there is none yet

	mu      sync.Mutex
	closed  bool
	topics  map[string]*topic  // by channel
	stopNow context.CancelFunc // ends the wait for a notice
	failure error              // of the last attempt to connect
}

// topic is what somebody listens to.
type topic struct {
	listeners int
	ready     chan struct{} // closed when the server knows of it
	known     bool          // ready is closed
}

const (
	// silence is after how long without a notice the connection is tried.
	silence     = 20 * time.Second
	earAttempts = 500 * time.Millisecond // the longest pause between attempts to connect
)

func (e *ear) init(j *Journal, config *pgxpool.Config) {
	e.journal, e.config = j, config
	e.wake = make(chan struct{}, 1)
	e.topics = map[string]*topic{}
}

// Listen implements [store.Notifier]. All listeners of a store share one connection, which
// the first makes. When it breaks it is made again for as long as the store is open. A
// listener that 256 notices wait for misses those that come next.
func (j *Journal) Listen(ctx context.Context, name string) (<-chan []byte, error) {
	if err := checkName("topic", name); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errEnded(ctx)
	}
	if !j.enter() {
		return nil, errClosed()
	}
	defer j.calls.Done()
	e := &j.ear
	channel := channelOf(j.schema, name)
	ready := e.add(channel)
	mine, cancel := context.WithCancel(ctx)
	heard := e.board.Listen(mine, name)
	patience := time.NewTimer(max(j.patience, connectTimeout))
	defer patience.Stop()
	var err error
	select {
	case <-ready:
		context.AfterFunc(ctx, func() {
			cancel()
			e.drop(channel)
		})
		return heard, nil
	case <-ctx.Done():
		err = errEnded(ctx)
	case <-j.closing:
		err = errClosed()
	case <-patience.C:
		e.mu.Lock()
		err = errors.Join(errors.New("postgres: listen: the server does not answer"), e.failure)
		e.mu.Unlock()
	}
	cancel()
	e.drop(channel)
	return nil, err
}

// add counts a listener in; ready is closed as soon as the server knows of the channel.
func (e *ear) add(channel string) (ready <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.topics[channel]
	if t == nil {
		t = &topic{ready: make(chan struct{})}
		e.topics[channel] = t
		e.poke()
	}
	t.listeners++
	if e.done == nil && !e.closed {
		e.done = make(chan struct{})
		go e.run()
	}
	return t.ready
}

func (e *ear) drop(channel string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.topics[channel]
	if t.listeners--; t.listeners == 0 {
		delete(e.topics, channel)
		e.poke()
	}
}

// poke makes the goroutine look at the topics. The lock is held.
func (e *ear) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
	if e.stopNow != nil {
		e.stopNow()
	}
}

// close ends all listeners. The store's base context has ended.
func (e *ear) close() {
	e.mu.Lock()
	e.closed = true
	done := e.done
	e.mu.Unlock()
	if done != nil {
		<-done
	}
	e.board.Close()
}

// run keeps a connection until the store is closed.
func (e *ear) run() {
	defer close(e.done)
	ctx := e.journal.base
	pause := time.Millisecond
	for ctx.Err() == nil {
		connected, err := e.listen(ctx)
		e.mu.Lock()
		e.failure = err
		e.mu.Unlock()
		if connected {
			pause = time.Millisecond
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, earAttempts)
	}
}

// listen makes a connection and hears notices until it breaks.
func (e *ear) listen(ctx context.Context) (connected bool, err error) {
	config := e.config.ConnConfig.Copy()
	if e.config.BeforeConnect != nil {
		if err := e.config.BeforeConnect(ctx, config); err != nil {
			return false, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer func() {
		ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ended)
	}()
	if e.config.AfterConnect != nil {
		if err := e.config.AfterConnect(ctx, conn); err != nil {
			return false, err
		}
	}
	known := map[string]bool{}
	var p puzzle
	for {
		if err := e.subscribe(ctx, conn, known); err != nil {
			return true, err
		}
		wait, cancel := context.WithTimeout(ctx, silence)
		if !e.mayWait(cancel) {
			cancel()
			continue
		}
		n, err := conn.WaitForNotification(wait)
		quiet := wait.Err() != nil
		cancel()
		switch {
		case err == nil:
			if name, data, whole := p.add(n.Payload); whole && channelOf(e.journal.schema, name) == n.Channel {
				e.board.Send(name, data)
			}
		case !quiet || ctx.Err() != nil || conn.IsClosed():
			return true, err
		case errors.Is(err, context.DeadlineExceeded):
			ping, cancel := context.WithTimeout(ctx, connectTimeout)
			err := conn.Ping(ping)
			cancel()
			if err != nil {
				return true, err
			}
		}
	}
}

// mayWait notes how to end the wait that is to begin; it returns false when the topics have
// changed meanwhile.
func (e *ear) mayWait(cancel context.CancelFunc) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.wake:
		e.stopNow = nil
		return false
	default:
	}
	e.stopNow = cancel
	return true
}

// subscribe tells the server of the channels that are new or not wanted any more.
func (e *ear) subscribe(ctx context.Context, conn *pgx.Conn, known map[string]bool) error {
	e.mu.Lock()
	e.stopNow = nil
	select {
	case <-e.wake: // this is the look it asks for
	default:
	}
	var sql strings.Builder
	var added []string
	for channel, t := range e.topics {
		if !known[channel] || !t.known {
			added = append(added, channel)
			fmt.Fprintf(&sql, "LISTEN %s;", quote(channel))
		}
	}
	var dropped []string
	for channel := range known {
		if e.topics[channel] == nil {
			dropped = append(dropped, channel)
			fmt.Fprintf(&sql, "UNLISTEN %s;", quote(channel))
		}
	}
	e.mu.Unlock()
	if sql.Len() == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, e.journal.timeout)
	defer cancel()
	if _, err := conn.PgConn().Exec(bounded, sql.String()).ReadAll(); err != nil {
		return err
	}
	for _, channel := range dropped {
		delete(known, channel)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, channel := range added {
		known[channel] = true
		if t := e.topics[channel]; t != nil && !t.known {
			t.known = true
			close(t.ready)
		}
	}
	return nil
}
