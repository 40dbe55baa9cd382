package effects

import (
	"context"
	"runtime/debug"
	"time"
)

// work delivers until the queue is empty. The caller has set busy.
func (d *Dispatcher) work(collect func(Outcome)) {
	done := false
	defer func() {
		// Report may have ended this goroutine; someone has to carry on, or the queue would stand for ever.
		if !done {
			go d.work(nil)
		}
	}()
	for {
		q, f, ok := d.next()
		if !ok {
			done = true
			return
		}
		o := d.deliver(q, f)
		if collect != nil {
			collect(o)
		}
		d.report(o)
	}
}

func (d *Dispatcher) deliver(q queued, f *flight) Outcome {
	r, err := d.handlers.find(q.Effect)
	if err != nil {
		d.settle(f)
		return q.failed(err)
	}
	limit := d.config.Timeout
	if own := r.Handler.timeout; own != nil {
		limit = *own
	}
	ctx, cancel := bounded(withDelivering(q.ctx, d, q.ID), limit)
	defer cancel()

	start := d.config.Now()
	ended := make(chan ending, 1)
	go call(ctx, r, q.Delivery, ended)
	e := wait(ctx, f, ended)
	o := q.failed(nil)
	o.Handler, o.Duration = r.Plugin, d.config.Now().Sub(start)
	switch givenUp := d.settle(f); {
	case givenUp:
		o.Err = ErrUndelivered
	case e.fault != nil:
		o.Err = e.fault
	case e.err != nil:
		o.Err = &HandlerError{ID: q.ID, Plugin: r.Plugin, Effect: o.Name, Err: e.err}
	}
	return o
}

// ending is how a call of a handler ended: by returning err, or otherwise.
type ending struct {
	err   error
	fault *PanicError
}

// call runs the handler in a goroutine of its own, so that it can be left behind and may even end its goroutine.
func call(ctx context.Context, r Registered, d Delivery, ended chan<- ending) {
	var e ending
	returned := false
	defer func() {
		if v := recover(); v != nil || !returned {
			e.fault = &PanicError{ID: d.ID, Plugin: r.Plugin, Effect: d.Effect.Name(), Value: v, Stack: debug.Stack()}
		}
		ended <- e
	}()
	e.err = r.Handler.run(ctx, d.Snapshot, d.Effect)
	returned = true
}

// wait returns the ending, or ErrTimeout at the deadline. A handler that noticed the deadline and returned an error has
// timed out as well: which of the two is seen first must not matter.
func wait(ctx context.Context, f *flight, ended <-chan ending) ending {
	select {
	case e := <-ended:
		return judge(ctx, e)
	case <-f.stop:
		return ending{err: ErrUndelivered}
	case <-ctx.Done():
	}
	select {
	case e := <-ended:
		return judge(ctx, e)
	default:
		return ending{err: ErrTimeout}
	}
}

func judge(ctx context.Context, e ending) ending {
	if e.err != nil && ctx.Err() != nil {
		e.err = ErrTimeout
	}
	return e
}

func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit > 0 {
		return context.WithTimeout(ctx, limit)
	}
	return context.WithCancel(ctx)
}
