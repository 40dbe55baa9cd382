package fanout

import (
	"context"
	"time"
)

// Repeat calls fn beside the caller's work each time that a while has passed, until stop
// is called or fn returns an error, which becomes the cause with which until ends. The
// context of fn ends with stop only. Once stop has returned, so has fn, which must not
// panic. It is called once.
func Repeat(ctx context.Context, while time.Duration, fn func(context.Context) error) (until context.Context, stop func()) {
	until, end := context.WithCancelCause(ctx)
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(while)
		defer tick.Stop()
		for {
			select {
			case <-calls.Done():
			case <-tick.C:
			}
			if calls.Err() != nil {
				return
			}
			if err := fn(calls); err != nil {
				end(err)
				return
			}
		}
	}()
	return until, func() {
		cancel()
		<-done
		end(nil)
	}
}

// Overdue calls fn beside the caller's work if that goes on for longer than grace after
// the end of ctx. The caller says with stop, once, that it is over. Once stop has
// returned, fn has too, or is never called. fn must not panic.
func Overdue(ctx context.Context, grace time.Duration, fn func()) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(done)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C:
			fn()
		}
	})
	return func() {
		if close(over); !unwatch() {
			<-done
		}
	}
}

// Beside calls fn in a goroutine of the crew, nil for a new one. The channel is closed
// when fn has returned or ended its goroutine. fn must not panic.
func Beside(crew *Crew, fn func()) (done <-chan struct{}) {
	over := make(chan struct{})
	crew.orNone().start(taskFunc(func() {
		defer close(over)
		fn()
	}))
	return over
}
