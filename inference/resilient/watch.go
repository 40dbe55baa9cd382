package resilient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// grace is how long somebody has to return after the context ended.
const grace = time.Second

// item is what a sequence yields.
type item[T any] struct {
	value T
	err   error
}

// watched is a sequence that is walked in a goroutine of its own.
type watched[T any] struct {
	items chan item[T]  // unbuffered: the sequence is never ahead of its consumer
	left  chan struct{} // closed when nobody takes items any more
	done  chan struct{} // closed when the goroutine ends, with the fields below set
	// returned is false if the sequence ended its goroutine, by a panic or by runtime.Goexit.
	returned bool
	panicked any
	raised   bool // by the consumer
	// expired is closed when the grace is over, which began with the first who waited for that.
	expired chan struct{}
	timer   *time.Timer
}

// watch yields what open yields, as long as the limits of t hold and ctx lasts. Then it ends the context that open got
// and yields an error, with what total makes of all that the sequence says within the grace: ErrTimeout, ErrStalled, or at the end of ctx the
// sequence's own or else over. A panic or an end of the goroutine passes to the consumer. After the loop the
// sequence has ended, or was given up on.
func watch[T any](parent context.Context, t Timeout, open func(context.Context) iter.Seq2[T, error], total func(sum, next T) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancelCause(parent)
		w := &watched[T]{items: make(chan item[T]), left: make(chan struct{}), done: make(chan struct{})}
		go w.walk(ctx, open)
		request := newLimit(t.Request)
		defer request.stop()
		defer func() {
			// However the loop ends, by a panic of the consumer too.
			cancel(nil)
			close(w.left)
			w.settle()
		}()
		wait := t.First
		for {
			stall := newLimit(wait)
			wait = t.Stall
			var reached error
			select {
			case i := <-w.items:
				stall.stop()
				if !yield(i.value, i.err) || i.err != nil {
					return
				}
				continue
			case <-w.done:
				stall.stop()
				w.raise()
				return
			case <-request.c:
				reached = ErrTimeout
			case <-stall.c:
				reached = ErrStalled
			case <-parent.Done():
			}
			stall.stop()
			cancel(cmp.Or(reached, context.Cause(parent)))
			last := w.last(total)
			if reached != nil {
				last.err = reached
			} else if last.err == nil {
				last.err = over{gone(parent)}
			}
			yield(last.value, last.err)
			return
		}
	}
}

func (w *watched[T]) walk(ctx context.Context, open func(context.Context) iter.Seq2[T, error]) {
	defer close(w.done)
	defer func() {
		if !w.returned {
			w.panicked = recover()
		}
	}()
	seq := open(ctx)
	if seq == nil {
		_, err := inference.Collect(nil)
		seq = func(yield func(T, error) bool) { yield(*new(T), err) }
	}
	for v, err := range seq {
		select {
		case w.items <- item[T]{v, err}:
		case <-w.left:
		}
		if err != nil || w.alone() {
			break
		}
	}
	w.returned = true
}

// alone reports whether nobody takes items any more.
func (w *watched[T]) alone() bool {
	select {
	case <-w.left:
		return true
	default:
		return false
	}
}

// raise lets happen here what ended the goroutine, once.
func (w *watched[T]) raise() {
	again := w.raised
	w.raised = true
	switch {
	case again:
	case w.panicked != nil:
		panic(w.panicked)
	case !w.returned:
		runtime.Goexit()
	}
}

// last returns all that the sequence says within the grace, to its error.
func (w *watched[T]) last(total func(sum, next T) T) (last item[T]) {
	for {
		select {
		case next := <-w.items:
			last = item[T]{total(last.value, next.value), next.err}
			if last.err != nil {
				return last
			}
		case <-w.done:
			w.raise()
			return last
		case <-w.patience():
			return last
		}
	}
}

// settle waits for the end of the goroutine, within the grace.
func (w *watched[T]) settle() {
	patience := w.patience()
	defer w.timer.Stop()
	select {
	case <-w.done:
		w.raise()
	case <-patience:
	}
}

func (w *watched[T]) patience() <-chan struct{} {
	if w.expired == nil {
		expired := make(chan struct{})
		w.expired, w.timer = expired, time.AfterFunc(grace, func() { close(expired) })
	}
	return w.expired
}

// over is that the context of a call ended.
type over struct{ cause error }

func (o over) Error() string { return o.cause.Error() }

// gone returns why a context ended.
func gone(ctx context.Context) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, ctx.Err()) {
		cause = fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return cause
}

// limit is a timer, or none.
type limit struct {
	timer *time.Timer
	c     <-chan time.Time
}

func newLimit(d time.Duration) limit {
	if d == 0 {
		return limit{}
	}
	timer := time.NewTimer(d)
	return limit{timer, timer.C}
}

func (l limit) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}
