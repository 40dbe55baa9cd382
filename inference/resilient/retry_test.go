package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

func half() float64 { return 0.5 }

func TestRetryAsksAgainOnlyWhereThatHelps(t *testing.T) {
	for class := resilient.Unknown; class <= resilient.Cancelled; class++ {
		for way, ask := range ways {
			synctest.Test(t, func(t *testing.T) {
				f, m := streaming(breaks(failure(class)), says("fine"))
				resp, err := ask(t.Context(), wrap(t, m, resilient.Retry{}), request("x"))
				if class.Again() {
					require.NoError(t, err, "%v, %s", class, way)
					require.Equal(t, "fine", resp.Message.Text)
					return
				}
				require.Equal(t, failure(class), err, "%v, %s: the error itself", class, way)
				require.Equal(t, 1, f.asked(), "%v, %s", class, way)
			})
		}
	}
}

func TestRetryOfChosenClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		classes := []resilient.Class{resilient.Unknown}
		layer := resilient.Retry{Classes: classes}
		_, m := plain(breaks(errors.New("odd")), says("fine"), breaks(failure(resilient.Transient)))
		m = wrap(t, m, layer)
		classes[0] = resilient.Overloaded // too late to matter
		_, err := m.Generate(t.Context(), request("x"))
		require.NoError(t, err)
		_, err = m.Generate(t.Context(), request("x"))
		require.ErrorIs(t, err, resilient.Transient, "it is not among them")
	})
}

func TestRetryWaits(t *testing.T) {
	after := func(d time.Duration) error {
		return &resilient.Failure{Class: resilient.RateLimited, RetryAfter: d}
	}
	broken := failure(resilient.Transient)
	for name, c := range map[string]struct {
		layer  resilient.Retry
		errs   []error
		waited []time.Duration // between the attempts
		fails  bool
	}{
		"twice as long each time": {
			resilient.Retry{Rand: half, Attempts: 5}, []error{broken, broken, broken, broken},
			[]time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}, false,
		},
		"up to a maximum": {
			resilient.Retry{Rand: half, Attempts: 5, Base: time.Second, Max: 3 * time.Second}, []error{broken, broken, broken, broken},
			[]time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond}, false,
		},
		"a maximum below the base": {
			resilient.Retry{Rand: half, Base: time.Minute, Max: time.Second}, []error{broken}, []time.Duration{500 * time.Millisecond}, false,
		},
		"what the service asks for, and then some": {
			resilient.Retry{Rand: half}, []error{after(7 * time.Second), broken}, []time.Duration{7250 * time.Millisecond, 500 * time.Millisecond}, false,
		},
		"as long as is bearable": {
			resilient.Retry{Rand: half, MaxRetryAfter: 10 * time.Second}, []error{after(10 * time.Second)}, []time.Duration{10250 * time.Millisecond}, false,
		},
		"not longer": {
			resilient.Retry{MaxRetryAfter: 10 * time.Second}, []error{after(10*time.Second + 1)}, nil, true,
		},
		"not for ever": {resilient.Retry{}, []error{after(math.MaxInt64)}, nil, true},
		"a negative time is none": {
			resilient.Retry{Rand: half}, []error{after(-time.Hour)}, []time.Duration{250 * time.Millisecond}, false,
		},
		"as often as allowed": {
			resilient.Retry{Rand: half, Attempts: 2}, []error{broken, broken}, []time.Duration{250 * time.Millisecond}, true,
		},
		"never": {resilient.Retry{Attempts: 1}, []error{broken}, nil, true},
		"within the total": {
			resilient.Retry{Rand: half, Base: 8 * time.Second, Attempts: 9, Total: 12 * time.Second},
			[]error{broken, broken, broken, broken}, []time.Duration{4 * time.Second, 8 * time.Second}, true,
		},
	} {
		for way, ask := range ways {
			synctest.Test(t, func(t *testing.T) {
				var answers []answer
				for _, err := range c.errs {
					answers = append(answers, breaks(err))
				}
				f, m := streaming(append(answers, says("fine"))...)
				var told []time.Duration
				c.layer.Observe = func(_ context.Context, failed resilient.Failed) {
					require.Equal(t, resilient.Failed{Model: "m", Attempt: len(told) + 1, Err: c.errs[len(told)], Wait: failed.Wait}, failed)
					told = append(told, failed.Wait)
				}
				start := time.Now()
				_, err := ask(t.Context(), wrap(t, m, c.layer), request("x"))
				require.Equal(t, c.fails, err != nil, "%s, %s", name, way)
				require.Equal(t, c.waited, told, "%s, %s", name, way)
				require.Equal(t, len(told)+1, f.asked(), "%s, %s", name, way)
				var sum time.Duration
				for _, d := range told {
					sum += d
				}
				require.Equal(t, sum, time.Since(start), "%s, %s", name, way)
				if c.fails && len(told) > 0 {
					require.EqualError(t, err, fmt.Sprintf("resilient: gave up after %d attempts: %v", f.asked(), c.errs[f.asked()-1]))
				}
			})
		}
	}
}

