package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Transcript is the thread's history. A request is made from it with every tool
// result moved directly behind the message that asked for it, so a hook may
// append a message at any time.
var Transcript = state.NewLog("fixpoint.transcript", state.Options[inference.Message]{
	Scope: state.ScopeThread,
	Clone: inference.Message.Clone,
})

// Usage is what the run's model calls have used so far.
var Usage = state.NewKey("fixpoint.usage", state.KeyConfig[inference.Usage, inference.Usage]{
	Merge: state.Commutative,
	Apply: inference.Usage.Add,
})

// CallStatus is the state of a tool call.
type CallStatus string

// A call starts as New and ends as Succeeded, Failed or Cancelled. It is
// Suspended while its ticket is open and Resuming after the answer came.
const (
	CallNew       CallStatus = "new"
	CallRunning   CallStatus = "running"
	CallSuspended CallStatus = "suspended"
	CallResuming  CallStatus = "resuming"
	CallSucceeded CallStatus = "succeeded"
	CallFailed    CallStatus = "failed"
	CallCancelled CallStatus = "cancelled"
)

// Ended reports whether the call has its final status.
func (s CallStatus) Ended() bool { return s == CallSucceeded || s == CallFailed || s == CallCancelled }

// CallState is where a tool call of the current step stands.
type CallState struct {
	Index   int                  `json:"index"` // position in the model's message
	Call    inference.ToolCall   `json:"call"`  // with edited arguments, once edited
	Status  CallStatus           `json:"status"`
	Ticket  gate.Ticket          `json:"ticket,omitzero"`  // the open or last question
	Tickets int                  `json:"tickets,omitzero"` // how many were asked about this call
	Answers []TicketAnswer       `json:"answers,omitempty"`
	Started bool                 `json:"started,omitzero"` // BeforeToolExecute has run
	Asked   bool                 `json:"asked,omitzero"`   // the tool itself began and asked
	Ended   bool                 `json:"ended,omitzero"`   // there is a Result; the tool must not run again
	After   bool                 `json:"after,omitzero"`   // AfterToolExecute has run
	Result  inference.ToolResult `json:"result,omitzero"`  // once Ended; final once Settled
	Settled bool                 `json:"settled,omitzero"` // the result is in the transcript
}

// TicketAnswer is a question about a call and how it was answered. Secret values
// are left out.
type TicketAnswer struct {
	Ticket gate.Ticket  `json:"ticket"`
	Answer phase.Answer `json:"answer"`
	lost   bool         // its secret value is; never set in state
	by     string       // who answered; never set in state
}

func (c CallState) clone() CallState {
	c.Answers = slices.Clone(c.Answers)
	return c
}

// ToolCalls holds the calls of the current step by call id. It is the engine's to
// write, except that SuspendCall is there for everyone.
var ToolCalls = state.NewTable[string]("fixpoint.tool_calls", state.Options[CallState]{
	Scope: state.ScopeThread,
	Check: checkCall,
	Clone: CallState.clone,
})

// decisions remembers which ticket a decision id was about, so that a repeated
// decision changes nothing.
var decisions = state.NewTable[string]("fixpoint.decisions", state.Options[string]{Scope: state.ScopeThread})

// nextAgent is the agent that takes over at the end of the step; "" for none.
var nextAgent = state.NewCell[string]("fixpoint.next_agent", state.Options[string]{})

// activeAgent is the agent whose run this is, which a handoff changes.
var activeAgent = state.NewCell[string]("fixpoint.agent", state.Options[string]{Scope: state.ScopeThread})

// progress is what the stop conditions count.
type progress struct {
	Errors int      `json:"errors"`           // failed model calls and tool results in a row
	Window []string `json:"window,omitempty"` // fingerprints of the last steps' tool calls
}

var runProgress = state.NewCell("fixpoint.progress", state.Options[progress]{
	Clone: func(p progress) progress { p.Window = slices.Clone(p.Window); return p },
})

// Pending is a queued action.
type Pending struct {
	ID     uint64       `json:"id"` // unique in the thread
	Plugin string       `json:"plugin"`
	Action phase.Action `json:"action"`
}

// queue holds what is scheduled, by phase and then id, so that a phase's actions
// are one range in the order in which they were scheduled.
var queue = state.NewTable[uint64]("fixpoint.queue", state.Options[Pending]{
	Scope:  state.ScopeThread,
	Shared: true, // an Action is immutable by construction
})

const phaseShift = 56

func queueKey(p phase.Phase, id uint64) uint64 { return uint64(p)<<phaseShift | id }

// lastID is the highest action id given out, so that a restored thread goes on
// from there.
var lastID = state.NewKey("fixpoint.last_id", state.KeyConfig[uint64, uint64]{
	Scope: state.ScopeThread,
	Merge: state.Commutative,
	Apply: func(v, u uint64) uint64 { return max(v, u) },
})

// emitted counts effects. A command that emits adds to it, so that a commit
// stands behind every effect and gives it its revision.
var emitted = state.NewCounter("fixpoint.effects", state.Options[int64]{Scope: state.ScopeThread})

// DeadLetter is an action that will not run unless it is requeued.
type DeadLetter struct {
	Pending
	Status ActionStatus `json:"status"` // ActionDead or ActionUndelivered
	Reason string       `json:"reason"`
	Run    string       `json:"run"`
	Time   time.Time    `json:"time"`
}

var deadLetters = state.NewTable[uint64]("fixpoint.dead_letters", state.Options[DeadLetter]{
	Scope:  state.ScopeThread,
	Shared: true, // an Action is immutable by construction
})

// engineKeys are registered in every engine, before those of plugins. Keys that stand
// near each other cost less to write together, as those of actions are with plugins' own.
func engineKeys() []state.AnyKey {
	return append(phase.Keys(), Transcript, Usage, ToolCalls, decisions, lineage, nextAgent, activeAgent, runProgress, background,
		deadLetters, overrides, runOverride, contexts, hiddenTools, onlyTools, queue, lastID, emitted)
}

var callMoves = map[CallStatus][]CallStatus{
	"":            {CallNew},
	CallNew:       {CallRunning, CallSuspended, CallSucceeded, CallFailed, CallCancelled},
	CallRunning:   {CallSuspended, CallSucceeded, CallFailed, CallCancelled},
	CallSuspended: {CallResuming, CallFailed, CallCancelled},
	CallResuming:  {CallRunning, CallSuspended, CallSucceeded, CallFailed, CallCancelled},
}

func checkCall(old, next CallState) error {
	if old.Status == next.Status || next.Status == CallNew || slices.Contains(callMoves[old.Status], next.Status) {
		return nil
	}
	return errors.New("engine: a tool call cannot go from " + string(old.Status) + " to " + string(next.Status))
}
