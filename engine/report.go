package engine

import (
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/phase"
)

// HookStatus is the fate of a hook in one phase.
type HookStatus string

// Fates of a hook.
const (
	HookCommitted HookStatus = "committed" // its command counts
	HookRetried   HookStatus = "retried"   // it lost a conflict; the command of a later call counts
	HookSkipped   HookStatus = "skipped"   // it failed under OnError(Skip); its command was dropped
	HookFailed    HookStatus = "failed"    // it failed
	HookDropped   HookStatus = "dropped"   // it succeeded, but a sibling's failure dropped the tier
)

// ActionStatus is the fate of a scheduled action.
type ActionStatus string

// Fates of an action.
const (
	ActionDone        ActionStatus = "done"
	ActionDead        ActionStatus = "dead_lettered" // its handler failed, or the phase did not converge
	ActionUndelivered ActionStatus = "undelivered"   // its phase did not come again in the run
	ActionReplaced    ActionStatus = "replaced"      // a gate's command counts instead
	ActionCancelled   ActionStatus = "cancelled"     // a gate kept it from running
)

// HookReport tells what became of one hook.
type HookReport struct {
	Plugin   string
	Hook     string // plugin/phase/index
	Tier     int
	Status   HookStatus
	Calls    int // 1, or more when it ran again after a conflict
	Duration time.Duration
	Err      error
}

// ActionReport tells what became of one action.
type ActionReport struct {
	ID       uint64
	Action   string
	Plugin   string // that scheduled it
	Round    int
	Status   ActionStatus
	By       string // the plugin whose gate replaced or cancelled it
	Reason   string // that the gate gave
	Duration time.Duration
	Err      error
}

// Report tells what a phase did. It is complete up to the point of failure when
// the phase failed.
type Report struct {
	Phase    phase.Phase
	Hooks    []HookReport // in tier, then registration order; hooks of skipped tiers are left out
	Actions  []ActionReport
	Effects  []effects.Outcome // of inline effects
	Rounds   int               // passes that ran at least one action
	Retries  int               // hook and action calls repeated after a conflict
	Commits  int
	Revision uint64 // of the state after the phase
	Stopped  bool   // a command stopped the later tiers
	Duration time.Duration
}
