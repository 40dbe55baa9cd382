package effects

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Dispatcher delivers the effects of one run, one at a time, in commit order. It is cheap to make, starts no goroutine
// before there is work, and keeps none when there is none; only handlers that outlived their time may linger. All
// methods are safe for concurrent use and may be called by handlers, except that a handler cannot Drain or Close.
type Dispatcher struct {
	handlers *Handlers
	config   Config

	mu      sync.Mutex
	queue   []queued
	idle    chan struct{} // not nil while someone delivers, who alone takes from the queue; closed after that
	current queued        // the delivery at work, if any
	added   int           // effects added during the current work
	closed  bool
}

// queued keeps the context of a Deliver call until its effects are delivered.
type queued struct {
	ctx    context.Context //nolint:containedctx // it belongs to the delivery and goes with it
	giveUp context.CancelCauseFunc
	Delivery
}

// NewDispatcher returns a dispatcher for one run. A bad configuration is an [ErrBadConfig].
func NewDispatcher(h *Handlers, c Config) (*Dispatcher, error) {
	c, err := c.normal()
	if err != nil {
		return nil, err
	}
	return &Dispatcher{handlers: h, config: c}, nil
}

// Check is [Handlers.Check] of the dispatcher's handlers.
func (d *Dispatcher) Check(effects ...Effect) error { return d.handlers.Check(effects...) }

// Deliver delivers the effects of commits that have happened. Cancelling ctx does not stop it: the handlers get ctx's
// values without its end, bounded by their timeouts.
//
// Inline, it runs the handlers and returns their outcomes in order of delivery. If the dispatcher is already at work,
// because a handler called back or another goroutine delivers, the effects are queued by revision and index behind the
// one being handled, and whoever is at work delivers them: Deliver then returns at once, and the outcomes are among
// those the other call returns. In Background mode it always returns at once.
//
// Every outcome also goes to Config.Report. What cannot be queued is in the returned outcomes in either mode.
func (d *Dispatcher) Deliver(ctx context.Context, deliveries []Delivery) []Outcome {
	if len(deliveries) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	d.mu.Lock()
	var outcomes []Outcome
	for _, one := range deliveries {
		if err := d.admit(queued{ctx: ctx, Delivery: one}); err != nil {
			outcomes = append(outcomes, one.failed(err))
		}
	}
	work := d.idle == nil && len(d.queue) > 0
	if work {
		d.idle = make(chan struct{})
	}
	d.mu.Unlock()

	for _, o := range outcomes {
		d.report(o)
	}
	switch {
	case !work:
	case d.config.Mode == Background:
		go d.work(func(Outcome) {})
	default:
		d.work(func(o Outcome) { outcomes = append(outcomes, o) })
	}
	return outcomes
}

// Drain waits until every effect delivered so far, and every effect those lead to, has an outcome. If ctx ends first,
// what is left fails with [ErrUndelivered], a handler at work has its context cancelled and is left behind, and Drain
// returns an [*UndeliveredError]. Called by a handler with the handler's context it returns [ErrReentrant]; with another
// context it would wait for itself until that one ends.
func (d *Dispatcher) Drain(ctx context.Context) error { return d.drain(ctx, false) }

// Close drains, as Drain does, and then refuses further effects with [ErrClosed]. It closes also when the drain was cut
// short. Closing twice is fine.
func (d *Dispatcher) Close(ctx context.Context) error { return d.drain(ctx, true) }

func (d *Dispatcher) drain(ctx context.Context, closing bool) error {
	if ctx.Value(d) != nil {
		return ErrReentrant
	}
	for idle := d.whenIdle(closing); idle != nil; idle = d.whenIdle(closing) {
		select {
		case <-idle:
		case <-ctx.Done():
			return d.cutShort(ctx.Err(), closing)
		}
	}
	return nil
}

// whenIdle returns a channel that is closed when the current work ends. If there is none it returns nil, and closes the
// dispatcher in the same instant if asked to.
func (d *Dispatcher) whenIdle(closing bool) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = d.closed || closing && d.idle == nil
	return d.idle
}

func (d *Dispatcher) cutShort(cause error, closing bool) error {
	d.mu.Lock()
	left := d.queue
	d.queue = nil
	d.closed = d.closed || closing
	if d.current.giveUp != nil && d.current.end(ErrUndelivered) {
		d.current.giveUp = nil // it is counted once, and reported here, before the drain ends
		left = slices.Insert(left, 0, d.current)
	}
	d.mu.Unlock()

	for _, q := range left {
		d.report(q.failed(ErrUndelivered))
	}
	if len(left) == 0 {
		return nil
	}
	return &UndeliveredError{Count: len(left), Err: cause}
}

// admit puts one delivery into the queue, before those of later commits. The caller holds the mutex.
func (d *Dispatcher) admit(q queued) error {
	waiting := d.added
	if d.config.Mode == Background {
		waiting = len(d.queue)
	}
	switch {
	case d.closed:
		return ErrClosed
	case waiting >= d.config.Queue:
		return ErrOverflow
	case d.idle != nil:
		d.added++
	}
	at := len(d.queue)
	for at > 0 && d.queue[at-1].ID.after(q.ID) {
		at--
	}
	d.queue = slices.Insert(d.queue, at, q)
	return nil
}

// next takes the first delivery, or ends the work if there is none.
func (d *Dispatcher) next() (queued, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		close(d.idle)
		d.queue, d.idle, d.current, d.added = nil, nil, queued{}, 0
		return queued{}, false
	}
	q := d.queue[0]
	d.queue[0] = queued{}
	d.queue = d.queue[1:]
	q.ctx, q.giveUp = context.WithCancelCause(q.ctx)
	d.current = q
	return q, true
}

// end ends a delivery for that reason, which counts if it is the first, and reports whether a drain gave it up.
func (q queued) end(reason error) (givenUp bool) {
	q.giveUp(reason)
	return errors.Is(context.Cause(q.ctx), ErrUndelivered)
}

func (d *Dispatcher) report(o Outcome) {
	if d.config.Report == nil {
		return
	}
	defer func() { _ = recover() }()
	d.config.Report(o)
}
