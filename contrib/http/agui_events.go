package serve

import (
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// aguiEvent is any event of AG-UI that is sent here. Members that an event does not have
// are left out.
type aguiEvent struct {
	Type            string         `json:"type"`
	Timestamp       int64          `json:"timestamp,omitzero"` // in milliseconds
	ThreadID        string         `json:"threadId,omitzero"`
	RunID           string         `json:"runId,omitzero"`
	ProtocolVersion string         `json:"protocolVersion,omitzero"`
	StepName        string         `json:"stepName,omitzero"`
	MessageID       string         `json:"messageId,omitzero"`
	Role            string         `json:"role,omitzero"`
	Delta           *string        `json:"delta,omitempty"`
	ToolCallID      string         `json:"toolCallId,omitzero"`
	ToolCallName    string         `json:"toolCallName,omitzero"`
	ParentMessageID string         `json:"parentMessageId,omitzero"`
	Content         *string        `json:"content,omitempty"`
	Outcome         *aguiOutcome   `json:"outcome,omitempty"`
	Result          any            `json:"result,omitempty"`
	Usage           []aguiUsage    `json:"usage,omitempty"`
	Message         *string        `json:"message,omitempty"`
	Code            string         `json:"code,omitzero"`
	Name            string         `json:"name,omitzero"`
	Value           any            `json:"value,omitempty"`
	Metadata        map[string]any `json:"metadata,omitempty"`
}

type aguiOutcome struct {
	Type       string          `json:"type"` // success, interrupt or cancelled
	Interrupts []aguiInterrupt `json:"interrupts,omitempty"`
}

// aguiInterrupt is a ticket.
type aguiInterrupt struct {
	ID             string         `json:"id"`
	Reason         string         `json:"reason"`
	Message        string         `json:"message,omitzero"`
	ToolCallID     string         `json:"toolCallId"`
	ResponseSchema map[string]any `json:"responseSchema"`
	ExpiresAt      *time.Time     `json:"expiresAt,omitempty"`
	Metadata       map[string]any `json:"metadata"`
}

type aguiUsage struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	Cached int64 `json:"cachedInputTokens,omitzero"`
	Total  int64 `json:"totalTokens"`
}

// aguiTeller tells a run's events as those of AG-UI. What it opens it closes before the
// run's end, as the protocol wants it.
type aguiTeller struct {
	out         *output
	thread, run string // as the front end calls them
	of          string // the run as it is called here

	step     string // that is open
	message  string // that is open
	messages int    // in this step
	usage    inference.Usage
	text     string // the last
	over     bool
}

func (a *aguiTeller) tell(e aguiEvent) { a.out.json("", "", e) }

func (a *aguiTeller) started() {
	a.tell(aguiEvent{Type: "RUN_STARTED", ThreadID: a.thread, RunID: a.run, ProtocolVersion: aguiVersion})
}

// line tells an event, and whether more is to come: what follows an end or a question is
// another run for AG-UI. Events of delegated runs are left out.
func (a *aguiTeller) line(_ uint64, l line) (more bool) {
	if !l.own {
		return true
	}
	switch l.kind {
	case "step_started", "step_finished", "inference_started", "inference_chunk", "inference_finished",
		"tool_finished", "handed_off", "run_suspended", "run_finished":
	default:
		return true
	}
	e, err := engine.UnmarshalEvent([]byte(l.data))
	if err != nil {
		return true // it was written by this process, and cannot be unreadable
	}
	h := e.Head()
	switch e := e.(type) {
	case engine.StepStarted:
		a.closeStep()
		a.step, a.messages = fmt.Sprintf("step %d", h.Step), 0
		a.tell(aguiEvent{Type: "STEP_STARTED", StepName: a.step, Timestamp: h.Time.UnixMilli()})
	case engine.StepFinished:
		a.closeStep()
	case engine.InferenceChunk:
		if e.Text != "" {
			a.say(h, e.Text)
		}
	case engine.InferenceFinished:
		a.answered(h, e)
	case engine.ToolFinished:
		id := a.call(h.Step, e.Call.ID)
		a.tell(aguiEvent{Type: "TOOL_CALL_RESULT", MessageID: id + "/result", ToolCallID: id, Content: &e.Result.Content,
			Role: "tool", Timestamp: h.Time.UnixMilli()})
	case engine.HandedOff:
		a.tell(aguiEvent{Type: "CUSTOM", Name: "fixpoint.handed_off", Value: map[string]string{"from": e.From, "to": e.To}})
	case engine.RunSuspended:
		a.asks(h, e.Tickets)
	case engine.RunFinished:
		a.finished(e)
	}
	return !a.over
}

// say adds to the message of the model that is open, and opens one if there is none.
func (a *aguiTeller) say(h engine.Header, text string) {
	if a.message == "" {
		a.message = a.messageID(h)
		a.tell(aguiEvent{Type: "TEXT_MESSAGE_START", MessageID: a.message, Role: "assistant", Timestamp: h.Time.UnixMilli()})
	}
	a.tell(aguiEvent{Type: "TEXT_MESSAGE_CONTENT", MessageID: a.message, Delta: &text})
}

