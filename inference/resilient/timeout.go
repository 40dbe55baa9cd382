package resilient

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// The causes of failures of a [Timeout].
var (
	// ErrTimeout: an answer was not complete in time.
	ErrTimeout = errors.New("resilient: the model took too long")
	// ErrStalled: nothing came from a stream for too long.
	ErrStalled = errors.New("resilient: the stream stalled")
)

// Timeout is a [Layer] that limits how long a model may take. A field that is 0 is no limit.
//
// At a limit the model's context ends, and the error is a [*Failure] of class Transient with the cause ErrTimeout or
// ErrStalled, even if the model says something else. A model that heeds its context has a second to return, so that
// what it knows of the usage is not lost; then it is left behind in its goroutine, and what it still does or says, a
// panic included, counts for nothing. The same holds when the caller's context ends or the consumer of a stream leaves.
type Timeout struct {
	// Request is for an answer as a whole, with the time that the consumer of a stream takes.
	Request time.Duration
	// First is for the wait until the first chunk of a stream, which can be long with models that think first. 0 means
	// the same as Stall.
	First time.Duration
	// Stall is for the wait between two chunks. The time that the consumer takes does not count.
	Stall time.Duration
}

// Validate implements [Layer].
func (t Timeout) Validate() error {
	return check("Timeout",
		field{"Request", t.Request >= 0, "0 (no limit) or more"},
		field{"First", t.First >= 0, "0 (the same as Stall) or more"},
		field{"Stall", t.Stall >= 0, "0 (no limit) or more"},
	)
}

func (t Timeout) wrap(m inference.Model) inference.Model {
	if t == (Timeout{}) {
		return m
	}
	return around(m, func(ctx context.Context, r inference.Request) (resp inference.Response, err error) {
		if t.Request == 0 {
			return m.Generate(ctx, r)
		}
		model := r.Model
		answer := func(ctx context.Context) iter.Seq2[inference.Response, error] {
			return func(yield func(inference.Response, error) bool) { yield(m.Generate(ctx, r)) }
		}
		only := func(_, next inference.Response) inference.Response { return next }
		for resp, err = range watch(ctx, Timeout{Request: t.Request}, answer, only) {
		}
		return resp, late(err, model, false)
	}, func(s inference.Streamer) streamFunc {
		return func(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
			return t.stream(ctx, s, r)
		}
	})
}

func (t Timeout) stream(ctx context.Context, s inference.Streamer, r inference.Request) iter.Seq2[inference.Chunk, error] {
	t.First = cmp.Or(t.First, t.Stall)
	model := r.Model
	return func(yield func(inference.Chunk, error) bool) {
		y := relay{yield: yield}
		open := func(ctx context.Context) iter.Seq2[inference.Chunk, error] { return s.Stream(ctx, r) }
		spent := func(sum, next inference.Chunk) inference.Chunk {
			return inference.Chunk{Usage: sum.Usage.Add(next.Usage)}
		}
		_, err := y.walk(watch(ctx, t, open, spent), overlap{})
		y.end(late(err, model, y.began))
	}
}

// late makes a failure of an error that a limit, or the end of the caller's context, is the cause of.
func late(err error, model string, partial bool) error {
	if err == ErrTimeout || err == ErrStalled {
		return &Failure{Class: Transient, Model: model, Partial: partial, Err: err}
	}
	if end, ok := err.(over); ok {
		return &Failure{Class: Cancelled, Model: model, Partial: partial, Err: end.cause}
	}
	return err
}