// TestRetryJitterIsFull looks at the waits of many: they are spread from nothing to the bound.
func TestRetryJitterIsFull(t *testing.T) {
	var waits []time.Duration
	layer := resilient.Retry{
		Attempts: 2, Base: 100 * time.Millisecond,
		Observe: func(_ context.Context, f resilient.Failed) { waits = append(waits, f.Wait) },
		Sleep:   func(context.Context, time.Duration) error { return nil },
		Rand:    rand.New(rand.NewPCG(1, 2)).Float64,
	}
	for range 1000 {
		_, m := plain(breaks(failure(resilient.Transient)))
		_, _ = wrap(t, m, layer).Generate(t.Context(), request("x"))
	}
	require.Len(t, waits, 1000)
	slices.Sort(waits)
	require.Less(t, waits[50], 10*time.Millisecond)
	require.Greater(t, waits[950], 90*time.Millisecond)
	require.Less(t, waits[999], 100*time.Millisecond)
}

// TestRetryAgainstAModel draws what goes wrong and compares with a few lines that say what is right.
func TestRetryAgainstAModel(t *testing.T) {
	type step struct {
		Class uint8 // of the failure; beyond the last it is an answer
		After uint8 // seconds
		Takes uint8 // seconds
	}
	right := func(script []step, attempts, total, most uint8) bool {
		layer := resilient.Retry{
			Attempts: int(attempts%6) + 1, Total: time.Duration(total) * time.Second, Base: time.Second, Max: 4 * time.Second,
			MaxRetryAfter: time.Duration(most%100+1) * time.Second, Rand: half,
		}
		if layer.Total == 0 {
			layer.Total = time.Second
		}
		now := noon
		var waits []time.Duration
		layer.Now = func() time.Time { return now }
		layer.Sleep = func(_ context.Context, d time.Duration) error {
			waits, now = append(waits, d), now.Add(d)
			return nil
		}
		n := 0
		m := wrap(t, inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
			s := step{Class: 255}
			if n < len(script) {
				s = script[n]
			}
			n++
			now = now.Add(time.Duration(s.Takes) * time.Second)
			resp := inference.Response{Usage: inference.Usage{InputTokens: int64(n)}}
			if class := resilient.Class(s.Class % 16); class <= resilient.Cancelled {
				return resp, &resilient.Failure{Class: class, RetryAfter: time.Duration(s.After) * time.Second}
			}
			resp.Message = inference.Assistant("fine")
			return resp, nil
		}), layer)
		resp, err := m.Generate(t.Context(), request("x"))

		// The model: walk through the script.
		var wantWaits []time.Duration
		var elapsed, paid int64
		asked, failed := 0, resilient.Class(255)
		for {
			s := step{Class: 255}
			if asked < len(script) {
				s = script[asked]
			}
			asked++
			paid += int64(asked)
			elapsed += int64(s.Takes) * 1000
			failed = resilient.Class(s.Class % 16)
			wait := int64(s.After)*1000 + int64(min(500<<(asked-1), 2000))
			if !failed.Again() || asked == layer.Attempts || time.Duration(s.After)*time.Second > layer.MaxRetryAfter ||
				time.Duration(elapsed+wait)*time.Millisecond > layer.Total {
				break
			}
			elapsed += wait
			wantWaits = append(wantWaits, time.Duration(wait)*time.Millisecond)
		}
		ok := n == asked && slices.Equal(waits, wantWaits) && resp.Usage.InputTokens == paid
		if failed > resilient.Cancelled {
			return ok && err == nil && resp.Message.Text == "fine"
		}
		return ok && errors.Is(err, failed)
	}
	require.NoError(t, quick.Check(right, &quick.Config{MaxCount: 1000}))
}

