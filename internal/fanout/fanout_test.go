package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/fanout"
)

func lost(cause error) string { return fmt.Sprint("lost: ", cause) }

func TestResultsStandAtTheirIndex(t *testing.T) {
	for n := range 20 {
		for limit := 1; limit < 5; limit++ {
			var running, most atomic.Int64
			out := fanout.Each(t.Context(), fanout.Way{Limit: limit}, n, func(i int) string {
				now := running.Add(1)
				defer running.Add(-1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				return fmt.Sprint(i)
			}, lost)
			require.Len(t, out, n)
			for i, v := range out {
				require.Equal(t, fmt.Sprint(i), v)
			}
			require.LessOrEqual(t, most.Load(), int64(limit))
		}
	}
}

func TestGoexitCostsNoOtherCallItsTurn(t *testing.T) {
	out := fanout.Each(t.Context(), fanout.Way{Limit: 1}, 5, func(i int) string {
		if i%2 == 0 {
			runtime.Goexit()
		}
		return "done"
	}, lost)
	require.Equal(t, []string{"lost: <nil>", "done", "lost: <nil>", "done", "lost: <nil>"}, out)
}

func TestEndOfContextGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, cause)
		defer cancel()
		var begun atomic.Int64
		start := time.Now()
		out := fanout.Each(ctx, fanout.Way{Limit: 2}, 6, func(i int) string {
			begun.Add(1)
			time.Sleep(2 * time.Second)
			return fmt.Sprint(i)
		}, lost)
		require.Equal(t, 3*time.Second, time.Since(start))
		want := []string{"0", "1", "lost: enough", "lost: enough", "lost: enough", "lost: enough"}
		require.Equal(t, want, out)

		time.Sleep(time.Minute) // the late results come now
		synctest.Wait()
		require.Equal(t, want, out, "and are dropped")
		require.EqualValues(t, 4, begun.Load(), "no call begins after the end")
	})
}

func TestOne(t *testing.T) {
	exited, failed, cause := errors.New("exited"), errors.New("failed"), errors.New("enough")
	v, err := fanout.One(t.Context(), nil, exited, func() (int, error) { return 1, failed })
	require.Equal(t, 1, v)
	require.ErrorIs(t, err, failed)

	_, err = fanout.One(t.Context(), nil, exited, func() (int, error) { runtime.Goexit(); return 1, nil })
	require.ErrorIs(t, err, exited)

	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	v, err = fanout.One(ctx, nil, exited, func() (int, error) { cancel(cause); <-release; return 1, nil })
	close(release)
	require.ErrorIs(t, err, cause)
	require.Zero(t, v)
}

// What comes after the end is late, whichever of the two the wait notices first.
func TestOneCountsNothingAfterTheEnd(t *testing.T) {
	cause := errors.New("enough")
	for range 5000 {
		ctx, cancel := context.WithCancelCause(t.Context())
		v, err := fanout.One(ctx, nil, errors.New("exited"), func() (int, error) { cancel(cause); return 1, nil })
		require.ErrorIs(t, err, cause)
		require.Zero(t, v)
	}
}

// However many calls there are, those that wait for each other all get their turn.
func TestCallsThatBlockAllOverlap(t *testing.T) {
	for _, n := range []int{2, 3, 64, 500} {
		synctest.Test(t, func(t *testing.T) {
			var begun atomic.Int64
			all := make(chan struct{})
			out := fanout.Each(t.Context(), fanout.Way{Limit: n}, n, func(i int) string {
				if begun.Add(1) == int64(n) {
					close(all)
				}
				<-all
				return fmt.Sprint(i)
			}, lost)
			require.Equal(t, fmt.Sprint(n-1), out[n-1])
		})
	}
}

// A call that ends its goroutine gives its place to one other, not to two.
func TestGoexitKeepsTheLimit(t *testing.T) {
	for range 200 {
		var running, most atomic.Int64
		fanout.Each(t.Context(), fanout.Way{Limit: 2}, 40, func(i int) string {
			now := running.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			runtime.Gosched()
			running.Add(-1)
			if i%3 == 0 {
				runtime.Goexit()
			}
			return ""
		}, lost)
		require.LessOrEqual(t, most.Load(), int64(2))
	}
}

// A goroutine says which call it made before, and no call is that twice.
func TestEachCallIsBeforeOneOther(t *testing.T) {
	out := fanout.Into(t.Context(), fanout.Way{Limit: 4}, make([]int, 100), func(i, before int, out *int) { *out = before }, func(error) int { return -2 })
	seen := map[int]bool{}
	for i, before := range out {
		require.Less(t, before, i)
		require.False(t, before >= 0 && seen[before])
		seen[before] = true
	}
}

// When ctx ends, the calls that still run have the slice that was given to them, and
// what they write later is not in the one that is returned.
func TestLateResultsAreWrittenElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		given := make([]string, 3)
		out := fanout.Into(ctx, fanout.Way{Limit: 3}, given, func(i, _ int, out *string) {
			time.Sleep(time.Duration(i) * 700 * time.Millisecond)
			*out = fmt.Sprint(i)
		}, func(error) string { return "lost" })
		require.Equal(t, []string{"0", "1", "lost"}, out)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"0", "1", "lost"}, out)
		require.Equal(t, []string{"0", "1", "2"}, given)
	})
}
