package enginetest_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/stretchr/testify/require"
)

func TestClockMovesByOneStepPerReading(t *testing.T) {
	start := enginetest.Epoch()
	c := enginetest.NewClock(start)
	require.Equal(t, start, c.Now())
	require.Equal(t, start.Add(enginetest.ClockStep), c.Now())
	c.Advance(time.Hour)
	require.Equal(t, start.Add(time.Hour+2*enginetest.ClockStep), c.Now())

	readings := make([]time.Time, 100)
	var wg sync.WaitGroup
	for i := range readings {
		wg.Go(func() { readings[i] = c.Now() })
	}
	wg.Wait()
	slices.SortFunc(readings, time.Time.Compare)
	require.Len(t, slices.Compact(readings), 100)
	require.Equal(t, readings[99].Add(enginetest.ClockStep), c.Now())
}

func TestIDsAreCounted(t *testing.T) {
	next, other := enginetest.NewIDs("run"), enginetest.NewIDs("run")
	require.Equal(t, "run-1", next())
	require.Equal(t, "run-2", next())
	require.Equal(t, "run-1", other())
}
