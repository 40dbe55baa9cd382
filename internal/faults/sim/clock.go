package sim

import (
	"context"
	"time"
)

// grid is how many time slots of one nanosecond there are. It divides 100 ms, so that
// whoever begins a wait in his own slot also ends it there, as long as the limits of
// engines are multiples of that.
const grid = 256

// inSlot returns how long to wait, at least d, to come out in a slot. A wait of whole
// 4 ms, which the grid divides, is made longer: so waits are always rounded, and never
// end at the very moment at which a limit of an engine does that began with them.
func inSlot(now time.Time, d time.Duration, slot int) time.Duration {
	if d > 0 && d%(4*time.Millisecond) == 0 {
		d += time.Millisecond
	}
	at := now.UnixNano() + int64(d)
	d += time.Duration((int64(slot) - at%grid + grid) % grid)
	if d == 0 {
		d = grid
	}
	return d
}

// controllerSlot is that of what happens to processes.
const controllerSlot = 0

// Each client's processes have slots of their own, one for each thing that goes on in
// an engine at the same time.
const (
	runSlot     = iota // runs, and all that its caller does
	renewalSlot        // of leases
	courierSlot        // DeliverOutbox beside runs
	shadowSlot         // effects in the background
	slots
)

// slotKey is the key of the slot in the context of what does not have the run's.
type slotKey struct{}

// slotOf returns the slot that goes with ctx.
func slotOf(ctx context.Context) int {
	slot, _ := ctx.Value(slotKey{}).(int)
	return slot
}

// rest waits, and returns false when ctx or the process ended first.
func rest(ctx context.Context, over <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-over:
		return false
	case <-ctx.Done():
		return false
	}
}
