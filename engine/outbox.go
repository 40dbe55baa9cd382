package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/state"
)

// effectLane is the lane of the outbox that durable effects are in.
const effectLane = "effects"

// note is what a batch with effects carries to the journal.
type note struct {
	run, owner string
	effects    []effects.Effect
}

// parcel is the body of an outbox entry.
type parcel struct {
	ID      effects.ID      `json:"id"`
	Effect  string          `json:"effect"`
	Owner   string          `json:"owner"`
	Payload json.RawMessage `json:"payload"`
}

// outgoing adds the durable effects of a commit's batches to it and returns their
// ids. Ids count all effects of the commit, as deliveries does.
func (e *Engine) outgoing(commit *JournalCommit, revision uint64, notes []any) (ids []effects.ID, err error) {
	if _, ok := e.config.Journal.(Outbox); !ok || len(notes) == 0 {
		return nil, nil
	}
	var after time.Time
	if e.config.Journal.Caps().MultiProcess {
		after = e.config.Now().Add(e.config.Limits.OutboxDelay) // others leave it to this process for a while
	}
	index := 0
	for _, n := range notes {
		n := n.(note)
		for _, f := range n.effects {
			if f.Durable() {
				p := parcel{ID: effects.ID{Run: n.run, Revision: revision, Index: index}, Effect: f.Name(), Owner: n.owner}
				if p.Payload, err = f.JSON(); err != nil {
					return nil, err
				}
				body, err := encodeRecord(p)
				if err != nil {
					return nil, err
				}
				ids = append(ids, p.ID)
				commit.Effects = append(commit.Effects, JournalEffect{Lane: effectLane, NotBefore: after, Body: body})
			}
			index++
		}
	}
	return ids, nil
}

// sent knows the outbox entries of one thread that this process delivers itself,
// right after their commit.
type sent struct {
	mu   sync.Mutex
	refs map[effects.ID]EffectRef // not delivered yet
	done []EffectRef              // delivered, to be settled with the next append
	all  *sync.Map                // the same of all threads of the engine, so that DeliverOutbox leaves them alone
}

func (s *sent) add(ids []effects.ID, thread string, revision uint64) {
	if len(ids) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs == nil {
		s.refs = map[effects.ID]EffectRef{}
	}
	for i, id := range ids {
		s.refs[id] = EffectRef{Thread: thread, Revision: revision, Index: uint32(i)}
		s.all.Store(s.refs[id], true)
	}
}

// over notes how a delivery went. One that failed stays in the outbox.
func (s *sent) over(o effects.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref, ok := s.refs[o.ID]
	if !ok {
		return
	}
	delete(s.refs, o.ID)
	if o.Err == nil {
		s.done = append(s.done, ref)
	} else {
		s.all.Delete(ref)
	}
}

// over is [sent.over] of a thread that may have no journal.
func (c *chain) over(o effects.Outcome) {
	if c != nil {
		c.sent.over(o)
	}
}

func (s *sent) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.done) > 0
}

func (s *sent) take() []EffectRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.done
	s.done = nil
	return done
}

func (s *sent) settled(refs []EffectRef) {
	for _, ref := range refs {
		s.all.Delete(ref)
	}
}

// unsettled takes back what an append did not settle: for the next one, or for
// whoever reads the outbox if there will be none.
func (s *sent) unsettled(refs []EffectRef, last bool) {
	if last {
		s.settled(refs)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = slices.Concat(refs, s.done)
}

// OutboxReport says what a call of DeliverOutbox did.
type OutboxReport struct {
	Delivered int
	Failed    int // to be tried again later
	Dead      int // given up after Limits.EffectTries; the outbox keeps them for inspection
}

const (
	outboxBatch   = 64
	outboxClaim   = time.Minute // how long a claimed effect is left to one worker
	outboxLongest = time.Hour   // between two tries
)

// DeliverOutbox delivers the durable effects that are due in the journal's outbox:
// those of a process that ended before it had delivered them, and those whose handler
// failed. Call it after a start, and from time to time. It returns when nothing is due
// any more or ctx ends; several engines may do so at once. A failed delivery is tried
// again after a delay that doubles, and given up after Limits.EffectTries.
//
// A handler gets the effect's payload and id as they were (effects.IDFrom), and the
// state of its thread as it is now. It may get an effect that it had already, since
// nobody knows how far a process came that ended: an outbox delivers at least once.
func (e *Engine) DeliverOutbox(ctx context.Context) (OutboxReport, error) {
	var rep OutboxReport
	outbox, ok := e.config.Journal.(Outbox)
	if !ok {
		return rep, nil
	}
	worker := cmp.Or(e.config.Owner, e.config.NewID())
	limit := max(outboxClaim, 2*e.config.Limits.EffectTimeout)
	for {
		if e.closed.Load() {
			return rep, ErrClosed
		}
		claims, err := outbox.Claim(ctx, effectLane, worker, outboxBatch, limit)
		if err != nil || len(claims) == 0 {
			return rep, err
		}
		threads := map[string]*state.Snapshot{} // read once for each batch
		for _, c := range claims {
			if ctx.Err() != nil {
				return rep, context.Cause(ctx)
			}
			s := e.deliverClaim(ctx, c, threads, &rep)
			// Fenced: it took so long that another worker has it now.
			if err := outbox.Settle(ctx, c, s); err != nil && !errors.Is(err, ErrFenced) {
				return rep, err
			}
		}
	}
}

// deliverClaim delivers one outbox entry and says what is to become of it.
func (e *Engine) deliverClaim(ctx context.Context, c Claim, threads map[string]*state.Snapshot, rep *OutboxReport) Settlement {
	delay := min(time.Second<<min(c.Attempts-1, 12), outboxLongest)
	later := Settlement{RetryAt: e.config.Now().Add(delay)}
	if _, ours := e.underway.Load(c.Ref); ours {
		return later // its run is at it
	}
	err := e.deliverParcel(ctx, c, threads)
	switch {
	case err == nil:
		rep.Delivered++
		return Settlement{}
	case c.Attempts >= e.config.Limits.EffectTries:
		rep.Dead++
		later = Settlement{Dead: true}
	default:
		rep.Failed++
	}
	later.Error = err.Error()
	if log := e.config.Logger; log != nil {
		log.WarnContext(ctx, "effect not delivered", "ref", c.Ref.String(), "attempt", c.Attempts, "dead", later.Dead, "error", err)
	}
	return later
}

func (e *Engine) deliverParcel(ctx context.Context, c Claim, threads map[string]*state.Snapshot) error {
	var p parcel
	if err := decodeRecord(c.Effect.Body, &p); err != nil {
		return err
	}
	effect, err := e.effects.Restore(p.Effect, p.Payload)
	if err != nil {
		return err
	}
	snap, ok := threads[c.Ref.Thread]
	if !ok {
		t, err := e.OpenThread(ctx, c.Ref.Thread)
		if err != nil {
			return err
		}
		snap = t.Snapshot()
		threads[c.Ref.Thread] = snap
	}
	d, err := e.dispatcher(effects.Inline, nil)
	if err != nil {
		return err
	}
	out := e.deliver(ctx, d, []effects.Delivery{{ID: p.ID, Effect: effect, Owner: p.Owner, Snapshot: snap}})
	if len(out) != 1 {
		return fmt.Errorf("%w: effect %s", effects.ErrUndelivered, p.ID)
	}
	return out[0].Err
}
