package fanout_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/fanout"
)

// members counts the goroutines of crews in the test's bubble.
func members() (n int) {
	synctest.Wait()
	text := make([]byte, 1<<20)
	for _, g := range strings.Split(string(text[:runtime.Stack(text, true)]), "\n\n") {
		if strings.Contains(g, "synctest bubble") && strings.Contains(g, "created by golang.org/x/sync/errgroup") {
			n++
		}
	}
	return n
}

// A crew makes calls that follow each other on goroutines that it has, keeps few of
// them, and has none after its end.
func TestCrewKeepsAFewGoroutinesUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := &fanout.Crew{}
		for _, n := range []int{1, 2, 64} {
			out := fanout.Each(t.Context(), fanout.Way{Crew: crew, Limit: n}, n, func(i int) int { time.Sleep(time.Second); return i + 1 }, func(error) int { return 0 })
			for i, v := range out {
				require.Equal(t, i+1, v)
			}
		}
		require.Equal(t, 4, members())
		crew.End()
		require.Zero(t, members())

		// It still makes calls, on goroutines that do not stay.
		require.Equal(t, []int{7}, fanout.Each(t.Context(), fanout.Way{Crew: crew, Limit: 1}, 1, func(int) int { return 7 }, func(error) int { return 0 }))
		require.Zero(t, members())
	})
}

// A goroutine that a call ended, or still keeps, is not used again; the others are.
func TestCrewLosesNoCallToOneThatHangsOrEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := &fanout.Crew{}
		release := make(chan struct{})
		var made atomic.Int64
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			out := fanout.Each(ctx, fanout.Way{Crew: crew, Limit: 5}, 5, func(i int) int {
				switch i {
				case 1:
					runtime.Goexit()
				case 3:
					<-release
				}
				made.Add(1)
				return i
			}, func(cause error) int {
				if cause == nil {
					return -1
				}
				return -2
			})
			cancel()
			require.Equal(t, []int{0, -1, 2, -2, 4}, out)
		}
		require.EqualValues(t, 60, made.Load())
		close(release)
		synctest.Wait()
		require.EqualValues(t, 80, made.Load())
		require.LessOrEqual(t, members(), 4)
		crew.End()
		require.Zero(t, members())
	})
}

// Calls that were expected to be quick are watched no sooner than after a while; if one
// blocks, all the others overlap nevertheless.
func TestQuickCallsThatBlockOverlapAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := &fanout.Crew{}
		defer crew.End()
		late := 0
		way := fanout.Way{Crew: crew, Limit: 64, Quick: true, Late: func() { late++ }}
		for i := range 3 {
			start := time.Now()
			fanout.Each(t.Context(), way, 64, func(int) bool { time.Sleep(time.Second); return true }, func(error) bool { return false })
			require.Equal(t, time.Second+time.Millisecond, time.Since(start))
			require.Equal(t, i+1, late)
		}
		start := time.Now()
		fanout.Each(t.Context(), way, 64, func(int) bool { return true }, func(error) bool { return false })
		require.Zero(t, time.Since(start))
		require.Equal(t, 3, late)

		fanout.Each(t.Context(), way, 1, func(int) bool { time.Sleep(time.Second); return true }, func(error) bool { return false })
		require.Equal(t, 4, late, "also of a single call")
	})
}

// Calls are expected to be quick when they were for a while, and no longer when they
// were not once.
func TestPace(t *testing.T) {
	var p fanout.Pace
	for range 100 {
		p.Learn(time.Microsecond)
		p.Learn(time.Millisecond)
		require.False(t, p.Quick())
	}
	for !p.Quick() {
		p.Learn(time.Microsecond)
	}
	p.Learn(time.Microsecond)
	require.True(t, p.Quick())
	p.Learn(time.Millisecond)
	require.False(t, p.Quick())
}