func TestRetryEndsWithTheContext(t *testing.T) {
	for way, ask := range ways {
		synctest.Test(t, func(t *testing.T) {
			f, m := streaming(breaks(failure(resilient.RateLimited)).paid(3), says("never"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			resp, err := ask(ctx, wrap(t, m, resilient.Retry{Rand: half, Base: time.Minute}), request("x"))
			require.Equal(t, time.Second, time.Since(start), way)
			require.ErrorIs(t, err, context.DeadlineExceeded, way)
			require.ErrorIs(t, err, resilient.RateLimited, "%s: it says why it waited", way)
			require.Equal(t, resilient.Cancelled, resilient.ClassOf(err), way)
			require.Equal(t, 1, f.asked(), way)
			require.EqualValues(t, 3, resp.Usage.OutputTokens, way)
		})
	}
}

func TestRetryReturnsTheErrorOfAModelWhoseContextEnded(t *testing.T) {
	for way, ask := range ways {
		ctx, cancel := context.WithCancel(t.Context())
		_, m := streaming(deaf(breaks(broken)))
		retry := resilient.Retry{
			Now:     func() time.Time { cancel(); return noon },
			Observe: func(context.Context, resilient.Failed) { t.Error("there is no other attempt to be told of") },
		}
		_, err := ask(ctx, wrap(t, m, retry), request("x"))
		require.Equal(t, broken, err, way)
	}
}

// TestAnErrorMayComeWithUsage has a stream end with a chunk that has both.
func TestAnErrorMayComeWithUsage(t *testing.T) {
	for name, around := range wrappers(t) {
		m := around(streamFunc(func(_ context.Context, yield func(inference.Chunk, error) bool) {
			yield(inference.Chunk{Usage: inference.Usage{InputTokens: 4}}, failure(resilient.BadRequest))
		}))
		resp, err := collect(t.Context(), m, request("x"))
		require.ErrorIs(t, err, resilient.BadRequest, name)
		require.EqualValues(t, 4, resp.Usage.InputTokens, name)
	}
}

func TestRetryAddsTheUsageUp(t *testing.T) {
	broken := failure(resilient.Transient)
	for way, ask := range ways {
		synctest.Test(t, func(t *testing.T) {
			_, m := streaming(breaks(broken).paid(1), breaks(broken).paid(10), says("fine").paid(100))
			resp, err := ask(t.Context(), wrap(t, m, resilient.Retry{}), request("x"))
			require.NoError(t, err)
			require.EqualValues(t, 111, resp.Usage.OutputTokens, way)

			_, m = streaming(breaks(broken).paid(1), breaks(broken).paid(10))
			resp, err = ask(t.Context(), wrap(t, m, resilient.Retry{Attempts: 2}), request("x"))
			require.ErrorIs(t, err, broken)
			require.EqualValues(t, 11, resp.Usage.OutputTokens, "%s: with an error, too", way)
		})
	}
}
