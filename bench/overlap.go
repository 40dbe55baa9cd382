package bench

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// overlapRows are P9: what makes trivial hooks cheap must not take the concurrency from
// hooks that block or compute.
func overlapRows() []Row {
	return []Row{
		{
			ID: "P9", Case: "hooks=64/block=1ms", Name: "64 hooks that block for 1 ms",
			Baseline: "one of them", Impl: "one", Limit: 1.2,
			Work: StepStart(Blocking(64, time.Millisecond)), Base: StepStart(Blocking(1, time.Millisecond)),
		},
		{
			ID: "P9", Case: "hooks=8/compute=20us", Name: "8 hooks that compute for 20 us",
			Baseline: "errgroup, the same closures", Impl: "errgroup", Limit: 1.1,
			Work: StepStart(Computing(8)), Base: plain(computeByHand(8)),
		},
	}
}

// Blocking is n hooks at StepStart that do nothing for that long.
func Blocking(n int, d time.Duration) engine.Plugin {
	return hooks("blocking", n, func() { time.Sleep(d) })
}

// Computing is n hooks at StepStart that compute for 20 us.
func Computing(n int) engine.Plugin {
	return hooks("computing", n, func() { compute(loops20us()) })
}

// hooks is n hooks at StepStart that do something and return nothing.
func hooks(name string, n int, do func()) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		for range n {
			r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				do()
				return cmd, nil
			}))
		}
		return nil
	})
}

func computeByHand(n int) func(int) error {
	return each(func() error {
		var g errgroup.Group
		for range n {
			g.Go(func() error {
				compute(loops20us())
				return nil
			})
		}
		return g.Wait()
	})
}

// loops20us is how many loops of compute take 20 us on this machine, found once, so
// that both sides compute the same.
var loops20us = sync.OnceValue(func() int {
	const loops, tries = 100_000, 10
	best := time.Duration(1<<63 - 1)
	for range tries {
		start := time.Now()
		compute(loops)
		best = min(best, time.Since(start))
	}
	return max(1, int(20*time.Microsecond*loops/max(best, 1)))
})

// compute keeps a core busy without touching memory.
func compute(loops int) {
	x := uint64(loops) | 1
	for range loops {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	if x == 0 { // never, but the compiler does not know
		sink.Add(1)
	}
}
