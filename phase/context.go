package phase

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// Context is what a hook, gate, action handler or tool is told about the moment
// it runs in. It is frozen: it has no exported fields, its methods return values
// that cannot reach the engine's own, and one Context may be read by many
// goroutines at once and kept as long as one likes.
type Context struct{ f Frame }

// Frame is the content of a Context, filled by code that runs phases. NewContext
// takes the frame over; what its pointers refer to must not change afterwards.
type Frame struct {
	Phase    Phase
	Round    int
	Run      *RunInfo
	Agent    *AgentInfo
	Snapshot *state.Snapshot
	Messages state.List[inference.Message]
	Request  *inference.Request
	Response *inference.Response
	Call     *CallFrame // in the three tool phases
	Err      error
}

// CallFrame is what a Context tells about one tool call.
type CallFrame struct {
	Call    inference.ToolCall
	Tool    inference.ToolSpec
	Result  inference.ToolResult
	Answer  *Answer
	Answers []Answer
}

// NewContext returns a Context with the content f.
func NewContext(f Frame) *Context { return &Context{f} }

type contextKey struct{}

// WithContext returns a ctx that carries pc, see FromContext.
func WithContext(ctx context.Context, pc *Context) context.Context {
	return context.WithValue(ctx, contextKey{}, pc)
}

// FromContext returns what a request transform is told about the moment it runs in: its
// interface is of package inference, which knows nothing of phases. The state is that of
// which the request was made. ok is false for any other ctx.
func FromContext(ctx context.Context) (pc *Context, ok bool) {
	pc, ok = ctx.Value(contextKey{}).(*Context)
	return pc, ok
}

// RunInfo identifies a run.
type RunInfo struct {
	ID      string    `json:"id"`
	Thread  string    `json:"thread"`
	Parent  string    `json:"parent,omitzero"` // run that delegated to this one, or ""
	Step    int       `json:"step"`            // current step, 1 for the first; 0 before it
	Started time.Time `json:"started"`
	Mode    string    `json:"mode,omitzero"`    // free text of the caller, for policies: "interactive", "batch"
	Adapter string    `json:"adapter,omitzero"` // free text of the caller, for policies: "cli", "http"
}

// AgentInfo describes the agent whose run this is.
type AgentInfo struct {
	ID          string
	Description string
	Model       string
	sections    map[string]any
}

// NewAgentInfo returns the description of an agent with its decoded sections.
// The map is taken over.
func NewAgentInfo(id, description, model string, sections map[string]any) *AgentInfo {
	return &AgentInfo{ID: id, Description: description, Model: model, sections: sections}
}

// Section returns the decoded section of that name in the engine's own form;
// engine.ConfigKey.Get turns it into the plugin's type.
func (a AgentInfo) Section(name string) (any, bool) {
	v, ok := a.sections[name]
	return v, ok
}

// Answer is a person's or another system's decision about a ticket.
type Answer struct {
	Ticket   string         `json:"ticket"`          // id of the ticket answered
	Approved bool           `json:"approved"`        // false denies the call
	Cancel   bool           `json:"cancel,omitzero"` // with Approved false: nobody decided, the call is called off
	Reason   string         `json:"reason,omitzero"` // told to the model when denied
	Value    inference.JSON `json:"value,omitzero"`  // what was asked for, by the ticket's schema
	Args     inference.JSON `json:"args,omitzero"`   // edited arguments to run instead, re-checked by all gates
	Handle   string         `json:"handle,omitzero"` // of a secret value in the vault; the engine sets it
}

// Phase returns the phase that is running.
func (pc *Context) Phase() Phase { return pc.f.Phase }

// Run identifies the run and its step.
func (pc *Context) Run() RunInfo {
	r, _ := known(pc.f.Run)
	return r
}

// Agent describes the agent.
func (pc *Context) Agent() AgentInfo {
	a, _ := known(pc.f.Agent)
	return a
}

// Snapshot is the frozen state that this hook or handler works on.
func (pc *Context) Snapshot() *state.Snapshot { return pc.f.Snapshot }

// Round is 0 while hooks are gathered and the number of the action round, from 1,
// while actions run.
func (pc *Context) Round() int { return pc.f.Round }

// Messages is the thread's history as of the snapshot. Elements are copied as
// they are read.
func (pc *Context) Messages() state.List[inference.Message] { return pc.f.Messages }

// Request returns a copy of the model request: as sent, at AfterInference. False
// in phases where there is none.
func (pc *Context) Request() (inference.Request, bool) {
	r, ok := known(pc.f.Request)
	return r.Clone(), ok
}

// Response returns a copy of the model's answer of this step, from AfterInference
// to StepEnd. False before, and when the model failed.
func (pc *Context) Response() (inference.Response, bool) {
	r, ok := known(pc.f.Response)
	return r.Clone(), ok
}

// Call is the tool call in question, in the three tool phases.
func (pc *Context) Call() inference.ToolCall { return pc.call().Call }

// Tool describes the tool that Call names; zero when there is no such tool.
func (pc *Context) Tool() inference.ToolSpec { return pc.call().Tool }

// Result is the outcome of the call at AfterToolExecute, with the edits that
// were committed before this hook's snapshot.
func (pc *Context) Result() inference.ToolResult { return pc.call().Result }

// Answer is the decision about this call's ticket, once there is one.
func (pc *Context) Answer() (Answer, bool) { return known(pc.call().Answer) }

// Answers are those to the questions that the tool itself asked about this very
// call, oldest first. Only the tool's own Call sees them, and the secrets in them.
func (pc *Context) Answers() []Answer { return slices.Clone(pc.call().Answers) }

// Err is the model's error at AfterInference and the cause of a failed run at
// RunEnd; nil otherwise.
func (pc *Context) Err() error { return pc.f.Err }

// noCall stands for the call outside the tool phases. It never changes.
var noCall CallFrame

func (pc *Context) call() *CallFrame { return cmp.Or(pc.f.Call, &noCall) }

// known returns what p points to, and whether there is anything.
func known[T any](p *T) (v T, ok bool) {
	if p != nil {
		v = *p
	}
	return v, p != nil
}
