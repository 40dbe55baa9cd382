package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/faultstore"
)

// conn is the way of one process to the store. It takes time, stands still while the
// process is paused, and is the place where a process dies.
type conn struct {
	w       *world
	p       *process
	appends atomic.Int64
	dieAt   int  // append at which the process dies; 0 for none
	dieLate bool // after the store has it
	calls   [slots]atomic.Int64

	mu     sync.Mutex
	acked  map[string]uint64 // last revision of the open thread that the process knows to be kept
	loaded map[string]uint64 // of the last load
}

var errDead = errors.New("sim: the process is dead")

// pass takes a call to the store in a slot and brings back the answer.
func pass[T any](ctx context.Context, c *conn, op, name string, slot int, do func(context.Context, store) (T, error)) (v T, err error) {
	var zero T
	d := c.w.dice.about("conn", c.p.name, op, int(c.calls[slot].Add(1)))
	delay := time.Duration(d.n(4, "way")) * time.Millisecond
	if d.chance(20, "slow") {
		delay = d.span(3*time.Second, "slow way")
	}
	if c.p.gone() {
		return zero, errDead
	}
	stops := c.w.plan.stops && !c.p.calm && slot == runSlot && d.chance(12, "stops")
	long, late := lease/2+d.span(3*lease, "stops for"), d.chance(500, "stops late")
	if stops && !late {
		c.p.stop(long) // before the call is sent
	}
	defer c.p.lag(ctx)
	if !c.p.waits(ctx, delay, slot) {
		return zero, cmp.Or(context.Cause(ctx), errDead)
	}
	bound, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.p.ctx, cancel)()
	v, err = do(bound, c.w.store())
	c.w.noticed(err)
	if stops && late {
		c.p.stop(long) // before the answer is heard
	}
	if stops && late || d.chance(100, "answer") {
		c.p.waits(ctx, d.span(200*time.Millisecond, "way back"), slot)
	}
	if c.p.gone() {
		err = errDead
	}
	if c.w.tracing() {
		c.w.trace(c.p.name, "%s %s: %v %s", op, name, brief(v), short(err))
	}
	if err != nil {
		return zero, err
	}
	return v, nil
}

func (c *conn) Append(ctx context.Context, commit engine.JournalCommit) (uint64, error) {
	dies := c.appends.Add(1) == int64(c.dieAt)
	rev, err := pass(ctx, c, "append", commit.Thread, slotOf(ctx), func(ctx context.Context, s store) (uint64, error) {
		if dies && !c.dieLate {
			c.p.die()
			return 0, errDead
		}
		c.w.ledger.sends(c.p.name, commit)
		if c.w.tracing() {
			c.w.trace(c.p.name, "append %x to %s at %d: %s", commit.ID[:2], commit.Thread, commit.Base, commit.Record)
		}
		rev, err := s.Append(ctx, commit)
		if dies {
			c.p.die()
		}
		return rev, err
	})
	switch {
	case c.p.gone() || ctx.Err() != nil: // nobody hears it
	case err == nil:
		c.w.ledger.acked(c.p.name, commit, rev)
		c.knows(commit.Thread, rev)
	default:
		c.w.ledger.refused(c.p.name, commit, err)
	}
	return rev, err
}

func (c *conn) Load(ctx context.Context, thread string, atLeast uint64) (engine.JournalImage, error) {
	image, err := pass(ctx, c, "load", thread, slotOf(ctx), func(ctx context.Context, s store) (engine.JournalImage, error) {
		return s.Load(ctx, thread, atLeast)
	})
	if err == nil && slotOf(ctx) == runSlot {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.loaded[thread] = image.Revision
	}
	return image, err
}

// knows notes the revision that the process's thread is at for certain.
func (c *conn) knows(thread string, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked[thread] = revision
}

// known returns that revision.
func (c *conn) known(thread string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked[thread]
}

// opened says that a thread was opened by the last load of it.
func (c *conn) opened(thread string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked[thread] = c.loaded[thread]
}

func (c *conn) Threads(ctx context.Context, after string, limit int) ([]string, error) {
	return pass(ctx, c, "threads", "", slotOf(ctx), func(ctx context.Context, s store) ([]string, error) {
		return s.Threads(ctx, after, limit)
	})
}

func (c *conn) Prune(ctx context.Context, thread string, policy engine.PrunePolicy) error {
	_, err := pass(ctx, c, "prune", thread, slotOf(ctx), func(ctx context.Context, s store) (none, error) {
		return none{}, s.Prune(ctx, thread, policy)
	})
	return err
}

func (c *conn) Delete(ctx context.Context, thread string) error {
	_, err := pass(ctx, c, "delete", thread, slotOf(ctx), func(ctx context.Context, s store) (none, error) {
		return none{}, s.Delete(ctx, thread)
	})
	return err
}

func (c *conn) Acquire(ctx context.Context, thread, owner string, ttl time.Duration) (engine.Lease, error) {
	l, err := pass(ctx, c, "acquire", thread, slotOf(ctx), func(ctx context.Context, s store) (engine.Lease, error) {
		return s.Acquire(ctx, thread, owner, ttl)
	})
	return l, err
}

func (c *conn) Renew(ctx context.Context, l engine.Lease, ttl time.Duration) (engine.Lease, error) {
	return pass(ctx, c, "renew", l.Thread, renewalSlot, func(ctx context.Context, s store) (engine.Lease, error) {
		return s.Renew(ctx, l, ttl)
	})
}

func (c *conn) Release(ctx context.Context, l engine.Lease) error {
	_, err := pass(ctx, c, "release", l.Thread, slotOf(ctx), func(ctx context.Context, s store) (none, error) {
		return none{}, s.Release(ctx, l)
	})
	return err
}

func (c *conn) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]engine.Claim, error) {
	return pass(ctx, c, "claim", lane, slotOf(ctx), func(ctx context.Context, s store) ([]engine.Claim, error) {
		return s.Claim(ctx, lane, worker, limit, ttl)
	})
}

func (c *conn) Settle(ctx context.Context, claim engine.Claim, how engine.Settlement) error {
	_, err := pass(ctx, c, "settle", claim.Ref.Thread, slotOf(ctx), func(ctx context.Context, s store) (none, error) {
		return none{}, s.Settle(ctx, claim, how)
	})
	return err
}

// LoadAt is for looks at the past.
func (c *conn) LoadAt(ctx context.Context, thread string, revision uint64) (engine.JournalImage, error) {
	return pass(ctx, c, "load at", thread, slotOf(ctx), func(ctx context.Context, _ store) (engine.JournalImage, error) {
		return c.w.memory.LoadAt(ctx, thread, revision)
	})
}

// Caps says what the plan says.
func (c *conn) Caps() engine.JournalCaps { return engine.JournalCaps{MultiProcess: c.w.plan.many} }

func (c *conn) Close() error { return nil }

// none is the answer of a call that has none.
type none struct{}

// brief prints an answer on one line.
func brief(v any) any {
	switch v := v.(type) {
	case engine.JournalImage:
		return fmt.Sprintf("revision %d, epoch %d,", v.Revision, v.Epoch)
	case []engine.Claim:
		return fmt.Sprintf("%d entries", len(v))
	case engine.Lease:
		return fmt.Sprintf("epoch %d", v.Epoch)
	case none:
		return ""
	}
	return v
}

// short prints an error on one line.
func short(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, faultstore.ErrCrashed):
		return "crashed"
	case errors.Is(err, engine.ErrUnknownOutcome):
		return "unknown"
	default:
		return err.Error()
	}
}
