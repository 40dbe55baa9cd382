package report

import (
	"slices"

	"github.com/ddd26017/fixpoint/bench"
)

// Verdict says what came of a row's target.
type Verdict string

// The verdicts.
const (
	Met    Verdict = "met"
	Missed Verdict = "missed"
	Stated Verdict = "stated" // there is no target: the number is stated only
)

// Result is what was measured of one row.
type Result struct {
	Row     bench.Row `json:"-"`
	Work    Side      `json:"work"`
	Base    *Side     `json:"base,omitempty"` // nil when the row has no baseline
	Ratio   Spread    `json:"ratio"`          // of the pairs; for bench.Kept the bytes above the baseline
	Verdict Verdict   `json:"verdict,omitempty"`
	Rivals  []Rivalry `json:"rivals,omitempty"`
}

// Rivalry is what was measured of a rival beside a row.
type Rivalry struct {
	Rival bench.Rival `json:"-"`
	Side  Side        `json:"side"`
	Ratio Spread      `json:"ratio"` // to the row's baseline
	Err   string      `json:"error,omitempty"`
}

// Side is one way of doing the work of a row, per time that it is done: the medians
// over the slices of the time, and the means of all else.
type Side struct {
	Nanos      float64 `json:"ns_per_op"`
	Allocs     float64 `json:"allocs_per_op"`
	Bytes      float64 `json:"bytes_per_op"`
	Kept       float64 `json:"kept_bytes,omitempty"` // only for bench.Kept, like Goroutines
	Goroutines float64 `json:"goroutines,omitempty"`
}

// Spread is what the pairs of slices gave: the median, the quartiles and all values in
// the order measured.
type Spread struct {
	Median float64   `json:"median"`
	Low    float64   `json:"low"`  // the first quartile
	High   float64   `json:"high"` // the third quartile
	Values []float64 `json:"values,omitempty"`
}

func spread(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	return Spread{Median: quantile(sorted, 0.5), Low: quantile(sorted, 0.25), High: quantile(sorted, 0.75), Values: values}
}

// quantile interpolates between the neighbours of a place in sorted values; 0 for none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	place := q * float64(len(sorted)-1)
	i := int(place)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (place-float64(i))*(sorted[i+1]-sorted[i])
}

// fewAllocs is what the runtime itself may allocate meanwhile.
const fewAllocs = 0.01

// judge compares what was measured with the row's target.
func judge(r Result) Verdict {
	row := r.Row
	met := r.Ratio.Median <= row.Limit
	if row.Measure == bench.Throughput {
		met = r.Ratio.Median >= row.Limit
	}
	switch {
	case row.Limit == 0:
		return Stated
	case !met, row.NoAllocs && r.Work.Allocs > fewAllocs, row.NoThread && r.Work.Goroutines > 0:
		return Missed
	default:
		return Met
	}
}

// ofTarget is how much of the target was used: 1 is just met, more is missed.
func ofTarget(row bench.Row, ratio float64) float64 {
	if row.Measure == bench.Throughput {
		return row.Limit / ratio
	}
	return ratio / row.Limit
}
