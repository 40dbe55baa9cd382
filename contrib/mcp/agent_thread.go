package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/engine"
)

var errNoThread = errors.New("there is no such thread; leave it out to begin one")

const threadPrefix = "mcp-"

// kept is a thread in memory.
type kept struct {
	thread *engine.Thread
	owner  string // who began it, where clients are known
	used   time.Time
}

// client returns who the client is, where authentication tells.
func client(r *sdk.CallToolRequest) string {
	if r.Extra != nil && r.Extra.TokenInfo != nil {
		return r.Extra.TokenInfo.UserID
	}
	return ""
}

// begin makes a thread. Its id cannot be guessed, since it is all that a client needs to
// go on with it.
func (a *agent) begin(ctx context.Context, r *sdk.CallToolRequest) (*engine.Thread, error) {
	id := threadPrefix + rand.Text()
	open := func(_ context.Context, id string) (*engine.Thread, error) { return a.eng.NewThread(id) }
	if a.opts.OpenThread != nil {
		open = a.opts.OpenThread
	}
	th, err := open(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.keep(th, client(r)), nil
}

// keep returns the thread, or the one of the same id that is kept already.
func (a *agent) keep(th *engine.Thread, owner string) *engine.Thread {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k := a.threads[th.ID()]; k != nil {
		return k.thread
	}
	for len(a.threads) >= a.opts.Threads {
		oldest := ""
		for id, k := range a.threads {
			if !k.thread.Busy() && (oldest == "" || k.used.Before(a.threads[oldest].used)) {
				oldest = id
			}
		}
		if oldest == "" {
			break // all are busy, which Runs bounds
		}
		delete(a.threads, oldest)
	}
	a.threads[th.ID()] = &kept{th, owner, time.Now()}
	return th
}

// find returns a thread that was begun here, and by the same client.
func (a *agent) find(ctx context.Context, r *sdk.CallToolRequest, id string) (*engine.Thread, error) {
	a.mu.Lock()
	k := a.threads[id]
	if k != nil {
		k.used = time.Now()
	}
	a.mu.Unlock()
	switch {
	case k != nil && k.owner == client(r):
		return k.thread, nil
	// Who began a thread that is not in memory is not known, so it is for nobody where
	// clients are.
	case k != nil || a.opts.OpenThread == nil || client(r) != "" || !strings.HasPrefix(id, threadPrefix):
		return nil, errNoThread
	}
	th, err := a.opts.OpenThread(ctx, id)
	if err != nil {
		return nil, err
	}
	if th.Snapshot().Revision() == 0 { // a new one, of an id that somebody made up
		return nil, errNoThread
	}
	return a.keep(th, ""), nil
}
