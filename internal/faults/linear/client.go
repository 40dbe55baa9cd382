package linear

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/faultstore"
)

// Store is what a history is taken of. Its clock must stand still.
type Store interface {
	engine.Journal
	engine.Leaser
}

// Plan says what clients do to a store.
type Plan struct {
	Seed       uint64
	Clients    int
	Threads    int
	Operations int // of all clients together
	// Impatience is the share of calls, from 0 to 1, whose context ends after a random
	// part of a millisecond.
	Impatience float64
	// Patience ends every call; 0: none. A store that may never answer needs it.
	Patience time.Duration
}

// History is what clients asked for and were told.
type History struct {
	Operations []porcupine.Operation
	Won        int // commits acknowledged
	Refused    int // calls that somebody else's was faster than
	Unknown    int
}

// never is when an unknown outcome is known.
const never = math.MaxInt64

// Record runs clients against an empty store. An error means that a client was told
// something that the contract has no place for.
func Record(ctx context.Context, store Store, p Plan) (History, error) {
	r := &recorder{store: store, plan: p}
	clients := make([]*client, p.Clients)
	failures := make([]error, p.Clients)
	var group sync.WaitGroup
	for n := range clients {
		clients[n] = &client{
			recorder: r, number: n,
			random:  rand.New(rand.NewPCG(p.Seed, uint64(n))),
			threads: map[string]*belief{},
		}
		group.Go(func() {
			for r.left.Add(1) <= int64(p.Operations) && failures[n] == nil && ctx.Err() == nil {
				failures[n] = clients[n].act(ctx)
			}
		})
	}
	group.Wait()
	if faulty, is := store.(*faultstore.Store); is {
		faulty.Reopen(nil)
		faulty.Flush(ctx)
	}
	// Whatever is still unexplained shows in a last look at each thread.
	last := &client{recorder: r, number: p.Clients, threads: map[string]*belief{}}
	var final error
	for n := range p.Threads {
		for len(last.history) <= n && final == nil && ctx.Err() == nil {
			final = last.look(ctx, r.thread(n)) // until it is answered
		}
	}
	var h History
	for _, c := range append(clients, last) {
		h.Operations = append(h.Operations, c.history...)
		h.Won += c.won
		h.Refused += c.refused
		h.Unknown += c.unknown
	}
	return h, errors.Join(errors.Join(failures...), final, ctx.Err())
}

func (r *recorder) thread(n int) string { return fmt.Sprintf("t%d", n) }

type recorder struct {
	store Store
	plan  Plan
	left  atomic.Int64
	clock atomic.Int64 // counts calls and answers, which is all the time that matters
}

// client does one thing after the other.
type client struct {
	*recorder
	number  int
	random  *rand.Rand
	threads map[string]*belief
	history []porcupine.Operation

	won, refused, unknown int
}

// belief is where a client thinks that a thread is.
type belief struct {
	base, epoch uint64
	sent        *engine.JournalCommit // its newest commit
	lease       engine.Lease
	lost        bool // it does not know the epoch
}

// act does one random thing.
func (c *client) act(ctx context.Context) error {
	name := c.thread(c.random.IntN(c.plan.Threads))
	b := c.threads[name]
	if b == nil {
		b = &belief{}
		c.threads[name] = b
	}
	if b.lost {
		return c.look(ctx, name)
	}
	switch k := c.random.IntN(100); {
	case k < 8 && b.sent != nil:
		return c.send(ctx, *b.sent, b)
	case k < 12 && b.base > 1:
		return c.send(ctx, c.commit(name, b.base-1-c.random.Uint64N(min(b.base-1, 3)), b.epoch), b)
	case k < 14 && b.epoch > 0:
		return c.send(ctx, c.commit(name, b.base, c.random.Uint64N(b.epoch)), b)
	case k < 32:
		return c.look(ctx, name)
	case k < 37:
		return c.acquire(ctx, name, b)
	case k < 41 && b.lease.Epoch > 0:
		return c.renew(ctx, b)
	case k < 46 && b.lease.Epoch > 0:
		return c.release(ctx, b)
	default:
		return c.send(ctx, c.commit(name, b.base, b.epoch), b)
	}
}

func (c *client) commit(name string, base, epoch uint64) engine.JournalCommit {
	commit := engine.JournalCommit{Thread: name, Base: base, Epoch: epoch}
	binary.LittleEndian.PutUint64(commit.ID[:], c.random.Uint64()|1)
	binary.LittleEndian.PutUint64(commit.ID[8:], c.random.Uint64())
	commit.Record = recordOf(commit.ID)
	if c.random.IntN(12) == 0 {
		commit.Snapshot = recordOf(commit.ID)
	}
	return commit
}

// recordOf makes a record that tells its id.
func recordOf(id [16]byte) []byte { return append([]byte{1}, id[:]...) }

func (c *client) send(ctx context.Context, commit engine.JournalCommit, b *belief) error {
	b.sent = &commit
	return c.perform(ctx, call{
		op: opAppend, thread: commit.Thread, id: commit.ID,
		base: commit.Base, epoch: commit.Epoch, snapshot: commit.Snapshot != nil,
	}, func(ctx context.Context) (a answer, err error) {
		a.revision, err = c.store.Append(ctx, commit)
		var where *engine.JournalConflict
		switch {
		case err == nil:
			b.base = a.revision
			c.won++
		case errors.As(err, &where):
			a.revision, b.base = where.Have, where.Have
		case errors.Is(err, engine.ErrFenced):
			b.lost = true
		}
		return a, err
	})
}

