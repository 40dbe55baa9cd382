package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	stable     = time.Minute // a connection that held so long was a good one
	maxBackoff = time.Minute // between two attempts to connect
	relistGap  = time.Second // between two listings that a server asks for
	ownName    = "fixpoint"  // of this program, for the other side
	ownVersion = "1"         // likewise
)

// ErrDown is the kind of error of a call whose server is not there. The call was not
// made.
var ErrDown = errors.New("mcp: the server is not there")

// ErrLost is the kind of error of a call whose server went away. Nobody knows whether
// it did its work, and it is not made again.
var ErrLost = errors.New("mcp: the server went away during the call, which may or may not have done its work; it was not made again")

// connection is a server with the link to it, if there is one. It links again when it
// has to.
type connection struct {
	server Server
	limits Limits
	opts   *Options
	base   context.Context // ends at close
	stop   context.CancelCauseFunc
	wg     sync.WaitGroup // of the goroutines that end with base

	lane lane
	desk desk

	mu       sync.Mutex
	link     *link
	linking  chan struct{} // closed when the attempt under way is over
	defs     map[string]definition
	failures int
	notUntil time.Time
	why      error // that there is no link
	before   bool  // there was one before
}

func newConnection(s Server, o *Options) *connection {
	c := &connection{server: s, limits: o.Limits, opts: o}
	c.base, c.stop = context.WithCancelCause(context.Background())
	return c
}

func (c *connection) notify(kind NoticeKind, format string, args ...any) {
	c.opts.notify(c.server.Name, kind, format, args...)
}

// get returns the link, after making it if need be.
func (c *connection) get(ctx context.Context) (*link, error) {
	c.mu.Lock()
	if l := c.link; l != nil && c.base.Err() == nil {
		c.mu.Unlock()
		return l, nil
	}
	wait, err := c.begin()
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-wait:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return nil, fmt.Errorf("%w: %w", ErrDown, c.why)
	}
	return c.link, nil
}

// begin returns what is closed when the attempt to connect is over, after beginning one
// if none is under way. The caller has the lock.
func (c *connection) begin() (<-chan struct{}, error) {
	left := time.Until(c.notUntil)
	switch {
	case c.base.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ErrDown, errClosed)
	case c.linking != nil:
		return c.linking, nil
	case left > 0:
		return nil, fmt.Errorf("%w: %w; it is started again in %s at the earliest", ErrDown, c.why, left.Round(time.Second/10))
	}
	c.linking = make(chan struct{})
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		c.connect()
	}()
	return c.linking, nil
}

// try begins to connect if it is time to, and does not wait for it.
func (c *connection) try() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = c.get(ctx) // why there is no link, a call will tell
}

// connect makes one attempt.
func (c *connection) connect() {
	ctx, cancel := context.WithTimeoutCause(c.base, c.server.connectTimeout(),
		fmt.Errorf("it was not ready within %s", c.server.connectTimeout()))
	defer cancel()
	l, defs, err := c.dial(ctx)
	if err != nil {
		err = fmt.Errorf("server %s: %w", c.server.Name, err)
	}
	c.mu.Lock()
	c.why, c.link = err, l
	old, again := c.defs, c.before
	if err == nil {
		c.defs, c.before = defs, true
	} else {
		c.delay()
	}
	c.mu.Unlock()
	if err != nil {
		c.notify(ServerMissing, "%v", err)
	} else if again {
		c.notify(ServerBack, "server %s is there again", c.server.Name)
		c.compare(old, defs)
	}
	if l != nil {
		select {
		case <-l.gone: // before anybody could notice
			c.lose(l)
		default:
		}
	}
	c.mu.Lock()
	close(c.linking) // whoever waits for it finds that it has been told
	c.linking = nil
	c.mu.Unlock()
}

// compare tells of a list that is not what it was.
func (c *connection) compare(old, now map[string]definition) {
	if !maps.Equal(old, now) {
		c.notify(ToolsChanged, "server %s changed its list of tools", c.server.Name)
	}
}

// delay puts off the next attempt, the longer the more failed. The caller has the lock.
func (c *connection) delay() {
	c.failures++
	c.notUntil = time.Now().Add(min(time.Second<<min(c.failures-1, 10), maxBackoff))
}

