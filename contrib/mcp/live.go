package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/phase"
)

var (
	errLate    = errors.New("mcp: the call took longer than its server's timeout")
	errClosed  = errors.New("the servers were closed")
	errUnasked = errors.New("mcp: nobody answered the server's question in time, or its run ended")
)

// callKey says which call of which run a live call belongs to.
type callKey struct {
	thread, run string
	step        int
	call        string
}

func keyOf(pc *phase.Context) callKey {
	run := pc.Run()
	return callKey{run.Thread, run.ID, run.Step, pc.Call().ID}
}

// origin is what made a call.
type origin struct {
	key  callKey
	tool string // the server's own name for it
}

// live is a call that was made to a server. It outlives the Call of its tool while the
// server's question waits for an answer.
type live struct {
	origin
	token  string
	ctx    context.Context
	cancel context.CancelCauseFunc
	clock  *time.Timer // cancels the call when its time is over
	left   time.Duration
	ran    time.Time // when the clock was started
	// patience cancels the call when nobody answers its question.
	patience *time.Timer
	asks     chan ask
	open     *ask // the question that is being asked
	done     chan struct{}
	res      *sdk.CallToolResult // once done
	err      error               // likewise
}

// ask is a server's question while a call runs.
type ask struct {
	params *sdk.ElicitParams
	reply  chan *sdk.ElicitResult // has room for one
}

// halt stops the clock while somebody is asked.
func (l *live) halt() {
	if l.clock.Stop() {
		l.left -= time.Since(l.ran)
	}
}

func (l *live) goOn() {
	l.ran = time.Now()
	l.clock.Reset(max(l.left, time.Second))
}

// lane lets the calls of a server through one after another.
type lane struct {
	mu      sync.Mutex
	holder  *live
	waiting bool          // the holder waits for an answer
	changed chan struct{} // closed when one of these changes
}

// enter waits for the lane. It does not wait for a person.
func (n *lane) enter(ctx context.Context, l *live) error {
	for {
		n.mu.Lock()
		if n.holder == nil {
			n.holder, n.waiting = l, false
			n.mu.Unlock()
			return nil
		}
		if n.waiting {
			n.mu.Unlock()
			return fmt.Errorf("%w: it waits for an answer about another call; try again when that is over", ErrDown)
		}
		if n.changed == nil {
			n.changed = make(chan struct{})
		}
		changed := n.changed
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (n *lane) set(l *live, waiting bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder == l {
		n.waiting = waiting
		n.wake()
	}
}

func (n *lane) leave(l *live) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder == l {
		n.holder = nil
		n.wake()
	}
}

func (n *lane) wake() {
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

func (n *lane) inside() *live {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.holder
}

// desk knows the live calls.
type desk struct {
	mu      sync.Mutex
	byToken map[string]origin
	ended   []string // tokens of calls that are over, oldest first
	parked  map[callKey]*live
}

func (d *desk) enter(l *live) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byToken == nil {
		d.byToken, d.parked = map[string]origin{}, map[callKey]*live{}
	}
	d.byToken[l.token] = l.origin
}

// leave lets the call be forgotten, but not at once: news of it may be on their way
// beside its result.
func (d *desk) leave(l *live) {
	const kept = 64
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended = append(d.ended, l.token); len(d.ended) > kept {
		delete(d.byToken, d.ended[0])
		d.ended = slices.Delete(d.ended, 0, 1)
	}
}

func (d *desk) park(l *live) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parked[l.key] = l
}

// take returns the parked call, which is parked no more.
func (d *desk) take(k callKey) *live {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.parked[k]
	delete(d.parked, k)
	return l
}

func (d *desk) has(k callKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parked[k] != nil
}

// progress passes on what a server says of a call. What is about no call under way is
// late or made up.
func (d *desk) progress(c *connection, p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	d.mu.Lock()
	from, ok := d.byToken[token]
	d.mu.Unlock()
	if !ok || c.opts.Progress == nil {
		return
	}
	c.opts.Progress(Progress{Server: c.server.Name, Tool: from.tool, Thread: from.key.thread, Run: from.key.run, Call: from.key.call,
		Done: p.Progress, Total: p.Total, Message: plain(p.Message, 1<<10)})
}

// start makes the call, in a goroutine of its own, since a write to a server may hang.
func (c *connection) start(ctx context.Context, link *link, key callKey, tool string, params *sdk.CallToolParams) (*live, error) {
	l := &live{origin: origin{key, tool}, token: strconv.FormatUint(rand.Uint64(), 36), left: c.server.timeout(),
		asks: make(chan ask), done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(c.base)
	if c.server.Elicit && link.asksInCalls() {
		bounded, stop := context.WithTimeoutCause(ctx, l.left, errLate)
		err := c.lane.enter(bounded, l)
		stop()
		if err != nil {
			l.cancel(err)
			return nil, err
		}
	}
	l.clock, l.ran = time.AfterFunc(l.left, func() { l.cancel(errLate) }), time.Now()
	c.desk.enter(l)
	params.SetProgressToken(l.token)
	go func() {
		defer close(l.done)
		defer c.lane.leave(l)
		defer c.desk.leave(l)
		defer l.clock.Stop()
		l.res, l.err = link.session.CallTool(l.ctx, params)
		if cause := context.Cause(l.ctx); errors.Is(cause, errClosed) && l.err != nil {
			l.err = fmt.Errorf("%w (%w)", ErrLost, cause)
		} else if cause != nil && l.err != nil {
			l.err = cause
		} else if c.lost(link, l.err) {
			l.err = fmt.Errorf("%w (%w)", ErrLost, c.reason())
		}
		l.cancel(nil)
	}()
	return l, nil
}

// lost reports whether it was the end of the link that ended a call, and sees to it
// that no other call uses it.
func (c *connection) lost(link *link, err error) bool {
	var answer *jsonrpc.Error
	switch {
	case err == nil || errors.As(err, &answer):
		return false
	case errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, sdk.ErrSessionMissing) || errors.Is(err, io.EOF):
		if !within(link.gone, time.Second) { // why it ended is known soon, mostly
			go link.close(c.limits.Close)
		}
		c.lose(link)
		return true
	}
	return within(link.gone, 100*time.Millisecond)
}

// reason says why there is no link.
func (c *connection) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		return errors.New("the connection was lost")
	}
	return c.why
}

// await returns when the call is over or asks something: then ask is not nil.
func (c *connection) await(ctx context.Context, l *live) (*ask, error) {
	select {
	case <-l.done:
		return nil, l.err
	case q := <-l.asks:
		l.halt()
		l.open = &q
		return &q, nil
	case <-l.ctx.Done(): // a write that hangs must not keep us
		if within(l.done, time.Second) {
			return nil, l.err
		}
		return nil, context.Cause(l.ctx)
	case <-ctx.Done():
		l.cancel(context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
}

// park keeps the call for the answer to its question, for a while.
func (c *connection) park(l *live) {
	c.lane.set(l, true)
	l.patience = time.AfterFunc(c.limits.Parked, func() {
		c.desk.take(l.key)
		l.cancel(errUnasked)
	})
	c.desk.park(l)
}

// unpark returns the parked call, or nil if it is not there any more.
func (c *connection) unpark(k callKey) *live {
	l := c.desk.take(k)
	if l == nil {
		return nil
	}
	l.patience.Stop()
	c.lane.set(l, false)
	return l
}
