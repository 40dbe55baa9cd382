package phase

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/state"
)

// RunStatus is the state of a run.
type RunStatus string

// A run goes Created, Running, Done; from Running it may wait for an answer and
// go on.
const (
	Created RunStatus = "created"
	Running RunStatus = "running"
	Waiting RunStatus = "waiting"
	Done    RunStatus = "done"
)

// Reason says why a run ended. Plugins may end a run with reasons of their own.
type Reason string

// Reasons given by the engine.
const (
	ReasonNatural           Reason = "natural"            // the model asked for no more tools
	ReasonMaxRounds         Reason = "max_rounds"         // step limit of the spec
	ReasonTimeout           Reason = "timeout"            // time limit of the spec
	ReasonTokenBudget       Reason = "token_budget"       // token limit of the spec
	ReasonConsecutiveErrors Reason = "consecutive_errors" // too many failed steps in a row
	ReasonStopOnTool        Reason = "stop_on_tool"       // a tool named by the spec was called
	ReasonContentMatch      Reason = "content_match"      // the model's text matched
	ReasonLoop              Reason = "loop_detected"      // the same tool calls again and again
	ReasonBlocked           Reason = "blocked"            // a gate ended the run
	ReasonCancelled         Reason = "cancelled"          // the caller's context ended
	ReasonError             Reason = "error"              // a fault; Context.Err and Result.Err have it
	ReasonWaiting           Reason = "waiting"            // not ended: an answer is needed
)

// Lifecycle is a run's position and end, kept in state.
type Lifecycle struct {
	Run      string    `json:"run"`
	Status   RunStatus `json:"status"`
	Step     int       `json:"step"`
	Answered int       `json:"answered,omitzero"` // last step whose model answer is in the transcript
	Ended    bool      `json:"ended"`             // an end was asked for; the run stops at the next boundary
	Reason   Reason    `json:"reason,omitzero"`   // set with Ended
	Detail   string    `json:"detail,omitzero"`
	Continue string    `json:"continue,omitzero"`  // pending wish to go on after the natural end
	Resumed  int       `json:"continued,omitzero"` // how often such a wish was granted in this run
}

// LifecycleUpdate is a change of the lifecycle; its fields that are set apply.
type LifecycleUpdate struct {
	Run      string // a new run begins: all else starts anew
	Fork     string // the run goes on under another id
	Status   RunStatus
	Step     int
	Answered int
	End      Reason
	Detail   string
	Continue string
	Granted  bool // the pending wish to continue was granted
}

// RunLifecycle is the run's lifecycle. Any command may end the run with it (see
// Command.EndRun); of several ends the first in commit order counts. Status and
// step are the engine's to write.
var RunLifecycle = state.NewKey("fixpoint.lifecycle", state.KeyConfig[Lifecycle, LifecycleUpdate]{
	Merge:   state.Commutative,
	Ordered: true,
	Initial: func() Lifecycle { return Lifecycle{Status: Created} },
	Apply: func(l Lifecycle, u LifecycleUpdate) Lifecycle {
		if u.Run != "" {
			l = Lifecycle{Run: u.Run, Status: l.Status}
		}
		l.Run = cmp.Or(u.Fork, l.Run)
		l.Status = cmp.Or(u.Status, l.Status)
		if u.Step != 0 {
			l.Step, l.Continue = u.Step, "" // a wish to continue is about one step
		}
		l.Answered = cmp.Or(u.Answered, l.Answered)
		if u.End != "" && !l.Ended {
			l.Ended, l.Reason, l.Detail = true, u.End, u.Detail
		}
		l.Continue = cmp.Or(u.Continue, l.Continue)
		if u.Granted {
			l.Continue = ""
			l.Resumed++
		}
		return l
	},
	Check: func(old, next Lifecycle) error {
		if old.Status == next.Status || slices.Contains(statusMoves[old.Status], next.Status) {
			return nil
		}
		return fmt.Errorf("phase: a run cannot go from %s to %s", old.Status, next.Status)
	},
})

var statusMoves = map[RunStatus][]RunStatus{
	Created: {Running},
	Running: {Waiting, Done},
	Waiting: {Running, Done},
}

// EndRun asks for the end of the run at the next boundary. Tool calls that have
// not started get a result that says so. The first reason committed wins.
func (c *Command) EndRun(reason Reason, detail string) *Command {
	return c.Update(RunLifecycle.With(LifecycleUpdate{End: reason, Detail: detail}))
}

// Continue asks for another step should this one be the natural last. The engine
// grants it a limited number of times per run (Limits.Continues). It has no
// effect at RunEnd.
func (c *Command) Continue(reason string) *Command {
	return c.Update(RunLifecycle.With(LifecycleUpdate{Continue: cmp.Or(reason, "continue")}))
}

// Keys returns the state keys that this package's commands write. An engine
// registers them before any plugin's.
func Keys() []state.AnyKey {
	return []state.AnyKey{RunLifecycle, resultContent, resultDetails, resultIsError}
}
