package resilient

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// ErrOpen: a model was not asked, since its breaker is open or has its probes under way.
var ErrOpen = errors.New("resilient: the circuit breaker is open")

// State is what a [Breaker] does with requests.
type State uint8

// The states.
const (
	// Closed lets all requests through.
	Closed State = iota
	// Open lets none through.
	Open
	// HalfOpen lets a few through, to see whether the model answers again.
	HalfOpen
)

// String returns "closed", "open" or "half-open".
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return "unknown"
}

// Breaker is a [Layer] that stops asking a model which keeps failing: after Failures failures in a row it opens. While
// it is open, and while its probes are under way, requests fail at once with a [*Failure] of class Transient with the
// cause ErrOpen, whose RetryAfter is the rest of the time that it stays open. After OpenFor it is half-open and lets
// probes through: the first that succeeds closes it, the first that fails opens it anew.
//
// What counts as a failure is an error of class Unknown, Transient, RateLimited, Overloaded, Auth or Quota, and a panic.
// Other errors show that the model is there; they count as a success. A call that the caller cancelled counts for
// nothing, like one whose consumer left before the first chunk, or one that began before the state last changed.
//
// A Breaker is for one model; around several it has one state for all of them. Its fields must not be changed once it
// was used. It is safe for concurrent use, and its zero value is ready to use; a field that is 0 means its default. Put
// a [Timeout] under it, or a probe that hangs keeps it half-open.
type Breaker struct {
	// Failures is how many failures in a row open the breaker. The default is 5.
	Failures int
	// OpenFor is how long it stays open. The default is 30 s.
	OpenFor time.Duration
	// Probes is how many requests a half-open breaker lets through at the same time. The default is 1.
	Probes int
	// Observe, if not nil, is told of each change of the state, after it. It may be called by many goroutines at once.
	Observe func(ctx context.Context, c Change)
	// Now is the clock. The default is time.Now.
	Now func() time.Time

	mu      sync.Mutex
	state   State
	changes int // of the state; calls that began before the last one are out of date
	failed  int // in a row, while closed
	probing int // while half-open
	until   time.Time
}

// Change is a change of a breaker's state.
type Change struct {
	// Number counts the changes, from 1: observers may be told out of order.
	Number   int
	From, To State
	// Err is the failure that opened the breaker; nil if that was a panic, and for another change.
	Err error
}

// Validate implements [Layer].
func (b *Breaker) Validate() error {
	if b == nil {
		return errors.New("resilient: the *Breaker is nil")
	}
	return check("Breaker",
		field{"Failures", b.Failures >= 0, "0 (the default) or more"},
		field{"OpenFor", b.OpenFor >= 0, "0 (the default) or more"},
		field{"Probes", b.Probes >= 0, "0 (the default) or more"},
	)
}

// State returns what the breaker would do with a request now.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Open && !b.now().Before(b.until) {
		return HalfOpen
	}
	return b.state
}

func (b *Breaker) wrap(m inference.Model) inference.Model {
	return around(m, func(ctx context.Context, r inference.Request) (resp inference.Response, err error) {
		number, err := b.admit(ctx, r.Model)
		if err != nil {
			return resp, err
		}
		verdict := bad // unless the model returns
		defer func() { b.report(ctx, number, verdict, err) }()
		resp, err = m.Generate(ctx, r)
		verdict = judge(ctx, err)
		return resp, err
	}, func(s inference.Streamer) streamFunc {
		return func(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
			return func(yield func(inference.Chunk, error) bool) { b.stream(ctx, s, r, yield) }
		}
	})
}

func (b *Breaker) stream(ctx context.Context, s inference.Streamer, r inference.Request, yield func(inference.Chunk, error) bool) {
	y := relay{yield: yield}
	number, err := b.admit(ctx, r.Model)
	if err != nil {
		y.end(err)
		return
	}
	verdict := bad
	defer func() { b.report(ctx, number, verdict, err) }()
	// A panic of the consumer is not the model's fault.
	y.yield = func(c inference.Chunk, err error) bool {
		verdict = none
		more := yield(c, err)
		verdict = bad
		return more
	}
	_, err = y.walk(s.Stream(ctx, r), overlap{})
	verdict = judge(ctx, err)
	if y.left && !y.began {
		verdict = none
	}
	b.report(ctx, number, verdict, err)
	number = 0 // it was reported, so that the consumer finds the new state
	y.yield = yield
	y.end(err)
}

// verdict is what a call says about a model.
type verdict uint8

const (
	none verdict = iota
	good
	bad
)

func judge(ctx context.Context, err error) verdict {
	if err == nil {
		return good
	}
	// A limit that is set around the breaker is no wish of the caller.
	cause := context.Cause(ctx)
	switch class := ClassOf(err); {
	case cause == ErrTimeout, cause == ErrStalled:
		return bad
	case cause != nil, class == Cancelled:
		return none
	case class == ContextOverflow, class == ContentFiltered, class == BadRequest, class == NotFound:
		return good
	}
	return bad
}

func (b *Breaker) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

// admit returns the number to report with if a request may pass.
func (b *Breaker) admit(ctx context.Context, model string) (number int, err error) {
	now := b.now()
	var told []Change
	b.mu.Lock()
	if b.state == Open && !now.Before(b.until) {
		told = b.change(HalfOpen, nil)
	}
	var wait time.Duration
	switch {
	case b.state == Open:
		wait, err = b.until.Sub(now), ErrOpen
	case b.state == HalfOpen && b.probing >= cmp.Or(b.Probes, 1):
		err = ErrOpen
	case b.state == HalfOpen:
		b.probing++
	}
	number = b.changes + 1 // never 0
	b.mu.Unlock()
	b.tell(ctx, told)
	if err != nil {
		err = &Failure{Class: Transient, Model: model, RetryAfter: wait, Err: err}
	}
	return number, err
}

// report takes in how a call ended that was admitted with that number.
func (b *Breaker) report(ctx context.Context, number int, v verdict, err error) {
	now := b.now()
	var told []Change
	b.mu.Lock()
	if number == b.changes+1 {
		switch {
		case b.state == HalfOpen && v == good:
			told = b.change(Closed, nil)
		case b.state == HalfOpen:
			b.probing--
		case v == good:
			b.failed = 0
		case v == bad:
			b.failed++
		}
		if v == bad && (b.state == HalfOpen || b.failed >= cmp.Or(b.Failures, 5)) {
			told = b.change(Open, err)
			b.until = now.Add(cmp.Or(b.OpenFor, 30*time.Second))
		}
	}
	b.mu.Unlock()
	b.tell(ctx, told)
}

// change goes to another state. It is called with the lock held, and what it returns is told without it.
func (b *Breaker) change(to State, err error) []Change {
	b.changes++
	c := Change{Number: b.changes, From: b.state, To: to, Err: err}
	b.state, b.failed, b.probing = to, 0, 0
	return []Change{c}
}

func (b *Breaker) tell(ctx context.Context, changes []Change) {
	for _, c := range changes {
		if b.Observe != nil {
			b.Observe(ctx, c)
		}
	}
}
