package enginetest

import (
	"strconv"
	"sync/atomic"
	"time"
)

// ClockStep is how far a Clock moves each time it is read.
const ClockStep = time.Millisecond

// Clock is a clock that does not depend on real time: each reading is one
// ClockStep later than the one before. It is safe for concurrent use. With
// hooks that read it in parallel, who gets which reading is up to the scheduler,
// but the number of readings, and so the time after them, is not.
//
// Deadlines and timeouts do not follow it: contexts use real time, or that of a
// testing/synctest bubble.
type Clock struct {
	start time.Time
	ahead atomic.Int64
}

// NewClock returns a clock whose first reading is start.
func NewClock(start time.Time) *Clock { return &Clock{start: start} }

// Now returns the time and moves the clock by ClockStep.
func (c *Clock) Now() time.Time {
	after := c.ahead.Add(int64(ClockStep))
	return c.start.Add(time.Duration(after) - ClockStep)
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// NewIDs returns a function that gives prefix-1, prefix-2 and so on, for
// engine.Config.NewID. It is safe for concurrent use.
func NewIDs(prefix string) func() string {
	var n atomic.Int64
	return func() string { return prefix + "-" + strconv.FormatInt(n.Add(1), 10) }
}
