package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
)

// ClientConfig configures a client. Journal is required.
type ClientConfig struct {
	// Journal is the store that the workers share. It must be an Outbox.
	Journal store.Journal
	// Vault keeps the values of decisions, which may be secrets, out of the inbox. The
	// workers need the same one. Without it, an answer to a secret ticket is refused.
	Vault engine.Vault
	// Timeout is for one call of the store: 10 s.
	Timeout time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// callTimeout is the standard of Timeout.
const callTimeout = 10 * time.Second

// Client submits activations and tells what becomes of them. It needs no worker in its
// process, and no engine. It is safe for concurrent use.
type Client struct {
	boxes
	config ClientConfig
	bell   bell
	reader *engine.Engine // only opens threads
}

// NewClient returns a client of the workers on a store.
func NewClient(c ClientConfig) (*Client, error) {
	if c.Journal == nil {
		return nil, fmt.Errorf("%w: ClientConfig.Journal is missing", engine.ErrConfig)
	}
	if _, ok := c.Journal.(store.Outbox); !ok {
		return nil, fmt.Errorf("%w: ClientConfig.Journal keeps no effects, so no worker would learn of an activation", engine.ErrConfig)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Timeout <= 0 {
		c.Timeout = callTimeout
	}
	reader, err := engine.New(engine.Config{Journal: c.Journal, Now: c.Now, Plugins: []engine.Plugin{Plugin()}})
	if err != nil {
		return nil, err
	}
	return &Client{boxes{c.Journal, c.Now, c.Timeout}, c, newBell(c.Journal, c.Timeout), reader}, nil
}

// Submit puts an activation into its thread's inbox. When it returns without error, the
// activation is kept there and will be applied exactly once. The error is ErrActivation
// for one that makes no sense, ErrFull when too many wait, ErrSecret for a secret that
// has no vault to go to. After ErrUnknownOutcome the activation may be there all the same:
// submit it again with the same Key, which it should have had.
func (c *Client) Submit(ctx context.Context, a Activation) (Receipt, error) {
	if err := a.check(); err != nil {
		return Receipt{}, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	e := newEntry(a, id, c.now())
	if err := c.hide(ctx, a.Thread, e.Decisions); err != nil {
		return Receipt{}, err
	}
	return c.submit(ctx, a.Thread, e, nil)
}

// submit appends an entry, and drops the dead ones that it takes the place of.
func (c *Client) submit(ctx context.Context, thread string, e entry, instead []uint64) (r Receipt, err error) {
	_, err = c.commit(ctx, thread, func(b *box) (*change, error) {
		for _, s := range b.Seen {
			// By its own id it is recognised when an append landed that told nobody.
			if mine := s.ID == e.ID; mine || e.Key != "" && s.Key == e.Key {
				r = Receipt{Thread: thread, Seq: s.Seq, Run: s.ID, Repeated: !mine}
				return nil, nil
			}
		}
		for _, seq := range instead {
			if find(b.Dead, seq) < 0 {
				return nil, fmt.Errorf("%w: activation %d of thread %s", ErrNotDead, seq, thread)
			}
		}
		if len(b.Pending) >= MaxPending && e.Kind != KindCancel {
			return nil, ErrFull
		}
		e.Seq = b.revision + 1
		r = e.receipt(thread)
		rec := record{Submit: &e, Drop: instead}
		return &change{record: rec, effects: []store.Effect{e.wakeup()}, settles: instead}, nil
	})
	if err != nil {
		return Receipt{}, err
	}
	c.bell.ring(ctx, workersTopic, notice{Lane: e.lane().String(), Thread: thread, Cancel: e.Kind == KindCancel})
	return r, nil
}

// Cancel submits a KindCancel of high priority.
func (c *Client) Cancel(ctx context.Context, thread, reason string) (Receipt, error) {
	return c.Submit(ctx, Activation{Thread: thread, Kind: KindCancel, Reason: reason, Priority: High})
}

var (
	// ErrNotDead is returned by Requeue for an activation that was not given up.
	ErrNotDead = errors.New("worker: the activation was not given up, or is forgotten")
	// ErrSecret is returned for a secret answer without ClientConfig.Vault.
	ErrSecret = errors.New("worker: a secret answer needs ClientConfig.Vault, or it would stand in the inbox for all to read")
	// ErrForgotten is returned for an activation of which the inbox knows nothing any more.
	ErrForgotten = errors.New("worker: the thread's inbox does not know the activation (any more)")
)

// Requeue submits an activation again that was given up. It is a new one, behind those
// that wait, with a new run.
func (c *Client) Requeue(ctx context.Context, thread string, seq uint64) (Receipt, error) {
	b, err := c.load(ctx, thread, 0)
	if err != nil {
		return Receipt{}, err
	}
	i := find(b.Dead, seq)
	if i < 0 {
		return Receipt{}, fmt.Errorf("%w: activation %d of thread %s", ErrNotDead, seq, thread)
	}
	a := b.Dead[i].activation(thread)
	a.Key, a.NotBefore = "", time.Time{}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return c.submit(ctx, thread, newEntry(a, id, c.now()), []uint64{seq})
}

// hide moves the values of decisions into the vault.
func (c *Client) hide(ctx context.Context, thread string, ds []decision) error {
	valued := func(d decision) bool { return d.Answer.Value != "" }
	if !slices.ContainsFunc(ds, valued) {
		return nil
	}
	if c.config.Vault == nil {
		th, err := c.reader.OpenThread(ctx, thread)
		if err != nil {
			return err
		}
		tickets := th.Tickets()
		for _, d := range ds {
			meant := func(t gate.Ticket) bool {
				return t.Kind == gate.Secret && cmp.Or(d.Answer.Ticket, t.ID) == t.ID && cmp.Or(d.Call, t.Call) == t.Call
			}
			if valued(d) && slices.ContainsFunc(tickets, meant) {
				return ErrSecret
			}
		}
		return nil
	}
	for i := range ds {
		if a := &ds[i].Answer; a.Value != "" {
			handle, err := c.config.Vault.Keep(ctx, thread, string(a.Value))
			if err != nil {
				return engine.ErrVault // the cause might show the secret
			}
			a.Value, a.Handle = "", handle
		}
	}
	return nil
}

// reveal is the reverse of hide.
func reveal(ctx context.Context, vault engine.Vault, ds []engine.Decision) error {
	for i := range ds {
		a := &ds[i].Answer
		if a.Handle == "" {
			continue
		}
		if vault == nil {
			return errors.New("worker: the decisions are in a vault; Config.Vault is missing")
		}
		value, err := vault.Reveal(ctx, a.Handle)
		if err != nil {
			return engine.ErrVault // the cause might show the secret
		}
		a.Value, a.Handle = inference.JSON(value), ""
	}
	return nil
}

// Status is where a thread and its inbox stand.
type Status struct {
	Thread    string
	Agent     string          // that runs, or ran last
	Lifecycle phase.Lifecycle // of the last run
	Tickets   []gate.Ticket   // open questions
	Pending   []Item          // activations that are not applied or at work, in order
	Dead      []Item          // given up, oldest first
	Done      []Outcome       // the latest ones, oldest first
}

// Item is an activation in an inbox.
type Item struct {
	Receipt
	Activation Activation
	Time       time.Time // when it was submitted
	Attempts   int       // that came to nothing
	RetryAt    time.Time // of the next one
	Error      string    // of the last one
}

// Status tells where a thread and its inbox stand. A thread that nobody knows is empty.
func (c *Client) Status(ctx context.Context, thread string) (Status, error) {
	b, err := c.load(ctx, thread, 0)
	if err != nil {
		return Status{}, err
	}
	th, err := c.reader.OpenThread(ctx, thread)
	if err != nil {
		return Status{}, err
	}
	items := func(list []entry) (items []Item) {
		for _, e := range list {
			items = append(items, Item{e.receipt(thread), e.activation(thread), e.Time, e.Attempts, e.RetryAt, e.Error})
		}
		return items
	}
	return Status{
		Thread: thread, Agent: th.Agent(), Lifecycle: phase.RunLifecycle.Get(th.Snapshot()), Tickets: th.Tickets(),
		Pending: items(b.Pending), Dead: items(b.Dead), Done: b.Done,
	}, nil
}

// awaitPoll is how often Await looks at the inbox when no notice comes.
const awaitPoll = time.Second

// Await waits until an activation has its outcome, or ctx ends. The outcome of an
// activation that started a run which waits for answers is that it waits.
func (c *Client) Await(ctx context.Context, r Receipt) (Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var notices <-chan []byte
	if c.bell.Notifier != nil {
		notices, _ = c.bell.Notifier.Listen(ctx, threadTopic(r.Thread)) // without it, looking has to do
	}
	for {
		b, err := c.load(ctx, r.Thread, 0)
		if err != nil {
			return Outcome{}, err
		}
		o, known := b.outcome(r.Seq)
		if !known && r.Seq <= b.revision {
			return o, fmt.Errorf("%w: %d of thread %s", ErrForgotten, r.Seq, r.Thread)
		}
		if known && o.Fate != Pending {
			return o, nil
		}
		if notices, err = untilDone(ctx, notices); err != nil {
			return Outcome{}, err
		}
	}
}

// untilDone waits for word that an activation is done, or for the time of another look.
func untilDone(ctx context.Context, notices <-chan []byte) (<-chan []byte, error) {
	timer := time.NewTimer(awaitPoll)
	defer timer.Stop()
	for {
		select {
		case data, ok := <-notices:
			if !ok {
				notices = nil
			} else if f, err := decodeFrame(data); err != nil || !f.Done {
				continue
			} else {
				return notices, nil
			}
		case <-timer.C:
			return notices, nil
		case <-ctx.Done():
			return notices, context.Cause(ctx)
		}
	}
}

// LaneDepth is a lane and what waits in it.
type LaneDepth struct {
	Lane
	store.Depth
}

// Lanes returns the lanes that hold wake-ups other than dead ones. The store must be a
// Queue; else the error is errors.ErrUnsupported.
func (c *Client) Lanes(ctx context.Context) ([]LaneDepth, error) { return c.lanes(ctx) }

func (s boxes) lanes(ctx context.Context) (list []LaneDepth, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	queue, ok := s.journal.(store.Queue)
	if !ok {
		return nil, fmt.Errorf("worker: the store cannot list lanes: %w", errors.ErrUnsupported)
	}
	names, err := queue.Lanes(ctx, lanePrefix)
	for _, name := range names {
		if l, ok := ParseLane(name); ok && err == nil {
			var d store.Depth
			d, err = queue.Depth(ctx, name)
			list = append(list, LaneDepth{l, d})
		}
	}
	return list, err
}

// Delete drops a thread and its inbox with all that waits there. A run that a worker has
// under way breaks off at its next commit.
func (c *Client) Delete(ctx context.Context, thread string) error {
	if err := c.journal.Delete(ctx, InboxPrefix+thread); err != nil {
		return err
	}
	return c.journal.Delete(ctx, thread)
}
