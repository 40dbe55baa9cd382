package pushseq

import (
	"context"
	"errors"
	"iter"
)

// Causes are the errors for what the work itself cannot tell. Nil ones have a
// default.
type Causes struct {
	Broken error // why the context is cancelled when the loop was left
	Exited error // what the loop gets when the work ended its goroutine
}

// Of returns a sequence that runs work, in a goroutine of its own, each time that
// it is ranged over, and yields every value that work pushes, in order. push waits
// until the loop takes the value. The last pair holds the error of work, if there
// was one. When the loop is left, the context of work is cancelled, later values
// are dropped, and the loop ends once work has returned. push may be called from
// any goroutine until work returns. work must not panic.
func Of[T any](ctx context.Context, work func(ctx context.Context, push func(T)) error, c Causes) iter.Seq2[T, error] {
	if c.Broken == nil {
		c.Broken = errors.New("pushseq: the loop was left")
	}
	if c.Exited == nil {
		c.Exited = errors.New("pushseq: the work ended its goroutine")
	}
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		values := make(chan T)
		left := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			err := c.Exited
			defer func() {
				done <- err
				close(values)
			}()
			err = work(ctx, func(v T) {
				select {
				case values <- v:
				case <-left:
				}
			})
		}()
		defer func() {
			close(left)
			cancel(c.Broken)
			<-done
		}()
		for v := range values {
			if !yield(v, nil) {
				return
			}
		}
		err := <-done
		done <- nil // for the deferred wait
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}
