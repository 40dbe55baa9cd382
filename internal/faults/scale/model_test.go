//go:build unix

package scale_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/scale"
)

var small = scale.Engine{Name: "test", Single: time.Millisecond, Rate: 4000, Read: 0.2, Empty: 0.1, Conns: 17}

// The model does the same each time, does what is offered while there is room, and no more
// than the server can when there is not.
func TestPredict(t *testing.T) {
	load := scale.Load{Workers: 10, Shards: 1, Busy: 0.5, Steps: 3, Think: 2 * time.Second, Seed: 1, For: 100 * time.Second}
	out := scale.Predict(small, load)
	require.Equal(t, out, scale.Predict(small, load))
	require.Equal(t, 25, load.Writes(), "which the engines' rates are for")
	require.InEpsilon(t, out.Offered, out.Runs, 0.1)
	require.InEpsilon(t, 0.5, out.Slots, 0.15)
	require.InEpsilon(t, out.Runs*float64(load.Writes())/small.Rate, out.Used, 0.3, "reads and idle workers come on top")
	require.Equal(t, 170, out.Conns)
	require.Less(t, out.Slow, 10*time.Millisecond)

	load.Workers = 4000
	load.For = 20 * time.Second
	full := scale.Predict(small, load)
	require.InDelta(t, 1, full.Used, 0.01)
	require.Less(t, full.Runs, full.Offered/2)
	require.Less(t, full.Runs, small.Rate/float64(load.Writes()-10))
	require.Greater(t, full.Slow, 100*time.Millisecond)

	load.Shards = 100
	spread := scale.Predict(small, load)
	require.InEpsilon(t, spread.Offered, spread.Runs, 0.1)
}

// Where every submission wakes all workers, those with a free slot cost the server more
// the more of them there are.
func TestNoticesWakeAll(t *testing.T) {
	load := scale.Load{Workers: 100, Shards: 1, Busy: 0.3, Steps: 3, Think: 2 * time.Second, Seed: 1, For: 20 * time.Second}
	polled := scale.Predict(small, load)
	load.Notices = true
	woken := scale.Predict(small, load)
	require.Zero(t, polled.Herd)
	require.Greater(t, woken.Herd, woken.Offered)
	require.Greater(t, woken.Used, polled.Used)
}

// The plan has an answer for each engine, and more workers never need fewer shards.
func TestPlan(t *testing.T) {
	var out strings.Builder
	require.NoError(t, scale.Plan(&out, 1, 4))
	require.Equal(t, len(scale.Engines)*3*2+3, strings.Count(out.String(), "\n"))
	t.Log(out.String())
	require.InDelta(t, 1, scale.Imbalance(100_000, 4, func(int) float64 { return 1 }), 0.05)
	require.InDelta(t, 4, scale.Imbalance(1, 4, func(int) float64 { return 1 }), 0)
}
