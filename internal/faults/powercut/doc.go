// Package powercut cuts the power of a store in the middle of its work and looks for
// what was acknowledged. Device does it to a process whose file is on a loop device;
// Order, which needs no rights, puts together what a disk may hold when only some of
// the writes between two syncs have reached it.
//
// Both have a control without syncs, which must lose something, or they would prove
// nothing. Neither shows what a disk does that acknowledges a sync without doing it.
package powercut

import "fmt"

// String returns the figures as the command prints them.
func (f Figures) String() string {
	return fmt.Sprintf("cuts=%d acked=%d lost=%d seed=%d", f.Done, f.Acked, f.Lost, f.Seed)
}

// Err says which bound was not met, or nil: with syncs nothing may be lost, without
// them more than a hundredth has to be.
func (f Figures) Err() error {
	switch {
	case f.Done < f.Cuts || f.Acked == 0:
		return fmt.Errorf("powercut: only %d of %d cuts, %d commits acknowledged", f.Done, f.Cuts, f.Acked)
	case !f.NoSync && f.Lost > 0:
		return fmt.Errorf("powercut: %d of %d acknowledged commits are lost", f.Lost, f.Acked)
	case f.NoSync && f.Lost*100 <= f.Acked:
		return fmt.Errorf("powercut: without syncs only %d of %d commits are lost, so the check sees nothing", f.Lost, f.Acked)
	}
	return nil
}
