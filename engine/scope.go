package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/internal/fanout"
	"github.com/ddd26017/fixpoint/internal/origin"
)

// ErrNotOpen is returned by runs of an engine that has a plugin with an Open, before
// Engine.Open was called.
var ErrNotOpen = errors.New("engine: a plugin is to be opened first; call Engine.Open")

// Open calls the Open of every plugin that has one, all at the same time. Call it
// before the first run; without such plugins it may be left out. Nothing but ctx bounds
// how long it takes. If one fails, the engine is closed again. The error joins all of
// theirs.
//
// Only the first call does something. A later one returns why the engine takes no runs
// yet or any more, or nil.
func (e *Engine) Open(ctx context.Context) error {
	if e.opening.Swap(true) || e.closed.Load() {
		return e.ready()
	}
	err := e.forPlugins(ctx, 0, "opening", func(ctx context.Context, p Plugin) error {
		if o, ok := p.(Opener); ok {
			return o.Open(ctx)
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	e.opened.Store(true)
	return nil
}

// Close calls the Close of every plugin that has one, all at the same time, and
// returns their errors joined. One that has not returned when ctx ends or after
// Limits.Grace is given up on. Runs under way go on; new ones are refused.
func (e *Engine) Close(ctx context.Context) error {
	if e.closed.Swap(true) {
		return nil
	}
	return e.forPlugins(ctx, e.config.Limits.Grace, "closing", func(ctx context.Context, p Plugin) error {
		if c, ok := p.(Closer); ok {
			return c.Close(ctx)
		}
		return nil
	})
}

// ready returns why the engine takes no runs now, or nil.
func (e *Engine) ready() error {
	switch {
	case e.closed.Load():
		return ErrClosed
	case e.opens && !e.opened.Load():
		return ErrNotOpen
	}
	return nil
}

func (e *Engine) forPlugins(ctx context.Context, limit time.Duration, doing string, fn func(context.Context, Plugin) error) error {
	lost := func(err error) error { return err }
	errs := fanOut(context.WithoutCancel(ctx), fanout.Way{Limit: len(e.parts)}, len(e.parts), func(i int) error {
		ps := e.parts[i]
		call := func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx, ps.impl) }
		_, err := within(ctx, nil, limit, ps.plugin, 0, call)
		if err != nil {
			err = fmt.Errorf("engine: %s plugin %s: %w", doing, ps.plugin, err)
		}
		return err
	}, lost)
	return errors.Join(errs...)
}

// source tells where a plugin comes from: what it says itself, or the package of its
// code.
func source(p Plugin) (from string) {
	switch p := p.(type) {
	case Sourced:
		_ = guard("?", 0, func() error { from = p.Source(); return nil }) // it is for people to read
	case pluginFunc:
		from = p.from
	default:
		from = origin.Of(p)
	}
	return from
}
