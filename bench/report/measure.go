package report

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/bench"
)

// Options say how long to measure. The zero value means the defaults.
type Options struct {
	Rounds int           // pairs of slices for each row: 10
	Slice  time.Duration // how long a slice takes, about: 50 ms
	Items  int           // how many things are kept for rows of bench.Kept: 10,000

	gauge gauge
}

func (o Options) withDefaults() Options {
	if o.Rounds <= 0 {
		o.Rounds = 10
	}
	if o.Slice <= 0 {
		o.Slice = 50 * time.Millisecond
	}
	if o.Items <= 0 {
		o.Items = 10_000
	}
	if o.gauge == nil {
		o.gauge = machine{start: time.Now()}
	}
	return o
}

// gauge reads the clock and the memory.
type gauge interface {
	clock() time.Duration
	memory(m *runtime.MemStats)
	settle() // collects what is garbage
	goroutines() int
	pause() // lets other goroutines run
}

// machine is the gauge of the process that runs.
type machine struct{ start time.Time }

func (m machine) clock() time.Duration     { return time.Since(m.start) }
func (machine) memory(s *runtime.MemStats) { runtime.ReadMemStats(s) }
func (machine) settle()                    { runtime.GC() }
func (machine) goroutines() int            { return runtime.NumGoroutine() }
func (machine) pause()                     { time.Sleep(time.Millisecond) }

// Measure measures a row and the rivals that are given with it. The error is that of
// the row's work or baseline; a rival that fails has it in its Rivalry and is left out.
func Measure(ctx context.Context, row bench.Row, o Options, rivals ...bench.Rival) (Result, error) {
	o = o.withDefaults()
	res := Result{Row: row}
	var err error
	if row.Measure == bench.Kept {
		err = keepAll(ctx, &res, o)
	} else {
		err = race(ctx, &res, o, rivals)
	}
	if err != nil {
		return res, fmt.Errorf("report: %s: %w", row.Key(), err)
	}
	res.Verdict = judge(res)
	return res, nil
}

// Profile runs one side of a row alone, for as many slices as a report would, and
// returns what it took. It is what to call under a profiler.
func Profile(ctx context.Context, work bench.Work, o Options) (Side, error) {
	o = o.withDefaults()
	r := &racer{work: work}
	err := enter([]*racer{r}, func() error { return run(ctx, []*racer{r}, o) })
	return r.side(), errors.Join(err, r.err)
}

// racer is one side while it is measured.
type racer struct {
	work  bench.Work
	spare bool // it may fail
	step  func(n int) error
	n     int // that takes a slice
	err   error

	nanos         []float64 // per time that the work is done, by round
	bytes         []float64
	done          int
	mallocs, heap uint64
}

func (r *racer) side() Side {
	s := Side{Nanos: spread(r.nanos).Median}
	if r.done > 0 {
		s.Allocs, s.Bytes = float64(r.mallocs)/float64(r.done), float64(r.heap)/float64(r.done)
	}
	return s
}

// race measures the sides of a row in slices that alternate.
func race(ctx context.Context, res *Result, o Options, rivals []bench.Rival) error {
	work := &racer{work: res.Row.Work}
	racers := []*racer{work}
	var base *racer
	if res.Row.Base != nil {
		base = &racer{work: res.Row.Base}
		racers = append(racers, base)
	}
	for _, rival := range rivals {
		racers = append(racers, &racer{work: rival.Work, spare: true})
	}
	if err := enter(racers, func() error { return run(ctx, racers, o) }); err != nil {
		return err
	}
	res.Work = work.side()
	if base == nil {
		return nil
	}
	side := base.side()
	res.Base, res.Ratio = &side, pairs(res.Row.Measure, work, base)
	for i, r := range racers[2:] {
		out := Rivalry{Rival: rivals[i], Side: r.side(), Ratio: pairs(res.Row.Measure, r, base)}
		if r.err != nil {
			out = Rivalry{Rival: rivals[i], Err: r.err.Error()}
		}
		res.Rivals = append(res.Rivals, out)
	}
	return nil
}

// pairs returns the ratios of each round's two slices.
func pairs(m bench.Measure, a, b *racer) Spread {
	of := func(r *racer) []float64 {
		if m == bench.Bytes {
			return r.bytes
		}
		return r.nanos
	}
	var ratios []float64
	for i := range min(len(of(a)), len(of(b))) {
		ratio := of(a)[i] / of(b)[i]
		if m == bench.Throughput {
			ratio = 1 / ratio
		}
		ratios = append(ratios, ratio)
	}
	return spread(ratios)
}

// enter prepares all works, one inside the other, and calls fn in the innermost.
func enter(racers []*racer, fn func() error) error {
	if len(racers) == 0 {
		return fn()
	}
	r, others := racers[0], racers[1:]
	inside := false
	var failed error
	err := r.work(func(step func(int) error) error {
		inside, r.step = true, step
		failed = enter(others, fn)
		r.step = nil
		return failed
	})
	switch {
	case r.spare && !inside:
		r.err = errors.Join(err, errors.New("it did not start"))
		return enter(others, fn)
	case r.spare && failed == nil:
		r.err = errors.Join(r.err, err)
		return nil
	case err == nil && !inside:
		return errors.New("the work did not ask to be measured")
	case failed != nil:
		return failed
	}
	return err
}

// run finds out how much each does in a slice and then measures round by round.
func run(ctx context.Context, racers []*racer, o Options) error {
	for _, r := range racers {
		if err := r.attempt(func() error { return r.calibrate(ctx, o) }); err != nil {
			return err
		}
	}
	for round := range o.Rounds {
		order := slices.Clone(racers)
		if round%2 == 1 {
			slices.Reverse(order) // who comes first is not always the same one
		}
		for _, r := range order {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := r.attempt(func() error { return r.slice(o) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// attempt does nothing for one that has failed.
func (r *racer) attempt(fn func() error) error {
	if r.step == nil || r.err != nil {
		return nil
	}
	err := fn()
	if r.spare {
		r.err = err
		return nil
	}
	return err
}

// calibrate finds the n that takes about a slice.
func (r *racer) calibrate(ctx context.Context, o Options) error {
	for r.n = 1; ; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		start := o.gauge.clock()
		if err := r.step(r.n); err != nil {
			return err
		}
		took := o.gauge.clock() - start
		fits := float64(r.n) * float64(o.Slice) / float64(max(took, 1))
		if took >= o.Slice/2 {
			r.n = max(1, int(fits))
			return nil
		}
		r.n = max(r.n+1, int(min(fits, 10*float64(r.n))))
	}
}

// slice does the work for about one slice.
func (r *racer) slice(o Options) error {
	var before, after runtime.MemStats
	o.gauge.settle() // nobody pays for the garbage of others
	o.gauge.memory(&before)
	start := o.gauge.clock()
	err := r.step(r.n)
	took := o.gauge.clock() - start
	o.gauge.memory(&after)
	if err != nil {
		return err
	}
	heap := after.TotalAlloc - before.TotalAlloc
	r.nanos = append(r.nanos, float64(took)/float64(r.n))
	r.bytes = append(r.bytes, float64(heap)/float64(r.n))
	r.mallocs += after.Mallocs - before.Mallocs
	r.heap += heap
	r.done += r.n
	return nil
}
