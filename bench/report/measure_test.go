package report_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench"
	"github.com/ddd26017/fixpoint/bench/report"
)

// cost is what a made-up work takes each time.
type cost struct {
	time       time.Duration
	allocs     uint64
	bytes      uint64
	kept       uint64
	goroutines int
}

// taking is a work that does nothing but turn the gauge by its cost.
func taking(g *report.Gauge, c cost) bench.Work {
	return func(measure func(func(int) error) error) error {
		return measure(func(n int) error {
			g.Now += time.Duration(n) * c.time
			g.Mallocs += uint64(n) * c.allocs
			g.Allocated += uint64(n) * c.bytes
			g.Heap += uint64(n) * c.kept
			g.Goroutines += n * c.goroutines
			return nil
		})
	}
}

// failing is a work that fails at the given call of its step; before it starts at 0.
func failing(g *report.Gauge, err error, at int) bench.Work {
	return func(measure func(func(int) error) error) error {
		if at == 0 {
			return err
		}
		calls := 0
		return measure(func(n int) error {
			g.Now += time.Duration(n) * time.Microsecond
			if calls++; calls == at {
				return err
			}
			return nil
		})
	}
}

func row(g *report.Gauge, m bench.Measure, limit float64, work, base cost) bench.Row {
	return bench.Row{ID: "T1", Case: "n=1", Name: "made up", Baseline: "made up too", Impl: "other",
		Measure: m, Limit: limit, Work: taking(g, work), Base: taking(g, base)}
}

func measure(t *testing.T, g *report.Gauge, r bench.Row, rivals ...bench.Rival) report.Result {
	t.Helper()
	res, err := report.Measure(t.Context(), r, g.With(report.Options{Rounds: 4, Slice: time.Millisecond}), rivals...)
	require.NoError(t, err)
	return res
}

func TestRatiosAndVerdicts(t *testing.T) {
	slow, fast := cost{time: 3 * time.Microsecond, allocs: 2, bytes: 64}, cost{time: 2 * time.Microsecond, allocs: 1, bytes: 16}
	for name, tt := range map[string]struct {
		measure bench.Measure
		limit   float64
		ratio   float64
		verdict report.Verdict
	}{
		"time, met":          {bench.Time, 1.5, 1.5, report.Met},
		"time, missed":       {bench.Time, 1.4, 1.5, report.Missed},
		"throughput, met":    {bench.Throughput, 0.6, 2.0 / 3, report.Met},
		"throughput, missed": {bench.Throughput, 0.7, 2.0 / 3, report.Missed},
		"bytes, met":         {bench.Bytes, 4, 4, report.Met},
		"bytes, missed":      {bench.Bytes, 3.9, 4, report.Missed},
		"no target":          {bench.Time, 0, 1.5, report.Stated},
	} {
		t.Run(name, func(t *testing.T) {
			g := &report.Gauge{}
			res := measure(t, g, row(g, tt.measure, tt.limit, slow, fast))
			require.InDelta(t, tt.ratio, res.Ratio.Median, 1e-9)
			require.Equal(t, tt.verdict, res.Verdict)
			require.Len(t, res.Ratio.Values, 4)
			require.Equal(t, report.Side{Nanos: 3000, Allocs: 2, Bytes: 64}, res.Work)
			require.Equal(t, report.Side{Nanos: 2000, Allocs: 1, Bytes: 16}, *res.Base)
		})
	}
}

// The second halves of targets count too.
func TestWhatElseATargetSays(t *testing.T) {
	g := &report.Gauge{}
	r := row(g, bench.Time, 4, cost{time: time.Microsecond, allocs: 1}, cost{time: time.Microsecond})
	require.Equal(t, report.Met, measure(t, g, r).Verdict)
	r.NoAllocs = true
	require.Equal(t, report.Missed, measure(t, g, r).Verdict)

	r = row(g, bench.Kept, 100, cost{time: 1, kept: 50, goroutines: 1}, cost{time: 1})
	require.Equal(t, report.Met, measure(t, g, r).Verdict)
	r.NoThread = true
	require.Equal(t, report.Missed, measure(t, g, r).Verdict)
}

func TestKeptIsTheDifference(t *testing.T) {
	g := &report.Gauge{Heap: 1 << 20, Stack: 1 << 10, Goroutines: 3}
	res := measure(t, g, row(g, bench.Kept, 2048, cost{time: 1, kept: 3000}, cost{time: 1, kept: 1000}))
	require.InDelta(t, 2000, res.Ratio.Median, 1e-9)
	require.InDelta(t, 3000, res.Work.Kept, 1e-9)
	require.Zero(t, res.Work.Goroutines)
	require.Equal(t, report.Met, res.Verdict)

	alone := row(g, bench.Kept, 0, cost{time: 1, kept: 3000, goroutines: 2}, cost{})
	alone.Base = nil
	res = measure(t, g, alone)
	require.InDelta(t, 3000, res.Ratio.Median, 1e-9)
	require.InDelta(t, 2, res.Work.Goroutines, 1e-9)
	require.Equal(t, report.Stated, res.Verdict)
}

