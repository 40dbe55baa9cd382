package fanout

import "context"

// One calls fn in a goroutine of the crew and returns its results. When ctx ends
// first it returns the cause, and the late results are dropped, however late the
// wait notices the end; the call keeps its goroutine until fn returns. When fn ends
// its goroutine, the error is exited. fn must not panic.
func One[T any](ctx context.Context, crew *Crew, exited error, fn func() (T, error)) (T, error) {
	ch := make(chan outcome[T], 1)
	crew.orNone().start(taskFunc(func() {
		out := outcome[T]{err: exited}
		defer func() {
			if ctx.Err() != nil { // else a wait that has not noticed yet would have the choice
				out = outcome[T]{err: context.Cause(ctx)}
			}
			ch <- out
		}()
		v, err := fn()
		out = outcome[T]{v, err}
	}))
	select {
	case out := <-ch:
		return out.value, out.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}

type outcome[T any] struct {
	value T
	err   error
}
