package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench"
	"github.com/ddd26017/fixpoint/bench/report"
)

// BenchmarkRows measures both sides of every row, for benchstat. The report measures
// ratios better: it alternates between the two.
func BenchmarkRows(b *testing.B) {
	for _, r := range bench.Rows() {
		name := "row=" + r.Key() + "/impl="
		if r.Base != nil {
			b.Run(name+r.Impl, func(b *testing.B) { benchmark(b, r, r.Base) })
		}
		b.Run(name+"fixpoint", func(b *testing.B) { benchmark(b, r, r.Work) })
	}
}

func benchmark(b *testing.B, r bench.Row, work bench.Work) {
	if r.Measure == bench.Kept {
		side, err := report.Keep(work, report.Options{Items: 1000})
		require.NoError(b, err)
		b.ReportMetric(side.Kept, "kept-B/op")
		b.ReportMetric(side.Goroutines, "goroutines/op")
		b.ReportMetric(0, "ns/op") // nothing was timed
		return
	}
	b.ReportAllocs()
	require.NoError(b, work(func(step func(int) error) error {
		b.ResetTimer()
		defer b.StopTimer()
		return step(b.N)
	}))
}
