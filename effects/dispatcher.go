package effects

import (
	"context"
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
	busy    bool          // someone delivers; only they take from the queue
	idle    chan struct{} // closed when busy ends; made for those who wait
	added   int           // effects added while the current inline Deliver is at work
	current *flight
	closed  bool
}

// queued keeps the context of a Deliver call until its effects are delivered.
type queued struct {
	ctx context.Context //nolint:containedctx // it belongs to the delivery and goes with it
	Delivery
}

// flight is a delivery that has left the queue and has no outcome yet.
type flight struct {
	stop    chan struct{}
	stopped bool
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
	var refused []Outcome
	for _, one := range deliveries {
		if err := d.admit(queued{ctx, one}); err != nil {
			refused = append(refused, one.failed(err))
		}
	}
	work := !d.busy && len(d.queue) > 0
	if work {
		d.busy, d.added = true, 0
	}
	d.mu.Unlock()

	for _, o := range refused {
		d.report(o)
	}
	switch {
	case !work:
		return refused
	case d.config.Mode == Background:
		go d.work(nil)
		return refused
	}
	var outcomes []Outcome
	d.work(func(o Outcome) { outcomes = append(outcomes, o) })
	return append(refused, outcomes...)
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
	if inside(ctx, d) {
		return ErrReentrant
	}
	for {
		idle := d.whenIdle(closing)
		if idle == nil {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return d.giveUp(ctx.Err(), closing)
		}
	}
}

// whenIdle returns nil if nothing is left to do, and closes the dispatcher in the same instant if asked to. Otherwise
// it returns a channel that is closed when the current work ends.
func (d *Dispatcher) whenIdle(closing bool) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.busy {
		d.closed = d.closed || closing
		return nil
	}
	if d.idle == nil {
		d.idle = make(chan struct{})
	}
	return d.idle
}

func (d *Dispatcher) giveUp(cause error, closing bool) error {
	d.mu.Lock()
	left := d.queue
	d.queue = nil
	d.closed = d.closed || closing
	count := len(left)
	if f := d.current; f != nil && !f.stopped {
		f.stopped = true
		close(f.stop)
		count++
	}
	d.mu.Unlock()

	for _, q := range left {
		d.report(q.failed(ErrUndelivered))
	}
	if count == 0 {
		return nil
	}
	return &UndeliveredError{Count: count, Err: cause}
}

// admit puts one delivery into the queue, before those of later commits. The caller holds the mutex.
func (d *Dispatcher) admit(q queued) error {
	switch {
	case d.closed:
		return ErrClosed
	case d.config.Mode == Background:
		if len(d.queue) >= d.config.Queue {
			return ErrOverflow
		}
	case d.busy:
		if d.added >= d.config.Queue {
			return ErrOverflow
		}
		d.added++
	}
	at := len(d.queue)
	for at > 0 && later(d.queue[at-1].ID, q.ID) {
		at--
	}
	d.queue = append(d.queue, queued{})
	copy(d.queue[at+1:], d.queue[at:])
	d.queue[at] = q
	return nil
}

// next takes the first delivery, or ends the work if there is none.
func (d *Dispatcher) next() (queued, *flight, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		d.queue, d.busy = nil, false
		if d.idle != nil {
			close(d.idle)
			d.idle = nil
		}
		return queued{}, nil, false
	}
	q := d.queue[0]
	d.queue[0] = queued{}
	d.queue = d.queue[1:]
	d.current = &flight{stop: make(chan struct{})}
	return q, d.current, true
}

// settle ends a flight and reports whether a drain had given it up.
func (d *Dispatcher) settle(f *flight) (givenUp bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current = nil
	return f.stopped
}

func (d *Dispatcher) report(o Outcome) {
	if d.config.Report == nil {
		return
	}
	defer func() { _ = recover() }()
	d.config.Report(o)
}

// later reports whether a belongs to a later commit than b, or later into the same one.
func later(a, b ID) bool {
	switch {
	case a.Run != b.Run:
		return false
	case a.Revision != b.Revision:
		return a.Revision > b.Revision
	}
	return a.Index > b.Index
}
