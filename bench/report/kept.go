package report

import (
	"context"
	"errors"
	"runtime"

	"github.com/ddd26017/fixpoint/bench"
)

// keptRounds is how often memory is measured: it hardly varies.
const keptRounds = 3

// keepAll measures what both sides of a row keep, one after the other.
func keepAll(ctx context.Context, res *Result, o Options) error {
	var above []float64
	for range min(o.Rounds, keptRounds) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		work, err := Keep(res.Row.Work, o)
		if err != nil {
			return err
		}
		res.Work = work
		if res.Row.Base != nil {
			base, err := Keep(res.Row.Base, o)
			if err != nil {
				return err
			}
			res.Base = &base
			work.Kept -= base.Kept
		}
		above = append(above, work.Kept)
	}
	res.Ratio = spread(above)
	return nil
}

// Keep measures the bytes of heap and stacks, and the goroutines, that each of o.Items
// things keeps.
func Keep(work bench.Work, o Options) (Side, error) {
	o = o.withDefaults()
	var side Side
	err := work(func(step func(int) error) error {
		var before, after runtime.MemStats
		routines := o.gauge.goroutines()
		o.held(&before)
		start := o.gauge.clock()
		if err := step(o.Items); err != nil {
			return err
		}
		took := o.gauge.clock() - start
		left := o.quiet(routines) - routines
		o.held(&after)
		n := float64(o.Items)
		side = Side{
			Nanos:      float64(took) / n,
			Allocs:     float64(after.Mallocs-before.Mallocs) / n,
			Bytes:      float64(after.TotalAlloc-before.TotalAlloc) / n,
			Kept:       float64(inUse(&after)-inUse(&before)) / n,
			Goroutines: float64(left) / n,
		}
		return nil
	})
	if err == nil && side == (Side{}) {
		err = errors.New("the work did not ask to be measured")
	}
	return side, err
}

// held reads the memory that is really in use.
func (o Options) held(m *runtime.MemStats) {
	o.gauge.settle()
	o.gauge.settle() // what a pool had is gone with the second
	o.gauge.memory(m)
}

func inUse(m *runtime.MemStats) int64 { return int64(m.HeapAlloc + m.StackInuse) }

// quiet gives goroutines that are about to end the time to, and returns how many are left.
func (o Options) quiet(want int) int {
	for range 100 {
		if o.gauge.goroutines() <= want {
			break
		}
		o.gauge.pause()
	}
	return o.gauge.goroutines()
}
