package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// errNoSuchClaim means that an effect was claimed, changed or settled by somebody else.
var errNoSuchClaim = errors.New("somebody else was faster")

// Claim implements [store.Outbox]. Effects come in the order of their commits. One
// that is claimed or waits does not hold up those behind it.
//
// The first call reads the whole outbox, without the bodies, and from then on a consumer
// keeps this process up to date: what it emitted itself can be claimed at once, what other
// processes emit some milliseconds later, or some seconds where a server has just come back.
// A claim that finds nothing asks no server. Each effect that is claimed costs two requests,
// several at a time. When another process is faster with one, the next is tried. The worker's
// name is not kept.
func (j *Journal) Claim(ctx context.Context, lane, worker string, limit int, ttl time.Duration) ([]store.Claim, error) {
	if err := checkName("lane", lane); err != nil {
		return nil, err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if limit <= 0 {
		return nil, nil
	}
	if err := j.outbox.use(ctx); err != nil {
		return nil, err
	}
	now := j.now()
	tried := map[store.EffectRef]bool{}
	var won []claimed
	for len(won) < limit {
		items := j.outbox.take(lane, limit-len(won), now, tried)
		if len(items) == 0 {
			break
		}
		results := make([]claimed, len(items))
		err := inParallel(len(items), func(i int) (err error) {
			results[i], err = j.claim(ctx, items[i], lane, now.Add(ttl))
			if errors.Is(err, errNoSuchClaim) {
				return nil
			}
			return err
		})
		j.outbox.putBack(items)
		before := len(won)
		for i, r := range results {
			tried[items[i].ref] = true
			if r.Token > 0 {
				won = append(won, r)
			}
		}
		j.outbox.contended(lane, len(won)-before, len(items)-(len(won)-before))
		if err != nil {
			if len(won) > 0 {
				break // what is claimed must not be lost
			}
			return nil, err
		}
	}
	slices.SortFunc(won, func(a, b claimed) int {
		if before(&a.item, &b.item) {
			return -1
		}
		return 1
	})
	claims := make([]store.Claim, len(won))
	for i, w := range won {
		claims[i] = w.Claim
	}
	return claims, nil
}

// claimed is a claim and what was known of the effect before.
type claimed struct {
	store.Claim
	item item
}

func (o *outbox) take(lane string, n int, now time.Time, skip map[store.EffectRef]bool) []item {
	o.mu.Lock()
	defer o.mu.Unlock()
	var items []item
	for _, e := range o.index.take(lane, n, now, skip) {
		items = append(items, *e)
	}
	return items
}

func (o *outbox) putBack(items []item) {
	now := o.j.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range items {
		if e := o.index.effects[e.ref]; e != nil {
			o.index.putBack(e, now)
		}
	}
}

func (o *outbox) contended(lane string, won, lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.index.contended(lane, won, lost)
}

// claim claims one effect by compare-and-set on its subject, and reads its body meanwhile.
// The error is errNoSuchClaim when another claim was faster or the effect is settled.
func (j *Journal) claim(ctx context.Context, e item, lane string, until time.Time) (claimed, error) {
	type found struct {
		effect store.Effect
		err    error
	}
	body := make(chan found, 1)
	go func() {
		effect, err := j.body(ctx, e.ref, e.order)
		body <- found{effect, err}
	}()
	s := state{kind: isClaimed, lane: lane, due: until, attempts: e.attempts + 1, bodySeq: e.order, body: blob{parts: e.parts}, nonce: newID()}
	token, err := j.change(ctx, e.ref, e.seq, s, nil)
	b := <-body
	switch {
	case err != nil:
		return claimed{}, err
	case errors.Is(b.err, errAbsent):
		// It was settled right after the claim, or long ago, by a process that did not live to
		// clean up.
		j.outbox.learn(e.ref, state{kind: isGone}, token)
		j.janitor.bury(e.ref, e.order)
		return claimed{}, errNoSuchClaim
	case b.err != nil:
		return claimed{}, b.err
	}
	return claimed{store.Claim{Ref: e.ref, Effect: b.effect, Attempts: s.attempts, Token: token}, e}, nil
}

// change writes a new state of an effect whose newest message is seq, and returns the message
// that has it. The error is errNoSuchClaim when the newest message is another, which
// is then known to the index. A nonce that is found there is that of an attempt of the same call.
func (j *Journal) change(ctx context.Context, ref store.EffectRef, seq uint64, s state, text []byte) (uint64, error) {
	m := message{subject: j.effectSubject(ref), state: writeState(ref, s), data: text, check: true, expect: seq}
	known := j.outbox.known(ref)
	for try := 0; ; try++ {
		landed, err := j.publish(ctx, m)
		if err == nil {
			switch {
			case s.kind == isGone:
				j.cleanUp(ref, known, landed)
			case seq != s.bodySeq:
				j.janitor.drop(m.subject, seq, seq)
			}
			j.outbox.learn(ref, s, landed)
			return landed, nil
		}
		if refused := (&refusedError{}); errors.As(err, &refused) {
			return 0, fmt.Errorf("nats: the server refuses a change of effect %s: %w", ref, err)
		}
		if !errors.Is(err, errBusy) {
			have, haveSeq, _, readErr := j.effect(ctx, ref)
			switch {
			case readErr != nil:
				return 0, readErr
			case have.nonce == s.nonce && haveSeq > 0:
				j.outbox.learn(ref, have, haveSeq)
				return haveSeq, nil
			case haveSeq > seq:
				j.outbox.learn(ref, have, haveSeq)
				return 0, errNoSuchClaim
			case haveSeq == 0:
				// Gone without a trace, or a read of before the effect.
				if j.confirm(ctx, ref.Thread, m.subject, 0) == nil {
					j.outbox.learn(ref, have, seq+1)
					return 0, errNoSuchClaim
				}
			}
		}
		if ctx.Err() == nil {
			pause(ctx, try, err)
		}
		if ctx.Err() != nil {
			return 0, ended(ctx, false, err)
		}
	}
}

// cleanUp removes the messages of an effect that the message gone says is settled, later.
// What was known of the effect before saves a search.
func (j *Journal) cleanUp(ref store.EffectRef, known item, gone uint64) {
	if known.seq == 0 || known.parts > 0 {
		j.janitor.purge(j.effectPrefix(ref)+".>", gone)
	} else {
		j.janitor.drop(j.effectSubject(ref), known.order, gone)
	}
}

// Settle implements [store.Outbox]. A claim that ran out still counts until
// somebody else claims the effect. An effect that is gone is settled, so to settle
// it as done again is no error.
func (j *Journal) Settle(ctx context.Context, c store.Claim, how store.Settlement) error {
	if err := errors.Join(checkName("thread id", c.Ref.Thread), checkName("lane", c.Effect.Lane)); err != nil {
		return err
	}
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s := state{of: c.Token, attempts: c.Attempts, lane: c.Effect.Lane, nonce: newID()}
	switch {
	case how.Dead:
		s.kind = isDead
	case how.RetryAt.IsZero():
		s.kind = isGone
	default:
		s.kind, s.due = isWaiting, later(how.RetryAt, j.now())
	}
	if s.kind == isGone && c.Token > 0 {
		if _, err := j.change(ctx, c.Ref, c.Token, s, nil); !errors.Is(err, errNoSuchClaim) {
			return err
		}
	}
	have, seq, _, err := j.effect(ctx, c.Ref)
	for try := 0; err == nil; try++ {
		switch {
		case seq < c.Token && (seq > 0 || j.confirm(ctx, c.Ref.Thread, j.effectSubject(c.Ref), 0) != nil):
			pause(ctx, try, errMoved) // a read of before the claim
		case have.kind == isGone && s.kind == isGone:
			return nil
		case seq > 0 && have.of == c.Token && have.kind == s.kind:
			return nil // this settlement has landed, and its answer got lost
		case seq != c.Token || have.kind != isClaimed:
			return fmt.Errorf("nats: effect %s was settled or claimed by somebody else: %w", c.Ref, store.ErrFenced)
		default:
			s.bodySeq, s.body.parts = have.bodySeq, have.body.parts
			_, err = j.change(ctx, c.Ref, seq, s, []byte(how.Error[:min(len(how.Error), maxErrorText)]))
			if !errors.Is(err, errNoSuchClaim) {
				return err
			}
		}
		have, seq, _, err = j.effect(ctx, c.Ref)
	}
	return err
}
