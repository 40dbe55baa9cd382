package served

import (
	"context"
	"fmt"
	"net/rpc"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// Client is a store that another process has. It is safe for concurrent use.
type Client struct {
	name   string
	rpc    *rpc.Client
	caps   engine.JournalCaps
	closed atomic.Bool
}

var _ Store = (*Client)(nil)

// Dial connects to the store at a socket. The server's log knows the client by name.
func Dial(path, name string) (*Client, error) {
	conn, err := rpc.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("served: %w", err)
	}
	c := &Client{name: name, rpc: conn}
	r, err := c.call(context.Background(), "Caps", Ask{})
	c.caps = r.Caps
	c.caps.MultiProcess = true
	return c, err
}

// call asks the server. When ctx ends first, nobody knows what became of it.
func (c *Client) call(ctx context.Context, method string, a Ask) (*Reply, error) {
	r := new(Reply)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	a.Client = c.name
	pending := c.rpc.Go("Store."+method, &a, r, make(chan *rpc.Call, 1))
	select {
	case <-pending.Done:
	case <-ctx.Done():
		return new(Reply), fmt.Errorf("served: %s: %w: %w", method, engine.ErrUnknownOutcome, context.Cause(ctx))
	}
	switch {
	case pending.Error != nil && c.closed.Load():
		return r, fmt.Errorf("served: %s: %w: %w", method, engine.ErrJournalClosed, pending.Error)
	case pending.Error != nil:
		return r, fmt.Errorf("served: %s: %w: %w", method, engine.ErrUnknownOutcome, pending.Error)
	case r.Fault != nil:
		return r, faultError{r.Fault}
	}
	return r, nil
}

// Append implements [engine.Journal].
func (c *Client) Append(ctx context.Context, commit engine.JournalCommit) (uint64, error) {
	r, err := c.call(ctx, "Append", Ask{Commit: mapCommit(commit, pack)})
	return r.Revision, err
}

// Load implements [engine.Journal].
func (c *Client) Load(ctx context.Context, thread string, atLeast uint64) (engine.JournalImage, error) {
	a := Ask{Thread: thread, Revision: atLeast}
	if end, ok := ctx.Deadline(); ok {
		a.TTL = time.Until(end)
	}
	r, err := c.call(ctx, "Load", a)
	if err != nil && ctx.Err() != nil && atLeast > 0 {
		err = fmt.Errorf("served: thread %s did not reach revision %d in time: %w: %w", thread, atLeast, engine.ErrBehind, context.Cause(ctx))
	}
	return mapImage(r.Image, unpack), err
}

// LoadAt returns a thread as it was.
func (c *Client) LoadAt(ctx context.Context, thread string, revision uint64) (engine.JournalImage, error) {
	r, err := c.call(ctx, "LoadAt", Ask{Thread: thread, Revision: revision})
	return mapImage(r.Image, unpack), err
}

// Threads implements [engine.Journal].
func (c *Client) Threads(ctx context.Context, after string, limit int) ([]string, error) {
	r, err := c.call(ctx, "Threads", Ask{Thread: after, Limit: limit})
	return r.Threads, err
}

// Prune implements [engine.Journal].
func (c *Client) Prune(ctx context.Context, thread string, p engine.PrunePolicy) error {
	_, err := c.call(ctx, "Prune", Ask{Thread: thread, Policy: p})
	return err
}

// Delete implements [engine.Journal].
func (c *Client) Delete(ctx context.Context, thread string) error {
	_, err := c.call(ctx, "Delete", Ask{Thread: thread})
	return err
}

// Caps implements [engine.Journal].
func (c *Client) Caps() engine.JournalCaps { return c.caps }

// Close disconnects; the store stays open.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return fmt.Errorf("served: %w", engine.ErrJournalClosed)
	}
	return c.rpc.Close()
}

// Acquire implements [engine.Leaser].
func (c *Client) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (engine.Lease, error) {
	r, err := c.call(ctx, "Acquire", Ask{Thread: thread, Lease: engine.Lease{Owner: owner}, TTL: ttl})
	return r.Lease, err
}

// Renew implements [engine.Leaser].
func (c *Client) Renew(ctx context.Context, l engine.Lease, ttl time.Duration) (engine.Lease, error) {
	r, err := c.call(ctx, "Renew", Ask{Lease: l, TTL: ttl})
	return r.Lease, err
}

// Release implements [engine.Leaser].
func (c *Client) Release(ctx context.Context, l engine.Lease) error {
	_, err := c.call(ctx, "Release", Ask{Lease: l})
	return err
}

// Claim implements [engine.Outbox].
func (c *Client) Claim(ctx context.Context, lane, _ string, limit int, ttl time.Duration) ([]engine.Claim, error) {
	r, err := c.call(ctx, "Claim", Ask{Lane: lane, Limit: limit, TTL: ttl})
	return mapClaims(r.Claims, unpack), err
}

// Settle implements [engine.Outbox].
func (c *Client) Settle(ctx context.Context, claim engine.Claim, how engine.Settlement) error {
	_, err := c.call(ctx, "Settle", Ask{Claim: claim, How: how})
	return err
}