// The ratio is that of pairs: a machine that gets slower and slower changes nothing, and
// neither does one pair that was disturbed.
func TestDisturbances(t *testing.T) {
	g := &report.Gauge{}
	slices, pace := 0, 1.0
	drifting := func(each time.Duration, disturbed int) bench.Work {
		return func(measure func(func(int) error) error) error {
			return measure(func(n int) error {
				took := float64(each) * pace
				if slices++; slices == disturbed {
					took *= 50
				}
				g.Now += time.Duration(float64(n) * took)
				if slices%2 == 0 {
					pace *= 1.5
				}
				return nil
			})
		}
	}
	r := row(g, bench.Time, 2, cost{}, cost{})
	r.Work, r.Base = drifting(3*time.Microsecond, 13), drifting(2*time.Microsecond, 0)
	res := measure(t, g, r)
	require.InDelta(t, 1.5, res.Ratio.Median, 0.5)
	require.Equal(t, report.Met, res.Verdict)
}

// Sides take turns, and nobody is always the first.
func TestSidesAlternate(t *testing.T) {
	g := &report.Gauge{}
	var order []string
	named := func(name string) bench.Work {
		return func(measure func(func(int) error) error) error {
			return measure(func(n int) error {
				order = append(order, name)
				g.Now += time.Millisecond // a slice, however much is asked for
				return nil
			})
		}
	}
	r := row(g, bench.Time, 1, cost{}, cost{})
	r.Work, r.Base = named("work"), named("base")
	measure(t, g, r)
	require.Equal(t, []string{"work", "base" /* to find out how long they take */, "work", "base", "base", "work", "work", "base", "base", "work"}, order)
}

func TestRivals(t *testing.T) {
	g := &report.Gauge{}
	boom := errors.New("boom")
	us := cost{time: time.Microsecond}
	r := row(g, bench.Time, 1, us, us)
	rivals := []bench.Rival{
		{ID: "slow", Row: r.Key(), Work: taking(g, cost{time: 7 * time.Microsecond, allocs: 3})},
		{ID: "unable", Row: r.Key(), Work: failing(g, boom, 0)},
		{ID: "wrong", Row: r.Key(), Work: failing(g, boom, 5)},
		{ID: "lazy", Row: r.Key(), Work: func(func(func(int) error) error) error { return nil }},
		{ID: "last", Row: r.Key(), Work: taking(g, cost{time: 2 * time.Microsecond})},
	}
	res := measure(t, g, r, rivals...)
	require.InDelta(t, 1, res.Ratio.Median, 1e-9)
	require.Equal(t, report.Met, res.Verdict)
	require.Len(t, res.Rivals, len(rivals))
	require.InDelta(t, 7, res.Rivals[0].Ratio.Median, 1e-9)
	require.InDelta(t, 3, res.Rivals[0].Side.Allocs, 1e-9)
	require.Contains(t, res.Rivals[1].Err, "boom")
	require.Contains(t, res.Rivals[2].Err, "boom")
	require.NotEmpty(t, res.Rivals[3].Err)
	require.InDelta(t, 2, res.Rivals[4].Ratio.Median, 1e-9)
	require.Empty(t, res.Rivals[4].Err)
}

// A side that fails is no number.
func TestFailures(t *testing.T) {
	boom := errors.New("boom")
	for name, at := range map[string]int{"before it starts": 0, "at once": 1, "in a slice": 5} {
		t.Run(name, func(t *testing.T) {
			g := &report.Gauge{}
			for _, m := range []bench.Measure{bench.Time, bench.Kept} {
				if m == bench.Kept && at > 1 {
					continue // its step is called once
				}
				r := row(g, m, 1, cost{time: 1}, cost{time: 1})
				r.Base = failing(g, boom, at)
				_, err := report.Measure(t.Context(), r, g.With(report.Options{Rounds: 4, Slice: time.Millisecond}))
				require.ErrorIs(t, err, boom)
				require.ErrorContains(t, err, "report: T1/n=1: ")
			}
		})
	}
	g := &report.Gauge{}
	r := row(g, bench.Time, 1, cost{time: 1}, cost{time: 1})
	r.Work = func(func(func(int) error) error) error { return nil }
	_, err := report.Measure(t.Context(), r, g.With(report.Options{}))
	require.ErrorContains(t, err, "did not ask")
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	g := &report.Gauge{}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	r := row(g, bench.Time, 1, cost{time: time.Microsecond}, cost{time: time.Microsecond})
	calls := 0
	r.Base = func(measure func(func(int) error) error) error {
		return measure(func(n int) error {
			if calls++; calls == 6 {
				cancel(why)
			}
			g.Now += time.Duration(n) * time.Microsecond
			return nil
		})
	}
	_, err := report.Measure(ctx, r, g.With(report.Options{Slice: time.Millisecond}))
	require.ErrorIs(t, err, why)
	require.Equal(t, 6, calls)
}

func TestProfileRunsOneSide(t *testing.T) {
	g := &report.Gauge{}
	side, err := report.Profile(t.Context(), taking(g, cost{time: 3 * time.Microsecond, allocs: 2, bytes: 9}), g.With(report.Options{}))
	require.NoError(t, err)
	require.Equal(t, report.Side{Nanos: 3000, Allocs: 2, Bytes: 9}, side)
	_, err = report.Profile(t.Context(), failing(g, errors.ErrUnsupported, 3), g.With(report.Options{}))
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