// dial links and lists. It leaves nothing behind when it fails.
func (c *connection) dial(ctx context.Context) (*link, map[string]definition, error) {
	l := &link{began: time.Now(), gone: make(chan struct{}), stale: make(chan struct{}, 1), release: func() {}}
	var err error
	switch {
	case c.server.Command != "":
		l.process = newProcess(c.server, c.limits, c.opts.Logger)
		l.opened.Transport = l.process
	case c.server.URL != "":
		l.opened.Transport, l.release = remote(c.server, c.limits)
	default:
		if l.opened.Transport, err = c.server.Dial(ctx); err != nil {
			return nil, nil, err
		}
	}
	// The SDK does not promise to give up when ctx ends, as when a program does not read.
	type made struct {
		session *sdk.ClientSession
		err     error
	}
	done := make(chan made, 1)
	client := sdk.NewClient(&sdk.Implementation{Name: ownName, Version: ownVersion}, c.clientOptions(l))
	go func() {
		s, err := client.Connect(ctx, &l.opened, nil)
		done <- made{s, err}
	}()
	var m made
	select {
	case m = <-done:
	case <-ctx.Done():
		m.err = context.Cause(ctx)
		l.drop()
		go func() {
			if late := <-done; late.session != nil {
				_ = late.session.Close()
			}
		}()
	}
	if m.err != nil {
		l.drop()
		return nil, nil, c.explain(ctx, l, m.err)
	}
	l.session = m.session
	defs, err := c.list(ctx, l.session)
	if err != nil {
		l.close(c.limits.Close)
		return nil, nil, c.explain(ctx, l, fmt.Errorf("listing its tools: %w", err))
	}
	c.wg.Add(2)
	go func() { defer c.wg.Done(); c.watch(l) }()
	go func() { defer c.wg.Done(); c.relist(l) }()
	return l, defs, nil
}

// explain adds what is known of the program's end to the error of a connection.
func (c *connection) explain(ctx context.Context, l *link, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	err = errors.New(plain(err.Error(), 1<<10))
	if l.process != nil {
		if story := l.process.story(); story != "" {
			err = fmt.Errorf("%w (%s)", err, story)
		}
	}
	return err
}

func (c *connection) clientOptions(l *link) *sdk.ClientOptions {
	o := &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // neither roots nor sampling
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case l.stale <- struct{}{}:
			default: // it is known
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.desk.progress(c, r.Params) },
	}
	if c.server.Elicit {
		o.ElicitationHandler = func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return c.elicit(ctx, r.Params)
		}
	}
	return o
}

// watch waits for the end of a link and closes what is left of it.
func (c *connection) watch(l *link) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.session.Wait() // why it ended, the process tells better
	}()
	select {
	case <-ended:
	case <-c.base.Done():
		l.close(c.limits.Close)
		<-ended
		close(l.gone)
		return
	}
	l.close(c.limits.Close)
	close(l.gone)
	c.lose(l)
}

// lose notes that a link is no good any more, so that the next call makes another.
func (c *connection) lose(l *link) {
	c.mu.Lock()
	if c.link != l {
		c.mu.Unlock()
		return
	}
	c.link = nil
	c.why = c.explain(c.base, l, fmt.Errorf("server %s ended", c.server.Name))
	if time.Since(l.began) > stable {
		c.failures, c.notUntil = 0, time.Time{}
	} else if c.failures == 0 {
		c.failures = 1 // the first time is not held against it
	} else {
		c.delay()
	}
	why := c.why
	c.mu.Unlock()
	c.notify(ServerEnded, "%v", why)
}

// relist keeps what is known of the server's tools up to date.
func (c *connection) relist(l *link) {
	for {
		select {
		case <-l.stale:
		case <-l.gone:
			return
		}
		ctx, cancel := context.WithTimeout(c.base, c.server.connectTimeout())
		defs, err := c.list(ctx, l.session)
		cancel()
		if err == nil {
			c.mu.Lock()
			old := c.defs
			c.defs = defs
			c.mu.Unlock()
			c.compare(old, defs)
		}
		timer := time.NewTimer(relistGap) // a server may say so without end
		select {
		case <-timer.C:
		case <-l.gone:
			timer.Stop()
			return
		}
	}
}

// current returns what the server says of a tool now.
func (c *connection) current(name string) (definition, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.defs[name]
	return d, ok
}

// known returns what the server's tools are, or nil if it was never there.
func (c *connection) known() map[string]definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.defs
}

// close ends calls, the link, and all goroutines of the connection.
func (c *connection) close() {
	c.mu.Lock()
	c.stop(errClosed)
	c.mu.Unlock()
	c.wg.Wait()
}
