package fanout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/fanout"
)

func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, lost := 0, errors.New("lost")
		until, stop := fanout.Repeat(t.Context(), time.Second, func(context.Context) error {
			if calls++; calls == 3 {
				return lost
			}
			return nil
		})
		<-until.Done()
		require.Equal(t, lost, context.Cause(until))
		stop()
		require.Equal(t, 3, calls)
		require.Equal(t, lost, context.Cause(until), "the first end counts")
	})
}

func TestRepeatGoesOnUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls []time.Time
		until, stop := fanout.Repeat(ctx, time.Second, func(ctx context.Context) error {
			calls = append(calls, time.Now())
			if len(calls) == 4 {
				<-ctx.Done() // stop interrupts
			}
			return nil
		})
		cancel()
		require.ErrorIs(t, until.Err(), context.Canceled, "it ends with ctx")
		time.Sleep(10 * time.Second)
		stop()
		require.Len(t, calls, 4)
		require.Equal(t, 3*time.Second, calls[3].Sub(calls[0]))
	})
}

func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ cancelled, over time.Duration }{
			{0, 0}, {time.Second, time.Second}, {time.Second, 3 * time.Second}, {time.Second, 5 * time.Second},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), max(c.cancelled, time.Nanosecond))
			if c.cancelled == 0 {
				ctx = t.Context()
			}
			start, called := time.Now(), time.Duration(0)
			stop := fanout.Overdue(ctx, 3*time.Second, func() { called = time.Since(start) })
			time.Sleep(c.over)
			stop()
			if c.over > 4*time.Second {
				require.Equal(t, 4*time.Second, called)
			} else {
				require.Zero(t, called)
			}
			cancel()
		}
	})
}
