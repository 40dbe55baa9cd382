package engine

import (
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Event tells what happened in a run, after the commit that it describes. The
// set of events is closed: the types of this file. Events observe; nothing that
// is done to one reaches the run or another observer.
type Event interface {
	// Head returns what all events have.
	Head() Header
	// Type returns the event's name in traces, such as "hook_finished".
	Type() string
	event() // seals the set
}

// Header is common to all events.
type Header struct {
	Seq      uint64      `json:"seq"` // 1 for a run's first event and that of each resumption, without gaps
	Time     time.Time   `json:"time"`
	Run      string      `json:"run"`
	Parent   string      `json:"parent,omitzero"` // run that delegated to this one
	Thread   string      `json:"thread"`
	Agent    string      `json:"agent"`
	Step     int         `json:"step"`
	Phase    phase.Phase `json:"phase,omitzero"` // zero between phases
	Revision uint64      `json:"revision"`       // of the thread's state when the event was emitted
}

// Head returns h.
func (h Header) Head() Header { return h }

func (Header) event() {}

// Base is the state that a run found. What is encoded of it is left to who writes the
// event down: encoding takes time, and knows what is not to be told.
type Base struct {
	State *state.Snapshot `json:"-"`              // nil in an event that was read
	Found *state.Dump     `json:"base,omitempty"` // nil in an event that is emitted
}

// RunStarted is a run's first event.
type RunStarted struct {
	Header
	Base
	Mode    string `json:"mode,omitzero"`
	Adapter string `json:"adapter,omitzero"`
	Input   string `json:"input"` // text of the last input message
}

// RunFinished is the last event of a run that ended.
type RunFinished struct {
	Header
	Status   phase.RunStatus `json:"status"`
	Reason   phase.Reason    `json:"reason"`
	Detail   string          `json:"detail,omitzero"`
	Error    string          `json:"error,omitzero"`
	Steps    int             `json:"steps"`
	Usage    inference.Usage `json:"usage"`
	Duration time.Duration   `json:"duration_ns"`
}

// RunSuspended is the last event of a run that waits for answers.
type RunSuspended struct {
	Header
	Tickets []gate.Ticket `json:"tickets"`
}

// RunResumed is emitted when a run that waited goes on.
type RunResumed struct {
	Header
	Base
}

// StepStarted is emitted before a step's first phase.
type StepStarted struct{ Header }

// StepFinished is emitted after a step's last phase.
type StepFinished struct {
	Header
	Duration time.Duration `json:"duration_ns"`
}

// PhaseStarted is emitted before the hooks of a phase run.
type PhaseStarted struct {
	Header
	Hooks int    `json:"hooks"`
	Call  string `json:"call,omitzero"` // tool call id, in tool phases
}

// PhaseFinished is emitted after a phase's hooks, rounds and inline effects.
type PhaseFinished struct {
	Header
	Call     string        `json:"call,omitzero"`
	Rounds   int           `json:"rounds"`
	Retries  int           `json:"retries"`
	Error    string        `json:"error,omitzero"`
	Duration time.Duration `json:"duration_ns"`
}

// HookFinished tells the fate of one hook in a phase.
type HookFinished struct {
	Header
	Plugin   string        `json:"plugin"`
	Hook     string        `json:"hook"`
	Tier     int           `json:"tier"`
	Status   HookStatus    `json:"status"`
	Calls    int           `json:"calls"` // 1, or more when it was run again after a conflict
	Error    string        `json:"error,omitzero"`
	Slow     bool          `json:"slow,omitzero"`  // took longer than Limits.SlowHook
	Began    time.Time     `json:"began,omitzero"` // the first call; zero if the run ended while it ran
	Duration time.Duration `json:"duration_ns"`    // of all its calls
	Retries  []Retry       `json:"retries,omitempty"`
}

// Retry is a call of a hook after the first: it had lost a conflict.
type Retry struct {
	Began    time.Time     `json:"began"`
	Duration time.Duration `json:"duration_ns"`
}

// Conflict tells that two writers fought over a key and who went first.
type Conflict struct {
	Header
	Key    string  `json:"key"`
	Entry  string  `json:"entry,omitzero"` // of a table or set
	Winner string  `json:"winner"`
	Loser  string  `json:"loser"`
	Hook   string  `json:"hook,omitzero"`  // of the loser, or its action
	Round  int     `json:"round,omitzero"` // as of Committed
	Fate   string  `json:"fate"`           // what became of the loser: "retried" or "refused"
	Lost   []Write `json:"lost,omitempty"` // all that the loser wanted to write
}

// Write is one update of a commit. Its argument is encoded by who writes it down, like
// Base.
type Write struct {
	Plugin string         `json:"plugin"`        // or "engine", or "call" and the id of a tool call
	Hook   string         `json:"hook,omitzero"` // or the name of the action that was handled
	Key    string         `json:"key"`
	Entry  string         `json:"entry,omitzero"`
	Op     string         `json:"op"`
	Value  inference.JSON `json:"value,omitzero"` // empty in an event that is emitted
	Update state.Update   `json:"-"`              // zero in an event that was read
}

// Committed tells that state changed: the header's revision is the new one. What
// changed is the difference of two snapshots, state.DeltaOf, and encoded by who writes
// it down, like Base.
type Committed struct {
	Header
	Call    string             `json:"call,omitzero"`  // tool call id, in tool phases
	Round   int                `json:"round"`          // 0 for hooks, else the action round
	Retry   bool               `json:"retry,omitzero"` // of a call after a conflict
	Writes  []Write            `json:"writes"`
	Before  *state.Snapshot    `json:"-"`                 // nil in an event that was read
	After   *state.Snapshot    `json:"-"`                 // likewise
	Changes []state.DeltaEntry `json:"changes,omitempty"` // nil in an event that is emitted
}

// RoundFinished is emitted after a pass of the action loop.
type RoundFinished struct {
	Header
	Round   int `json:"round"`
	Actions int `json:"actions"`
}

// ActionFinished tells the fate of one scheduled action.
type ActionFinished struct {
	Header
	ID       uint64        `json:"id"`
	Action   string        `json:"action"`
	Plugin   string        `json:"plugin"` // that scheduled it
	Round    int           `json:"round,omitzero"`
	Status   ActionStatus  `json:"status"`
	By       string        `json:"by,omitempty"`     // the plugin whose gate replaced or cancelled it
	Reason   string        `json:"reason,omitempty"` // that the gate gave
	Error    string        `json:"error,omitzero"`
	Began    time.Time     `json:"began,omitzero"` // zero if it was not called, or the run ended while it ran
	Duration time.Duration `json:"duration_ns"`
	Retries  []Retry       `json:"retries,omitempty"`
}

// EffectFinished tells the fate of one effect.
type EffectFinished struct {
	Header
	ID       effects.ID    `json:"id,omitzero"`
	Effect   string        `json:"effect"`
	Plugin   string        `json:"plugin"`  // that emitted it
	Handler  string        `json:"handler"` // plugin that handled it
	Error    string        `json:"error,omitzero"`
	Began    time.Time     `json:"began,omitzero"` // zero if its handler was not called
	Duration time.Duration `json:"duration_ns"`
}

// GateVoted is what one gate said about a call.
type GateVoted struct {
	Header
	Call     string        `json:"call"`
	Tool     string        `json:"tool"`
	Plugin   string        `json:"plugin"`
	Gate     string        `json:"gate"`
	Decision gate.Kind     `json:"decision"`
	Reason   string        `json:"reason,omitzero"`
	Edits    bool          `json:"edits,omitzero"`
	Error    string        `json:"error,omitzero"`
	Began    time.Time     `json:"began,omitzero"` // zero if the run ended while it was asked
	Duration time.Duration `json:"duration_ns"`
}

// GateResolved is the outcome of all gates about a call.
type GateResolved struct {
	Header
	Call     string     `json:"call"`
	Tool     string     `json:"tool"`
	Pass     int        `json:"pass"` // 1, or more after edits and answers
	Decision gate.Kind  `json:"decision"`
	Plugin   string     `json:"plugin,omitzero"` // whose decision won
	Cause    gate.Cause `json:"cause"`
	Reason   string     `json:"reason,omitzero"`
}

// GateClashed tells that two gates disagreed and registration order decided.
type GateClashed struct {
	Header
	Call  string     `json:"call"`
	Clash gate.Clash `json:"clash"`
}

// CallEdited tells that a call's arguments were changed, and by whom.
type CallEdited struct {
	Header
	Call   string         `json:"call"`
	Plugin string         `json:"plugin"`
	Before inference.JSON `json:"before"`
	After  inference.JSON `json:"after"`
}

// TicketOpened tells that a call waits for an answer.
type TicketOpened struct {
	Header
	Ticket gate.Ticket `json:"ticket"`
}

// TicketAnswered tells how a ticket was answered. The answer's value is left out:
// it may be a secret.
type TicketAnswered struct {
	Header
	Ticket   string `json:"ticket"`
	Call     string `json:"call"`
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitzero"`
	By       string `json:"by"` // "resolver", "default" or, for one given to Resume, "decision"
}

// ToolStarted is emitted before a tool's body runs.
type ToolStarted struct {
	Header
	Call inference.ToolCall `json:"call"`
}

// ToolFinished tells a call's result, as the model will see it. Every call has
// exactly one.
type ToolFinished struct {
	Header
	Call     inference.ToolCall   `json:"call"`
	Result   inference.ToolResult `json:"result"`
	Duration time.Duration        `json:"duration_ns"` // of the body; 0 when it did not run
}

// InferenceStarted is emitted before the model is asked.
type InferenceStarted struct {
	Header
	Model    string `json:"model"`
	Messages int    `json:"messages"`
	Tools    int    `json:"tools"`
}

// InferenceChunk is a piece of a streamed answer.
type InferenceChunk struct {
	Header
	Text string `json:"text"`
}

// InferenceFinished tells what the model answered.
type InferenceFinished struct {
	Header
	Text      string               `json:"text,omitzero"`
	ToolCalls []inference.ToolCall `json:"tool_calls,omitempty"`
	Stop      inference.StopReason `json:"stop,omitzero"`
	Usage     inference.Usage      `json:"usage"`
	Error     string               `json:"error,omitzero"`
	Duration  time.Duration        `json:"duration_ns"`
}

// FieldOrigin says which plugin set a field of the request.
type FieldOrigin struct {
	Field  string         `json:"field"`
	Plugin string         `json:"plugin"`
	Value  inference.JSON `json:"value"`
}

// OverrideApplied lists the request fields that overrides set, by field name.
type OverrideApplied struct {
	Header
	Fields []FieldOrigin `json:"fields"`
}

// RequestTransformed tells that a transform changed the request.
type RequestTransformed struct {
	Header
	Plugin   string `json:"plugin"`
	System   bool   `json:"system,omitzero"`   // the system prompt changed
	Messages bool   `json:"messages,omitzero"` // the messages changed
	Tools    bool   `json:"tools,omitzero"`    // the tool list changed
	Params   bool   `json:"params,omitzero"`   // the model or a parameter changed
}

// Continued tells that a run goes on after its natural end.
type Continued struct {
	Header
	Reason string `json:"reason"`
	Count  int    `json:"count"` // how often in this run, this time included
}

// HandedOff tells that another agent took the run over.
type HandedOff struct {
	Header
	From string `json:"from"`
	To   string `json:"to"`
}

// Warning tells of something that went wrong without stopping the run.
type Warning struct {
	Header
	Plugin  string `json:"plugin,omitzero"`
	Message string `json:"message"`
}
