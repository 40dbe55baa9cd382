package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/internal/ledger"
	"github.com/ddd26017/fixpoint/state"
)

// effectLane is the lane of the outbox that durable effects are in.
const effectLane = "effects"

// note is what a batch with effects carries to the journal.
type note struct {
	run, owner string
	effects    []effects.Effect
}

// deliveries appends the effects of the note. Their ids count all effects of the commit,
// of which to has those from first on.
func (n note) deliveries(to []effects.Delivery, first int, snap *state.Snapshot) []effects.Delivery {
	for _, e := range n.effects {
		id := effects.ID{Run: n.run, Revision: snap.Revision(), Index: len(to) - first}
		to = append(to, effects.Delivery{ID: id, Effect: e, Owner: n.owner, Snapshot: snap})
	}
	return to
}

// parcel is the body of an outbox entry.
type parcel struct {
	ID      effects.ID      `json:"id"`
	Effect  string          `json:"effect"`
	Owner   string          `json:"owner"`
	Payload json.RawMessage `json:"payload"`
}

// outbox reports whether the thread's effects have one.
func (c *chain) outbox() bool {
	if c == nil {
		return false
	}
	_, ok := c.eng.config.Journal.(Outbox)
	return ok
}

// pack adds the durable ones of the effects to a commit and returns their ids.
func (c *chain) pack(commit *JournalCommit, list []effects.Delivery) (ids []effects.ID, err error) {
	for _, d := range list {
		if !d.Effect.Durable() {
			continue
		}
		payload, err := d.Effect.JSON()
		if err != nil {
			return nil, err
		}
		body, err := encodeRecord(parcel{ID: d.ID, Effect: d.Effect.Name(), Owner: d.Owner, Payload: payload})
		if err != nil {
			return nil, err
		}
		entry := JournalEffect{Lane: effectLane, Body: body}
		if c.eng.config.Journal.Caps().MultiProcess {
			entry.NotBefore = c.eng.config.Now().Add(c.eng.config.Limits.OutboxDelay) // others leave it to this process for a while
		}
		commit.Effects, ids = append(commit.Effects, entry), append(ids, d.ID)
	}
	return ids, nil
}

// outlet is the chain that the run's effects go out by: that of the run at the top,
// since the threads of delegates are not kept.
func (r *run) outlet() *chain {
	for r.parent != nil {
		r = r.parent
	}
	return r.th.chain
}

// carry puts the durable effects of a delegate into the outbox before they are delivered.
func (r *run) carry(list []effects.Delivery) {
	c := r.outlet()
	if r.parent == nil || !c.outbox() {
		return
	}
	var commit JournalCommit
	ids, err := c.pack(&commit, list)
	if err == nil && len(ids) > 0 {
		c.mu.Lock()
		if err = c.broken; err == nil {
			err = c.append(&commit, ids)
		}
		c.mu.Unlock()
	}
	if err != nil {
		r.warn(scene{aside: true}, engineName, "effects of a delegate are delivered without a place in the outbox: %v", err)
	}
}

// sent knows the outbox entries of one thread that this process delivers itself, right
// after their commit. What was delivered is settled with the next append; what failed
// stays in the outbox. DeliverOutbox leaves alone what any of them has.
type sent = ledger.Ledger[effects.ID, EffectRef]

// over notes how a delivery went, where there is an outbox.
func (c *chain) over(o effects.Outcome) {
	if c != nil {
		c.sent.Done(o.ID, o.Err == nil)
	}
}

// OutboxReport says what a call of DeliverOutbox did.
type OutboxReport struct {
	Delivered int
	Failed    int // to be tried again later
	Dead      int // given up after Limits.EffectTries; the outbox keeps them for inspection
}

// outboxClaim is how long a claimed effect is left to one worker.
const outboxClaim = time.Minute

// DeliverOutbox delivers the durable effects that are due in the journal's outbox:
// those of a process that ended before it had delivered them, and those whose handler
// failed. Call it after a start, and from time to time. It returns when nothing is due
// any more or ctx ends; several engines may do so at once. A failed delivery is tried
// again after a delay that doubles, up to half an hour, and given up after
// Limits.EffectTries. Those that a run of this engine is about to deliver are left to it.
//
// A handler gets the effect's payload and id as they were (effects.IDFrom), and the
// state of its thread as it is now; for an effect of a delegate that is the thread of
// the run that it worked for. It may get an effect that it had already, since nobody
// knows how far a process came that ended: an outbox delivers at least once.
func (e *Engine) DeliverOutbox(ctx context.Context) (OutboxReport, error) {
	var rep OutboxReport
	outbox, ok := e.config.Journal.(Outbox)
	if !ok {
		return rep, nil
	}
	worker := cmp.Or(e.config.Owner, e.config.NewID())
	limits := &e.config.Limits
	for {
		if e.closed.Load() {
			return rep, ErrClosed
		}
		if ctx.Err() != nil {
			return rep, context.Cause(ctx)
		}
		// One at a time: a claim counts as a try, and none is left behind when this ends.
		claims, err := within(ctx, nil, limits.JournalTimeout, "Config.Journal", 0, func(ctx context.Context) ([]Claim, error) {
			return outbox.Claim(ctx, effectLane, worker, 1, max(outboxClaim, 2*limits.EffectTimeout))
		})
		if err != nil || len(claims) == 0 {
			return rep, err
		}
		for _, c := range claims {
			if _, ours := e.underway.Load(c.Ref); ours {
				continue // its run is at it; the claim keeps it from coming again at once
			}
			s := e.deliverClaim(ctx, c, &rep)
			_, err := surely(context.WithoutCancel(ctx), e, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, outbox.Settle(ctx, c, s)
			})
			// Fenced: it took so long that another worker has it now.
			if err != nil && !errors.Is(err, ErrFenced) {
				return rep, err
			}
		}
	}
}

// deliverClaim delivers one outbox entry and says what is to become of it.
func (e *Engine) deliverClaim(ctx context.Context, c Claim, rep *OutboxReport) (s Settlement) {
	err := e.deliverParcel(ctx, c)
	switch {
	case err == nil:
		rep.Delivered++
		return s
	case c.Attempts >= e.config.Limits.EffectTries:
		rep.Dead++
		s.Dead = true
	default:
		rep.Failed++
		s.RetryAt = e.config.Now().Add(time.Second << min(max(c.Attempts, 1)-1, 11))
	}
	s.Error = err.Error()
	if log := e.config.Logger; log != nil {
		log.WarnContext(ctx, "effect not delivered", "ref", c.Ref.String(), "attempt", c.Attempts, "dead", s.Dead, "error", err)
	}
	return s
}

func (e *Engine) deliverParcel(ctx context.Context, c Claim) error {
	var p parcel
	if err := decodeRecord(c.Effect.Body, &p); err != nil {
		return err
	}
	effect, err := e.effects.Restore(p.Effect, p.Payload)
	if err != nil {
		return err
	}
	t, err := e.OpenThread(ctx, c.Ref.Thread)
	if err != nil {
		return err
	}
	d, err := e.dispatcher(effects.Inline, nil)
	if err != nil {
		return err
	}
	out := e.deliver(ctx, d, []effects.Delivery{{ID: p.ID, Effect: effect, Owner: p.Owner, Snapshot: t.Snapshot()}})
	return out[0].Err
}
