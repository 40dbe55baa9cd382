package worker

import (
	"context"
	"errors"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
)

// passing reports whether an error says nothing about an activation: the store failed, or
// somebody else was there.
func passing(err error) bool {
	for _, kind := range []error{
		errStore, store.ErrLeaseHeld, store.ErrConflict, store.ErrFenced, store.ErrUnknownOutcome, store.ErrBehind, store.ErrClosed,
		engine.ErrBusy, engine.ErrClosed, engine.ErrTimeout, engine.ErrWaiting, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// refused reports whether an error says that an activation can never be applied.
func refused(err error, k Kind) bool {
	if errors.Is(err, engine.ErrVault) {
		return false
	}
	return errors.Is(err, engine.ErrDecision) || errors.Is(err, engine.ErrNotWaiting) || k == KindInput && errors.Is(err, engine.ErrInput)
}

// again deals with an error that is passing.
func (s *session) again(ctx context.Context, err error) (next, bool) {
	var held *store.LeaseHeld
	switch {
	case errors.As(err, &held):
		s.w.counts.leaseHeld.Add(1)
		if wait := held.Until.Sub(s.w.now()); wait < s.w.config.Claim {
			return s.later(max(wait, 0) + s.w.config.spread(s.w.config.Poll/10+1))
		}
		return s.later(s.w.config.spread(s.w.config.Claim))
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced), errors.Is(err, engine.ErrBusy), errors.Is(err, engine.ErrWaiting):
		if s.clashes++; s.clashes <= maxClashes && s.soft.Err() == nil {
			return next{}, false
		}
	}
	s.w.fault(ctx, "a thread could not be worked at", err)
	return s.later(s.w.config.backoff(s.tries()))
}

// failed deals with an attempt that came to nothing: it is made again later, or the
// activation is given up.
func (s *session) failed(ctx context.Context, e entry, err error) (next, bool) {
	if passing(err) {
		return s.again(ctx, err)
	}
	if refused(err, e.Kind) {
		return s.conclude(ctx, scene{box: s.box}, e, Refused, err)
	}
	wait := s.w.config.backoff(e.Attempts + 1)
	f := failure{Seq: e.Seq, Error: err.Error(), RetryAt: s.w.now().Add(wait).UTC().Round(0), Dead: e.Attempts+1 >= s.w.config.MaxAttempts}
	b, fault := s.w.commit(ctx, s.thread, func(b *box) (*change, error) {
		if find(b.Pending, e.Seq) < 0 {
			return nil, nil
		}
		return &change{record: record{Failed: &f}}, nil
	})
	if fault != nil {
		return s.again(ctx, fault)
	}
	s.box = b
	s.log(ctx, "an activation failed", e, err)
	if !f.Dead {
		s.w.counts.retries.Add(1)
		return next{kind: nextLater, at: f.RetryAt}, true
	}
	s.tell(ctx, []Outcome{{Seq: e.Seq, Kind: e.Kind, Fate: Dead, Time: s.w.now(), Run: e.ID, Error: f.Error}}, []entry{e})
	return next{}, false
}

func (s *session) log(ctx context.Context, what string, e entry, err error) {
	if log := s.w.config.Logger; log != nil {
		log.WarnContext(ctx, what, "thread", s.thread, "activation", e.Seq, "kind", e.Kind, "attempts", e.Attempts+1, "error", err)
	}
}

// conclude tells the outcome of an activation that leaves no mark in the thread's state.
// Whoever does it again comes to the same.
func (s *session) conclude(ctx context.Context, c scene, e entry, fate Fate, err error) (next, bool) {
	o := Outcome{Seq: e.Seq, Kind: e.Kind, Fate: fate, Time: s.w.now().UTC().Round(0)}
	if err != nil {
		o.Error = err.Error()
		s.log(ctx, "an activation was refused", e, err)
	}
	return s.commitOutcomes(ctx, c, []Outcome{o}, []entry{e}, nil)
}

// report tells the outcomes of activations that were applied.
func (s *session) report(ctx context.Context, c scene, done []entry) (next, bool) {
	var outcomes []Outcome
	var dead *failure
	for i, e := range done {
		o := Outcome{Seq: e.Seq, Kind: e.Kind, Fate: Applied, Time: s.w.now().UTC().Round(0)}
		cancelled := false
		for _, later := range done[i+1:] {
			cancelled = cancelled || later.Kind == KindCancel
		}
		switch mine := c.life.Run == e.ID || c.place.Seq == e.Seq && c.place.Run == c.life.Run; {
		case mine || e.Kind == KindCancel:
			o.Run, o.Status, o.Reason, o.Detail = c.life.Run, c.life.Status, c.life.Reason, c.life.Detail
			if mine && c.place.Tries > s.w.config.MaxAttempts && dead == nil {
				dead = &failure{Seq: e.Seq, Error: c.life.Detail, Dead: true}
				o.Fate, o.Error = Dead, c.life.Detail
			}
		case cancelled:
			o.Fate = Dropped
		case e.Kind == KindInput:
			o.Run = e.ID
		}
		outcomes = append(outcomes, o)
	}
	return s.commitOutcomes(ctx, c, outcomes, done, dead)
}

// commitOutcomes writes outcomes down, which ends the wake-ups of their activations. Where
// a run waits, it sees to it that somebody comes when its tickets run out.
func (s *session) commitOutcomes(ctx context.Context, c scene, outcomes []Outcome, of []entry, dead *failure) (next, bool) {
	b, err := s.w.commit(ctx, s.thread, func(b *box) (*change, error) {
		ch := change{record: record{Failed: dead}}
		for _, o := range outcomes {
			if o.Fate != Dead && find(b.Pending, o.Seq) >= 0 {
				ch.Done = append(ch.Done, o)
				ch.settles = append(ch.settles, o.Seq)
			}
		}
		if len(ch.Done) == 0 && (dead == nil || find(b.Pending, dead.Seq) < 0) {
			return nil, nil
		}
		if a := s.alarm(c, b, of[0]); a != nil {
			ch.Submit = a
			ch.effects = append(ch.effects, a.wakeup())
		}
		return &ch, nil
	})
	if err != nil {
		return s.again(ctx, err)
	}
	s.box = b
	for _, o := range outcomes {
		s.settled = s.settled || s.claim != nil && s.claim.Ref.Revision == o.Seq && o.Fate != Dead
	}
	s.tell(ctx, outcomes, of)
	return next{}, false
}

// alarm returns the wake-up for when the first ticket runs out, unless there is one.
func (s *session) alarm(c scene, b *box, of entry) *entry {
	if c.th == nil || c.life.Status != phase.Waiting {
		return nil
	}
	until := soonest(c.th)
	for _, e := range b.Pending {
		if e.Kind == KindWake && e.NotBefore.Equal(until) {
			return nil
		}
	}
	if until.IsZero() {
		return nil
	}
	e := newEntry(Activation{Kind: KindWake, NotBefore: until, Priority: of.Priority, Tenant: of.Tenant}, newID(), s.w.now())
	return &e
}

// tell tells outcomes to whoever wants to know.
func (s *session) tell(ctx context.Context, outcomes []Outcome, of []entry) {
	s.w.over(s.thread, outcomes, of)
	s.w.bell.ring(ctx, threadTopic(s.thread), frame{Done: true})
}
