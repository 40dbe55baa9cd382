package report

import (
	"runtime"
	"time"
)

// Gauge is a clock and a memory that tests turn by hand.
type Gauge struct {
	Now                             time.Duration
	Mallocs, Allocated, Heap, Stack uint64
	Goroutines                      int
}

func (g *Gauge) clock() time.Duration { return g.Now }
func (g *Gauge) settle()              {}
func (g *Gauge) pause()               {}
func (g *Gauge) goroutines() int      { return g.Goroutines }
func (g *Gauge) memory(m *runtime.MemStats) {
	m.Mallocs, m.TotalAlloc, m.HeapAlloc, m.StackInuse = g.Mallocs, g.Allocated, g.Heap, g.Stack
}

// With returns the options with that gauge.
func (g *Gauge) With(o Options) Options {
	o.gauge = g
	return o
}
