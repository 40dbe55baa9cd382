package fanout

import (
	"sync/atomic"
	"time"
)

// Pace is what is known of calls that are made again and again: whether they return at
// once. It is safe for concurrent use.
type Pace struct{ quick atomic.Int32 } // times in a row, up to quickProven

// Calls that took quickMost together, quickProven times in a row, are expected to do so
// again. What could be won by making them at the same time is less than that costs.
const (
	quickProven = 16
	quickMost   = 25 * time.Microsecond
)

// Quick reports whether the next calls may be expected to return at once; see Way.
func (p *Pace) Quick() bool { return p.quick.Load() >= quickProven }

// Learn is told how long the calls took together.
func (p *Pace) Learn(took time.Duration) {
	switch n := p.quick.Load(); {
	case took > quickMost && n > 0:
		p.quick.Store(0)
	case took <= quickMost && n < quickProven:
		p.quick.Store(n + 1)
	}
}
