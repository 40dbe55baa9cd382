package effects

import (
	"context"
	"runtime/debug"
)

// work is a dispatcher as its line sees it.
type work Dispatcher

// Do delivers.
func (w *work) Do(ctx context.Context, d Delivery) Outcome {
	o := d.failed(nil)
	r, err := w.handlers.find(d.Effect)
	if err != nil {
		o.Err = err
		return o
	}
	limit := w.config.Timeout
	if own := r.Handler.timeout; own != nil {
		limit = *own
	}
	ctx = context.WithValue(ctx, idKey{}, d.ID)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, ErrTimeout)
		defer cancel()
	}
	start := w.config.Now()
	o.Err = call(ctx, r, d)
	o.Handler, o.Began, o.Duration = r.Plugin, start, w.config.Now().Sub(start)
	return o
}

func (w *work) After(a, b Delivery) bool { return a.ID.after(b.ID) }

func (w *work) Refused(d Delivery, cause error) Outcome { return d.failed(cause) }

func (w *work) Late(o Outcome) Outcome {
	o.Err = ErrUndelivered
	return o
}

func (w *work) Tell(o Outcome) {
	if w.config.Report != nil {
		w.config.Report(o)
	}
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