// messageID is the id of the model's message in a step.
func (a *aguiTeller) messageID(h engine.Header) string {
	return fmt.Sprintf("%s/%d/message-%d", a.of, h.Step, a.messages+1)
}

// call is the id of a tool call: models may use theirs again in another step.
func (a *aguiTeller) call(step int, id string) string { return fmt.Sprintf("%s/%d/%s", a.of, step, id) }

func (a *aguiTeller) answered(h engine.Header, e engine.InferenceFinished) {
	if a.message == "" && e.Text != "" {
		a.say(h, e.Text)
	}
	parent := a.messageID(h)
	a.closeMessage()
	a.messages++
	a.usage = a.usage.Add(e.Usage)
	a.text = e.Text
	for _, call := range e.ToolCalls {
		id, args := a.call(h.Step, call.ID), string(call.Args)
		a.tell(aguiEvent{Type: "TOOL_CALL_START", ToolCallID: id, ToolCallName: call.Name, ParentMessageID: parent, Timestamp: h.Time.UnixMilli()})
		a.tell(aguiEvent{Type: "TOOL_CALL_ARGS", ToolCallID: id, Delta: &args})
		a.tell(aguiEvent{Type: "TOOL_CALL_END", ToolCallID: id})
	}
}

func (a *aguiTeller) closeMessage() {
	if a.message != "" {
		a.tell(aguiEvent{Type: "TEXT_MESSAGE_END", MessageID: a.message})
		a.message = ""
	}
}

func (a *aguiTeller) closeStep() {
	a.closeMessage()
	if a.step != "" {
		a.tell(aguiEvent{Type: "STEP_FINISHED", StepName: a.step})
		a.step = ""
	}
}

// spent is what the model calls used that were told of here.
func (a *aguiTeller) spent() []aguiUsage {
	if a.usage == (inference.Usage{}) {
		return nil
	}
	return []aguiUsage{{a.usage.InputTokens, a.usage.OutputTokens, a.usage.CachedTokens, a.usage.Total()}}
}

// asks ends the run for AG-UI with the questions that it waits for.
func (a *aguiTeller) asks(h engine.Header, tickets []gate.Ticket) {
	a.closeStep()
	a.over = true
	e := aguiEvent{Type: "RUN_FINISHED", ThreadID: a.thread, RunID: a.run, Usage: a.spent(), Outcome: &aguiOutcome{Type: "interrupt"}}
	for _, t := range tickets {
		e.Outcome.Interrupts = append(e.Outcome.Interrupts, a.interrupt(h.Step, t))
	}
	if len(tickets) == 0 { // the rules cut them away
		a.failed("the run waits for decisions that cannot be told of here; ask for its state", "waiting")
		return
	}
	a.tell(e)
}

// interrupt is a ticket as AG-UI has it. Its kind and parameters are in the metadata.
func (a *aguiTeller) interrupt(step int, t gate.Ticket) aguiInterrupt {
	members := map[string]any{"approved": map[string]any{"type": "boolean"}, "reason": map[string]any{"type": "string"}}
	if t.Kind == "" || t.Kind == gate.Confirm {
		members["editedArgs"] = map[string]any{"type": "object", "description": "Arguments to run with instead, all of them."}
	} else {
		value := map[string]any{}
		if t.Schema == "" || t.Schema.Decode(&value) != nil {
			value = map[string]any{}
		}
		members["value"] = value
	}
	i := aguiInterrupt{
		ID: t.ID, Reason: "tool_call", Message: t.Message, ToolCallID: a.call(step, t.Call),
		ResponseSchema: map[string]any{"type": "object", "properties": members, "required": []string{"approved"}, "additionalProperties": false},
		Metadata:       map[string]any{"fixpoint": t},
	}
	if !t.Until.IsZero() {
		i.ExpiresAt = &t.Until
	}
	return i
}

// finished ends the run. One that was stopped did not succeed, and did not fail either.
func (a *aguiTeller) finished(e engine.RunFinished) {
	if e.Reason == phase.ReasonError || e.Reason == phase.ReasonConsecutiveErrors {
		text := e.Error
		if text == "" {
			text = string(e.Reason) + " " + e.Detail
		}
		a.failed(text, string(e.Reason))
		return
	}
	a.closeStep()
	a.over = true
	end := aguiEvent{
		Type: "RUN_FINISHED", ThreadID: a.thread, RunID: a.run, Usage: a.spent(), Outcome: &aguiOutcome{Type: "cancelled"},
		Metadata: map[string]any{"fixpoint": map[string]any{"reason": e.Reason, "detail": e.Detail}}, Timestamp: e.Time.UnixMilli(),
	}
	switch e.Reason {
	case phase.ReasonNatural, phase.ReasonStopOnTool, phase.ReasonContentMatch:
		end.Outcome.Type = "success"
		end.Result = map[string]string{"text": a.text}
	}
	a.tell(end)
}

// failed ends the run with an error, which closes all that is open.
func (a *aguiTeller) failed(message, code string) {
	a.over = true
	a.tell(aguiEvent{Type: "RUN_ERROR", Message: &message, Code: code, Usage: a.spent()})
}
