package effects

import (
	"context"
	"errors"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

// Dispatcher delivers the effects of one run, one at a time, in commit order. It is cheap to make, starts no goroutine
// before there is work, and keeps none when there is none; only handlers that outlived their time may linger. All
// methods are safe for concurrent use and may be called by handlers, except that a handler cannot Drain or Close.
type Dispatcher struct {
	handlers *Handlers
	config   Config
	line     pushseq.Line[Delivery, Outcome]
}

var causes = pushseq.LineCauses{Full: ErrOverflow, Shut: ErrClosed, GivenUp: ErrUndelivered, Inside: ErrReentrant}

// NewDispatcher returns a dispatcher for one run. A bad configuration is an [ErrBadConfig].
func NewDispatcher(h *Handlers, c Config) (*Dispatcher, error) {
	c, err := c.normal()
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{handlers: h, config: c}
	d.line.Work, d.line.Beside, d.line.Limit, d.line.Causes = (*work)(d), c.Mode == Background, c.Queue, &causes
	return d, nil
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
	return d.line.Put(context.WithoutCancel(ctx), deliveries)
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
	left, err := d.line.Drain(ctx, closing)
	switch {
	case left > 0:
		return &UndeliveredError{Count: left, Err: err}
	case errors.Is(err, ErrReentrant):
		return err
	}
	return nil
}
