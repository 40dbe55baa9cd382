package resilient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// Retry is a [Layer] that asks again when a model fails. The zero value is ready to use; a field that is 0 means its
// default.
//
// It waits between two attempts: a random share of Base after the first, of twice that after the second, and so on, but
// never of more than Max. Where a failure has a RetryAfter, that comes on top. It stops asking, and returns the last
// error, when an error is none of Classes, when Attempts is reached, when the next attempt would begin later than Total
// after the first, and at once when the context ends. An error after more than one attempt says how many there were.
//
// The usage of an answer is that of all attempts, as far as the model told: they all have to be paid for. It comes with
// an error, too.
type Retry struct {
	// Attempts is how often a model is asked at most, the first time included. The default is 4; 1 is no retry.
	Attempts int
	// Total is the time from the first attempt in which the last may begin. The default is 2 minutes. It does not cut
	// off an attempt: see [Timeout].
	Total time.Duration
	// Base and Max bound the wait. The defaults are 500 ms and 30 s.
	Base, Max time.Duration
	// MaxRetryAfter is the longest that a service may ask to be left alone. Who asks for more is not asked again. The
	// default is 1 minute.
	MaxRetryAfter time.Duration
	// Classes are the classes of errors after which the model is asked again. The default is those whose Again method
	// says so. Unknown may be added, and no other: for the rest the answer would be the same.
	Classes []Class
	// Recovery says what to do about a stream that breaks after some of the answer was passed on. The default is to
	// pass on the failure, too.
	Recovery Recovery
	// Observe, if not nil, is told before each wait. It may be called by many goroutines at once.
	Observe func(ctx context.Context, f Failed)
	// Rand returns a random number of at least 0 and less than 1; it must be safe for concurrent use. Now and Sleep are
	// the clock; Sleep returns an error if ctx ends first. The defaults are those of the standard library.
	Rand  func() float64
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// Failed is an attempt that failed and is followed by another.
type Failed struct {
	// Model is the model that was asked.
	Model string
	// Attempt is the number of the attempt, from 1.
	Attempt int
	Err     error
	// Wait is how long there is until the next attempt.
	Wait time.Duration
	// Passed is how much text of a broken stream was passed on before, in bytes.
	Passed int
}

// Validate implements [Layer].
func (c Retry) Validate() error {
	hopeless := func(c Class) bool { return c != Unknown && !c.Again() }
	const day, upToDay = 24 * time.Hour, "from 0 (the default) to 24 hours"
	return check("Retry",
		field{"Attempts", c.Attempts >= 0, "0 (the default) or more"},
		field{"Total", c.Total >= 0, "0 (the default) or more"},
		field{"Base", c.Base >= 0 && c.Base <= day, upToDay},
		field{"Max", c.Max >= 0 && c.Max <= day, upToDay},
		field{"MaxRetryAfter", c.MaxRetryAfter >= 0 && c.MaxRetryAfter <= day, upToDay},
		field{"Classes", !slices.ContainsFunc(c.Classes, hopeless), "of Transient, RateLimited, Overloaded and Unknown"},
		c.Recovery.valid(),
	)
}

func (c Retry) wrap(m inference.Model) inference.Model {
	c.Attempts = cmp.Or(c.Attempts, 4)
	c.Total = cmp.Or(c.Total, 2*time.Minute)
	c.Base = cmp.Or(c.Base, 500*time.Millisecond)
	c.Max = cmp.Or(c.Max, 30*time.Second)
	c.MaxRetryAfter = cmp.Or(c.MaxRetryAfter, time.Minute)
	c.Classes = slices.Clone(c.Classes)
	if len(c.Classes) == 0 {
		c.Classes = []Class{Transient, RateLimited, Overloaded}
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	return around(m,
		func(ctx context.Context, r inference.Request) (inference.Response, error) {
			return c.generate(ctx, m, r)
		},
		func(s inference.Streamer) streamFunc {
			return func(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
				return c.stream(ctx, s, r)
			}
		})
}

func (c Retry) generate(ctx context.Context, m inference.Model, r inference.Request) (inference.Response, error) {
	var resp inference.Response
	var spent inference.Usage
	err := c.again(ctx, r.Model, func() (passed int, final bool, err error) {
		resp, err = m.Generate(ctx, r.Clone())
		spent = spent.Add(resp.Usage)
		return 0, false, err
	})
	resp.Usage = spent
	return resp, err
}

func (c Retry) stream(ctx context.Context, s inference.Streamer, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		y := relay{yield: yield, holds: c.Recovery.How != Fail}
		var broke error
		err := c.again(ctx, r.Model, func() (passed int, final bool, err error) {
			req, known := c.Recovery.request(r, y.text.String())
			if _, err = y.walk(s.Stream(ctx, req), known); err == nil {
				y.release()
				return 0, true, nil
			}
			if errors.Is(err, ErrDiverged) {
				return y.text.Len(), true, fmt.Errorf("%w, after: %w", err, broke)
			}
			broke = err
			return y.text.Len(), y.left || y.began && !y.holds, err
		})
		y.end(err)
	}
}

// again calls try until it succeeds, or its error is final, or there must not be another attempt.
func (c Retry) again(ctx context.Context, model string, try func() (passed int, final bool, err error)) error {
	start := c.Now()
	for n := 1; ; n++ {
		passed, final, err := try()
		if err == nil {
			return nil
		}
		wait, ok := c.wait(n, err)
		if final || !ok || n >= c.Attempts || ctx.Err() != nil || c.Now().Add(wait).Sub(start) > c.Total {
			if n > 1 {
				err = fmt.Errorf("resilient: gave up after %d attempts: %w", n, err)
			}
			return inMidAnswer(err, model, passed > 0)
		}
		if c.Observe != nil {
			c.Observe(ctx, Failed{Model: model, Attempt: n, Err: err, Wait: wait, Passed: passed})
		}
		if ended := c.Sleep(ctx, wait); ended != nil {
			return &Failure{Class: Cancelled, Model: model, Partial: passed > 0,
				Err: fmt.Errorf("%w, while waiting to ask again after: %w", ended, err)}
		}
	}
}

// inMidAnswer returns err, or a failure around it that says that some of the answer was passed on before: by an earlier
// attempt, of which the last one knows nothing.
func inMidAnswer(err error, model string, passed bool) error {
	var f *Failure
	if !passed || errors.As(err, &f) && f.Partial {
		return err
	}
	out := Failure{Class: ClassOf(err), Model: model, Partial: true, Err: err}
	if f != nil {
		out.Status, out.Code, out.RetryAfter = f.Status, f.Code, f.RetryAfter
	}
	return &out
}

// wait returns how long to wait after attempt n failed with err, and whether to ask again at all.
func (c Retry) wait(n int, err error) (time.Duration, bool) {
	if !slices.Contains(c.Classes, ClassOf(err)) {
		return 0, false
	}
	var asked time.Duration
	if f := (*Failure)(nil); errors.As(err, &f) {
		asked = max(0, f.RetryAfter)
	}
	if asked > c.MaxRetryAfter {
		return 0, false
	}
	most := min(c.Base, c.Max)
	for ; n > 1 && most < c.Max; n-- {
		most = min(2*most, c.Max)
	}
	return asked + time.Duration(c.Rand()*float64(most)), true
}

// sleep waits for d, or returns an error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return gone(ctx)
	}
	return nil
}
