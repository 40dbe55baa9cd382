package effects

import (
	"context"
	"runtime/debug"
)

// work delivers until the queue is empty. The caller has set idle.
func (d *Dispatcher) work(collect func(Outcome)) {
	q, more := d.next()
	defer func() {
		// Report may have ended this goroutine; someone has to carry on, or the queue would stand for ever.
		if more {
			go d.work(func(Outcome) {})
		}
	}()
	for ; more; q, more = d.next() {
		o, givenUp := d.deliver(q)
		collect(o)
		if !givenUp { // else the drain that gave it up reports it
			d.report(o)
		}
	}
}

func (d *Dispatcher) deliver(q queued) (o Outcome, givenUp bool) {
	o = q.failed(nil)
	r, err := d.handlers.find(q.Effect)
	if err != nil {
		o.Err = err
		return o, q.end(nil)
	}
	limit := d.config.Timeout
	if own := r.Handler.timeout; own != nil {
		limit = *own
	}
	ctx := context.WithValue(context.WithValue(q.ctx, idKey{}, q.ID), d, true)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, ErrTimeout)
		defer cancel()
	}
	start := d.config.Now()
	o.Err = call(ctx, r, q.Delivery)
	o.Handler, o.Duration = r.Plugin, d.config.Now().Sub(start)
	if givenUp = q.end(nil); givenUp {
		o.Err = ErrUndelivered
	}
	return o, givenUp
}

// call runs the handler in a goroutine of its own, so that it can be left behind and may even end its goroutine. A
// handler that noticed the end of its time and returned an error has timed out as well.
func call(ctx context.Context, r Registered, d Delivery) error {
	failed := func(err error) error {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &HandlerError{ID: d.ID, Plugin: r.Plugin, Effect: d.Effect.Name(), Err: err}
	}
	ended := make(chan error, 2) // by the handler, or by the end of its time
	defer context.AfterFunc(ctx, func() { ended <- failed(nil) })()
	go func() {
		var err error
		returned := false
		defer func() {
			if v := recover(); v != nil || !returned {
				err = &PanicError{ID: d.ID, Plugin: r.Plugin, Effect: d.Effect.Name(), Value: v, Stack: debug.Stack()}
			}
			ended <- err
		}()
		if err = r.Handler.run(ctx, d.Snapshot, d.Effect); err != nil {
			err = failed(err)
		}
		returned = true
	}()
	return <-ended
}
