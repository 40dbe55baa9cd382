package engine

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/ddd26017/fixpoint/internal/fanout"
	"github.com/ddd26017/fixpoint/phase"
)

// guard calls fn and turns a panic into a *PanicError.
func guard(plugin string, p phase.Phase, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(plugin, p, v)
		}
	}()
	return fn()
}

// call is guard for the parts that plugins register. It needs no closure.
func call[T any](ctx context.Context, plugin string, p phase.Phase, fn func(context.Context, *phase.Context) (T, error), pc *phase.Context) (out T, err error) {
	defer func() {
		if v := recover(); v != nil {
			var none T
			out, err = none, panicked(plugin, p, v)
		}
	}()
	return fn(ctx, pc)
}

func panicked(plugin string, p phase.Phase, v any) error {
	return &PanicError{Plugin: plugin, Phase: p, Value: v, Stack: debug.Stack()}
}

// within calls fn, a piece of user code, for at most limit, and gives up on it at
// the deadline or when ctx ends. Limit 0 calls fn inline.
//
// A call that was given up on keeps its goroutine until fn returns: Go cannot
// stop it. Its context is cancelled and its result is dropped.
func within[T any](ctx context.Context, crew *fanout.Crew, limit time.Duration, plugin string, p phase.Phase, fn func(context.Context) (T, error)) (T, error) {
	if limit <= 0 {
		var out T
		err := guard(plugin, p, func() (err error) { out, err = fn(ctx); return err })
		return out, err
	}
	ctx, cancel := limited(ctx, limit, &TimeoutError{Plugin: plugin, Phase: p, Limit: limit})
	defer cancel()
	return detached(ctx, crew, plugin, p, fn)
}

// limited bounds ctx by a time limit, 0 meaning none.
func limited(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, cause)
}

// detached calls fn in a goroutine of the crew, nil for a new one, and waits for it or for ctx.
func detached[T any](ctx context.Context, crew *fanout.Crew, plugin string, p phase.Phase, fn func(context.Context) (T, error)) (T, error) {
	return fanout.One(ctx, crew, ErrGoexit, func() (v T, err error) {
		err = guard(plugin, p, func() (err error) { v, err = fn(ctx); return err })
		return v, err
	})
}
