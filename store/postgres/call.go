package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ddd26017/fixpoint/store"
)

// way says how a call deals with a connection that breaks and a context that ends.
type way struct {
	// repeat: to send it again does no harm, whatever became of it the first time.
	repeat bool
	// alone: it goes on when the caller has left. The driver would break the connection and
	// ask the server to cancel, which makes a commit that waits for its standbys give up
	// waiting, and others see it.
	alone bool
	// writes: what nobody knows of is an unknown outcome.
	writes bool
	// slow: it may take long, so only the context limits it.
	slow bool
}

var (
	reading  = way{repeat: true, slow: true}
	writing  = way{repeat: true, alone: true, writes: true}
	once     = way{alone: true, writes: true}
	claiming = way{writes: true}
	noticing = way{alone: true}
	cleaning = way{repeat: true, writes: true, slow: true}
)

// step is what a call does on a connection. It returns errors of the driver only, and sets
// its results anew each time.
type step func(ctx context.Context, conn *pgx.Conn) error

// enter counts a call in, unless the store is closed.
func (j *Journal) enter() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false
	}
	j.calls.Add(1)
	return true
}

func (j *Journal) read(ctx context.Context, do step) error { return j.call(ctx, reading, do) }

// call runs a step until the server has answered, as far as its way, the context and the
// store's patience allow.
func (j *Journal) call(ctx context.Context, w way, do step) error {
	if ctx.Err() != nil {
		return errEnded(ctx)
	}
	if !j.enter() {
		return errClosed()
	}
	defer j.calls.Done()
	began := time.Now()
	lost := false // an attempt may have had an effect
	for try := 0; ; try++ {
		what, err := j.attempt(ctx, w, do)
		lost = lost || what == unknown
		switch {
		case what == executed:
			return nil
		case what == refused, what == unknown && !w.repeat, time.Since(began) > j.patience, !j.pause(ctx, try):
			return j.giveUp(ctx, w, lost, err)
		}
	}
}

// pause waits before another try; it returns false when there is to be none.
func (j *Journal) pause(ctx context.Context, try int) bool {
	const shortest, longest = 5 * time.Millisecond, 500 * time.Millisecond
	d := min(longest, shortest<<min(try, 10))
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-j.closing:
	}
	return false
}

// giveUp says what is known at the end.
func (j *Journal) giveUp(ctx context.Context, w way, lost bool, err error) error {
	if lost && w.writes {
		err = errors.Join(store.ErrUnknownOutcome, err)
	}
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = errors.Join(context.Cause(ctx), err)
	}
	select {
	case <-j.closing:
		if !errors.Is(err, store.ErrClosed) {
			err = errors.Join(errClosed(), err)
		}
	default:
	}
	return fmt.Errorf("postgres: %w", err)
}

// attempt runs a step once.
func (j *Journal) attempt(ctx context.Context, w way, do step) (outcome, error) {
	bound, cancel := j.bound(ctx)
	defer cancel()
	conn, err := j.pool.Acquire(bound)
	if err != nil {
		return classifyConnect(err), fmt.Errorf("connect: %w", err)
	}
	if bound.Err() != nil {
		conn.Release()
		return notExecuted, context.Cause(bound)
	}
	if !w.alone {
		defer conn.Release()
		if !w.slow {
			var stop context.CancelFunc
			bound, stop = context.WithTimeout(bound, j.timeout)
			defer stop()
		}
		return j.run(bound, conn.Conn(), do)
	}
	type answer struct {
		what outcome
		err  error
	}
	answers := make(chan answer, 1)
	j.calls.Add(1)
	go func() {
		defer j.calls.Done()
		defer conn.Release()
		alone, stop := context.WithTimeout(j.base, j.timeout)
		defer stop()
		what, err := j.run(alone, conn.Conn(), do)
		answers <- answer{what, err}
	}()
	select {
	case a := <-answers:
		return a.what, a.err
	case <-ctx.Done():
		return unknown, context.Cause(ctx)
	}
}

// bound returns a context that ends when the caller's does or the store breaks off.
func (j *Journal) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(j.base, func() { cancel(context.Cause(j.base)) })
	return bound, func() {
		stop()
		cancel(nil)
	}
}

// run runs a step on a connection and classifies its end.
func (j *Journal) run(ctx context.Context, conn *pgx.Conn, do step) (outcome, error) {
	warned(conn) // by what was before
	err := do(ctx, conn)
	if err == nil && warned(conn) {
		err = errWaitCancelled
	}
	what := classify(err)
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &answer) && answer.Code == codeReadOnly:
		// The server was made a standby, or read-only: the pool is to look for another.
		_ = conn.Close(ctx)
		j.pool.Reset()
	case conn.IsClosed():
		j.failed.Store(time.Now().UnixNano())
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			j.pool.Reset() // the server may be cut off, and then the others hang as well
		}
	}
	return what, err
}
