package worker

import (
	"context"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
)

// next says when a thread is to be looked at again.
type next struct {
	kind nextKind
	at   time.Time // of nextLater
	lane Lane      // of nextMore
}

type nextKind uint8

const (
	nextNothing nextKind = iota // when somebody submits something
	nextMore                    // when it is its turn
	nextLater                   // at a time
)

// session is one stay of the worker at a thread. It makes one run at most.
type session struct {
	w *Worker
	task
	soft context.Context // ends when no more runs are to begin

	box     *box // as it was last seen
	ran     bool
	settled bool // the wake-up that led here
	clashes int
}

// scene is what a step of a session finds.
type scene struct {
	th    *engine.Thread
	box   *box
	life  phase.Lifecycle
	place Position
}

// blockedPoll is how often an input is looked at that waits for a run's tickets. Whoever
// answers them with an activation has the input looked at right after.
const blockedPoll = time.Minute

// maxClashes is how often a thread is opened again at once because somebody changed it.
const maxClashes = 4

// outcome returns what became of the activation whose wake-up c is.
func (s *session) outcome(c *store.Claim) Outcome {
	if s.box == nil || s.box.revision < c.Ref.Revision {
		return Outcome{Fate: Pending} // it was not looked at
	}
	o, _ := s.box.outcome(c.Ref.Revision)
	return o
}

// advance does what the thread has to do. Everything that it decides by, it reads anew
// for each step, so it can break off anywhere.
func (s *session) advance(ctx context.Context) next {
	for {
		if n, over := s.step(ctx); over {
			return n
		}
	}
}

func (s *session) step(ctx context.Context) (n next, over bool) {
	atLeast := uint64(0)
	if s.claim != nil {
		atLeast = s.claim.Ref.Revision
	}
	b, err := s.w.load(ctx, s.thread, atLeast)
	if err != nil {
		s.w.fault(ctx, "an inbox could not be read", err)
		return s.later(s.w.config.backoff(s.tries()))
	}
	s.box = b
	if len(b.Pending) == 0 {
		return next{}, true
	}
	head := s.head(b)
	if head == nil {
		return s.untilDue(b)
	}
	th, err := s.w.eng.OpenThread(ctx, s.thread)
	if err != nil {
		return s.failed(ctx, *head, err)
	}
	snap := th.Snapshot()
	c := scene{th, b, phase.RunLifecycle.Get(snap), placeOf(snap, b)}
	if e := s.cancelOf(c); e != nil {
		return s.cancel(ctx, c, *e)
	}
	if s.open(c) {
		return s.takeUp(ctx, c)
	}
	if done := appliedOf(c); len(done) > 0 {
		return s.report(ctx, c, done)
	}
	e := s.choose(c)
	switch {
	case e == nil && c.life.Status == phase.Waiting && expired(th, s.w.now()):
		return s.goOn(ctx, c, nil)
	case e == nil && c.life.Status == phase.Waiting:
		return s.later(s.w.config.spread(blockedPoll))
	case e == nil:
		return s.untilDue(b)
	case e.RetryAt.After(s.w.now()):
		return next{kind: nextLater, at: e.RetryAt}, true
	case e.Kind == KindInput:
		return s.start(ctx, c, *e)
	case e.Kind == KindDecide, c.life.Status == phase.Waiting && expired(th, s.w.now()):
		return s.goOn(ctx, c, e)
	default: // a wake-up that finds nothing to do
		return s.conclude(ctx, c, *e, Applied, nil)
	}
}

// due reports whether an activation's time has come. That its wake-up was handed out says
// so too, should the clocks differ.
func (s *session) due(e entry) bool {
	return !e.NotBefore.After(s.w.now()) || s.claim != nil && s.claim.Ref.Revision == e.Seq
}

// head returns the first activation that is due.
func (s *session) head(b *box) *entry {
	for i := range b.Pending {
		if s.due(b.Pending[i]) {
			return &b.Pending[i]
		}
	}
	return nil
}

// choose returns the next activation. While a run waits for answers, inputs do too.
func (s *session) choose(c scene) *entry {
	for i := range c.box.Pending {
		e := &c.box.Pending[i]
		if s.due(*e) && (c.life.Status != phase.Waiting || e.Kind != KindInput) {
			return e
		}
	}
	return nil
}

// cancelOf returns the first cancel that is due.
func (s *session) cancelOf(c scene) *entry {
	for i := range c.box.Pending {
		if e := &c.box.Pending[i]; e.Kind == KindCancel && s.due(*e) && !c.place.applied(e.Seq) {
			return e
		}
	}
	return nil
}

// open reports whether a run is to be gone on with before anything else: its worker
// failed, or it was told to end while it waited.
func (s *session) open(c scene) bool {
	open := c.life.Status == phase.Running || c.life.Status == phase.Waiting && c.life.Ended
	return open && !(c.place.Run == c.life.Run && c.place.Tries > 2*s.w.config.MaxAttempts)
}

// appliedOf returns the activations that the thread has, but whose outcome is not told yet.
func appliedOf(c scene) (done []entry) {
	for _, e := range c.box.Pending {
		if c.place.applied(e.Seq) {
			done = append(done, e)
		}
	}
	return done
}

func expired(th *engine.Thread, now time.Time) bool {
	until := soonest(th)
	return !until.IsZero() && !until.After(now)
}

// soonest returns when the first open ticket runs out; zero if none does.
func soonest(th *engine.Thread) (until time.Time) {
	for _, t := range th.Tickets() {
		if !t.Until.IsZero() && (until.IsZero() || t.Until.Before(until)) {
			until = t.Until
		}
	}
	return until
}

func (s *session) tries() int {
	if s.claim == nil {
		return 1
	}
	return s.claim.Attempts
}

func (s *session) later(d time.Duration) (next, bool) {
	if s.soft.Err() != nil {
		d = 0 // for others
	}
	return next{kind: nextLater, at: s.w.now().Add(d)}, true
}

// untilDue waits for the first activation that has its time still to come.
func (s *session) untilDue(b *box) (next, bool) {
	var at time.Time
	for _, e := range b.Pending {
		if at.IsZero() || e.NotBefore.Before(at) {
			at = e.NotBefore
		}
	}
	return next{kind: nextLater, at: at}, true
}