func (c *client) look(ctx context.Context, name string) error {
	ask := call{op: opLoad, thread: name}
	b := c.threads[name]
	if b != nil && c.random.IntN(2) == 0 {
		ask.atLeast = b.base
	}
	return c.perform(ctx, ask, func(ctx context.Context) (answer, error) {
		i, err := c.store.Load(ctx, name, ask.atLeast)
		if err == nil && b != nil {
			b.base, b.epoch, b.lost = i.Revision, i.Epoch, false
		}
		return answer{image: summary(i)}, err
	})
}

// summary keeps of an image what the model compares.
func summary(i engine.JournalImage) *image {
	s := &image{revision: i.Revision, epoch: i.Epoch, snapshotAt: i.SnapshotAt, lastID: i.LastID}
	if i.SnapshotAt > 0 {
		s.damaged = len(i.Snapshot) != 17 || copy(s.snapshotID[:], i.Snapshot[min(1, len(i.Snapshot)):]) != 16
	}
	next := i.SnapshotAt
	for _, r := range i.Tail {
		next++
		whole := len(r.Record) == 0 || string(r.Record) == string(recordOf(r.ID))
		s.damaged = s.damaged || !whole || r.Revision != next
		s.tail = append(s.tail, r.ID)
	}
	return s
}

// ttl returns a time to live that is over at once, or one that never is.
func (c *client) ttl() (ttl time.Duration, runs bool) {
	if c.random.IntN(3) > 0 {
		return 0, false
	}
	return time.Hour, true
}

func (c *client) acquire(ctx context.Context, name string, b *belief) error {
	owner := fmt.Sprintf("c%d", c.number)
	ttl, runs := c.ttl()
	return c.perform(ctx, call{op: opAcquire, thread: name, owner: owner, runs: runs}, func(ctx context.Context) (answer, error) {
		lease, err := c.store.Acquire(ctx, name, owner, ttl)
		var other *engine.LeaseHeld
		switch {
		case err == nil:
			b.lease, b.base, b.epoch = lease, lease.Epoch, lease.Epoch
		case errors.As(err, &other):
			return answer{owner: other.Owner}, err
		}
		return answer{revision: lease.Epoch}, err
	})
}

func (c *client) renew(ctx context.Context, b *belief) error {
	l := b.lease
	ttl, runs := c.ttl()
	return c.perform(ctx, call{op: opRenew, thread: l.Thread, owner: l.Owner, epoch: l.Epoch, runs: runs}, func(ctx context.Context) (answer, error) {
		next, err := c.store.Renew(ctx, l, ttl)
		return answer{revision: next.Epoch}, err
	})
}

func (c *client) release(ctx context.Context, b *belief) error {
	l := b.lease
	if c.random.IntN(2) == 0 {
		b.lease = engine.Lease{} // else it is renewed or released once more
	}
	return c.perform(ctx, call{op: opRelease, thread: l.Thread, owner: l.Owner, epoch: l.Epoch}, func(ctx context.Context) (answer, error) {
		return answer{}, c.store.Release(ctx, l)
	})
}

// yield lets other clients go first now and then. A store in memory answers so fast
// that calls would hardly overlap otherwise.
func (c *client) yield() {
	if c.random != nil && c.random.IntN(2) == 0 {
		runtime.Gosched()
	}
}

// perform makes a call and writes down how it ended.
func (c *client) perform(ctx context.Context, ask call, do func(ctx context.Context) (answer, error)) error {
	limit := c.plan.Patience
	if c.random != nil && c.random.Float64() < c.plan.Impatience {
		limit = time.Duration(c.random.IntN(int(time.Millisecond)))
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	began := c.clock.Add(1)
	c.yield()
	a, err := do(ctx)
	c.yield()
	ended := c.clock.Add(1)
	switch {
	case err == nil:
		a.how = done
	case errors.Is(err, engine.ErrUnknownOutcome):
		a.how, ended = unknown, never
		c.unknown++
	case errors.Is(err, engine.ErrJournalConflict):
		a.how = conflict
	case errors.Is(err, engine.ErrFenced):
		a.how = fenced
	case errors.Is(err, engine.ErrLeaseHeld):
		a.how = held
	}
	if a.how == conflict || a.how == fenced || a.how == held {
		c.refused++
	}
	if errors.Is(err, faultstore.ErrCrashed) {
		if faulty, is := c.store.(*faultstore.Store); is {
			faulty.Reopen(nil)
		}
	}
	switch {
	case a.how == "" && (errors.Is(err, faultstore.ErrInjected) || errors.Is(err, faultstore.ErrCrashed) || ctx.Err() != nil):
		return nil // it was told that nothing was done, and if something was, others see it
	case a.how == "":
		return fmt.Errorf("linear: %s of %s by client %d: %w", ask.op, ask.thread, c.number, err)
	case ask.op == opLoad && a.how != done:
		return nil
	}
	c.history = append(c.history, porcupine.Operation{ClientId: c.number, Input: ask, Call: began, Output: a, Return: ended})
	return nil
}
