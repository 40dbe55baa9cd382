package effects_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
)

// The tests in this file run in synctest bubbles, which fail when a goroutine is left over: the dispatcher keeps none.

func second(context.Context) error { time.Sleep(time.Second); return nil }

// Capability G3. Effects are delivered in the background, in order, while the run goes on.
func TestBackgroundReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports log
		d := scripted(t, effects.Config{Mode: effects.Background, Report: reports.report}, script{"slow": second})
		start := time.Now()
		for rev := range uint64(5) {
			require.Nil(t, d.Deliver(t.Context(), deliveries(rev, "slow", "quick")))
		}
		require.Zero(t, time.Since(start), "the run does not wait")
		require.NoError(t, d.Drain(t.Context()))
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, []string{"0/0 ok", "0/1 ok", "1/0 ok", "1/1 ok", "2/0 ok", "2/1 ok", "3/0 ok", "3/1 ok", "4/0 ok", "4/1 ok"}, reports.all())

		d.Deliver(t.Context(), deliveries(9, "quick"))
		require.NoError(t, d.Close(t.Context()), "work starts again after a drain")
		require.Len(t, reports.all(), 11)
	})
}

// Capability G3. A full queue never blocks the run: what does not fit fails at once and is reported.
func TestBackgroundOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports log
		d := scripted(t, effects.Config{Mode: effects.Background, Queue: 2, Report: reports.report}, script{"slow": second})
		require.Nil(t, d.Deliver(t.Context(), deliveries(1, "slow")))
		synctest.Wait()
		start := time.Now()
		refused := d.Deliver(t.Context(), deliveries(2, "a", "b", "c", "d"))
		require.Zero(t, time.Since(start))
		require.Equal(t, []string{"2/2 overflow", "2/3 overflow"}, summaries(refused))
		require.ErrorIs(t, refused[0].Err, effects.ErrOverflow)
		require.NoError(t, d.Close(t.Context()))
		require.Equal(t, []string{"2/2 overflow", "2/3 overflow", "1/0 ok", "2/0 ok", "2/1 ok"}, reports.all())
	})
}

func TestDrainInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports log
		cause := make(chan error, 1)
		d := scripted(t, effects.Config{Mode: effects.Background, Report: reports.report}, script{
			"stuck": func(ctx context.Context) error { <-ctx.Done(); cause <- ctx.Err(); return nil },
		})
		d.Deliver(t.Context(), deliveries(1, "quick", "stuck", "quick", "quick"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := d.Drain(ctx)
		require.ErrorIs(t, err, effects.ErrUndelivered)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var ue *effects.UndeliveredError
		require.ErrorAs(t, err, &ue)
		require.Equal(t, 3, ue.Count)
		require.ErrorContains(t, err, "effects: 3 not delivered")
		require.ErrorIs(t, <-cause, context.Canceled, "the handler at work is told")
		require.Equal(t, []string{"1/0 ok", "1/1 undelivered", "1/2 undelivered", "1/3 undelivered"}, reports.all())

		require.NoError(t, d.Drain(ctx), "nothing is left, so an ended context does not matter")
		d.Deliver(t.Context(), deliveries(2, "quick"))
		require.NoError(t, d.Drain(t.Context()), "the dispatcher goes on")
		require.Contains(t, reports.all(), "2/0 ok")
	})
}

func TestDrainCutShortDuringReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		d := scripted(t, effects.Config{Mode: effects.Background, Report: func(effects.Outcome) { <-release }}, nil)
		d.Deliver(t.Context(), deliveries(1, "quick"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, d.Drain(ctx), "the effect itself was delivered")
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports log
		var d *effects.Dispatcher
		d = scripted(t, effects.Config{Mode: effects.Background, Report: reports.report}, script{
			"emits": func(ctx context.Context) error {
				time.Sleep(time.Second)
				d.Deliver(ctx, deliveries(2, "quick"))
				return nil
			},
		})
		d.Deliver(t.Context(), deliveries(1, "emits"))
		require.NoError(t, d.Close(t.Context()))
		require.Equal(t, []string{"1/0 ok", "2/0 ok"}, reports.all(), "what handlers add during the drain is delivered too")

		refused := d.Deliver(t.Context(), deliveries(3, "quick"))
		require.Equal(t, []string{"3/0 closed"}, summaries(refused))
		require.ErrorIs(t, refused[0].Err, effects.ErrClosed)
		require.NoError(t, d.Close(t.Context()))

		hasty := scripted(t, effects.Config{Mode: effects.Background}, script{"stuck": func(ctx context.Context) error { <-ctx.Done(); return nil }})
		hasty.Deliver(t.Context(), deliveries(1, "stuck"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, hasty.Close(ended), effects.ErrUndelivered)
		require.Equal(t, []string{"2/0 closed"}, summaries(hasty.Deliver(t.Context(), deliveries(2, "quick"))), "it closes all the same")
	})
}

func TestInlineClose(t *testing.T) {
	d := scripted(t, effects.Config{}, nil)
	require.NoError(t, d.Close(t.Context()))
	require.Equal(t, []string{"1/0 closed", "1/1 closed"}, summaries(d.Deliver(t.Context(), deliveries(1, "a", "b"))))
}

// Fault B38. A handler that would wait for itself gets an error instead.
func TestHandlerCannotDrainItself(t *testing.T) {
	for _, mode := range []effects.Mode{effects.Inline, effects.Background} {
		synctest.Test(t, func(t *testing.T) {
			var outer, inner *effects.Dispatcher
			errs := make(chan error, 4)
			inner = scripted(t, effects.Config{}, script{"x": func(ctx context.Context) error {
				errs <- outer.Drain(ctx)
				errs <- inner.Close(ctx)
				return nil
			}})
			outer = scripted(t, effects.Config{Mode: mode}, script{"x": func(ctx context.Context) error {
				errs <- outer.Close(ctx)
				inner.Deliver(ctx, deliveries(1, "x"))
				errs <- inner.Drain(ctx)
				return nil
			}})
			outer.Deliver(t.Context(), deliveries(1, "x"))
			require.ErrorIs(t, <-errs, effects.ErrReentrant)
			require.ErrorIs(t, <-errs, effects.ErrReentrant, "also through another dispatcher's handler")
			require.ErrorIs(t, <-errs, effects.ErrReentrant)
			require.NoError(t, <-errs, "another dispatcher may be drained")
			require.NoError(t, outer.Drain(t.Context()))
		})
	}
}

// Every effect has exactly one outcome however many goroutines deliver, and each one's effects stay in order.
func TestConcurrentDelivery(t *testing.T) {
	const writers, each = 8, 40
	for _, mode := range []effects.Mode{effects.Inline, effects.Background} {
		t.Run(mode.String(), func(t *testing.T) {
			var mu sync.Mutex
			seen := map[effects.ID]int{}
			running := 0
			d := scripted(t, effects.Config{Mode: mode, Queue: writers * each, Report: func(o effects.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				seen[o.ID]++
			}}, script{"one": func(context.Context) error {
				mu.Lock()
				running++
				alone := running == 1
				mu.Unlock()
				defer func() { mu.Lock(); running--; mu.Unlock() }()
				if !alone {
					panic("two handlers at a time")
				}
				return nil
			}})
			var returned log
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := range each {
						for _, o := range d.Deliver(t.Context(), deliveries(uint64(w*each+i), "one")) {
							returned.report(o)
						}
					}
				})
			}
			wg.Wait()
			require.NoError(t, d.Close(t.Context()))
			require.Len(t, seen, writers*each)
			for id, n := range seen {
				require.Equal(t, 1, n, id)
			}
			if mode == effects.Inline {
				require.Len(t, returned.all(), writers*each, "inline, each outcome is returned by one call")
				for _, line := range returned.all() {
					require.Contains(t, line, " ok")
				}
			}
		})
	}
}
