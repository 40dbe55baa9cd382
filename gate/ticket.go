package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// TicketKind says what sort of answer a ticket wants.
type TicketKind string

// Kinds of tickets.
const (
	Confirm     TicketKind = "confirm"
	Text        TicketKind = "text"
	Choice      TicketKind = "choice"
	MultiChoice TicketKind = "multi_choice"
	Form        TicketKind = "form"
	Secret      TicketKind = "secret"
)

// ResumeMode says what an approving answer does to the suspended call.
type ResumeMode string

// Resume modes; the zero mode replays.
const (
	Replay      ResumeMode = ""              // run the call
	UseAsResult ResumeMode = "use_as_result" // the answer's value is the result, the tool does not run
	PassToTool  ResumeMode = "pass_to_tool"  // run the call; the tool reads the answer from its context
)

// Ticket is a question about one tool call. A gate fills Kind, Message and what
// it needs of the others; the engine sets ID, Call, Plugin, Until and Fingerprint.
// It is a comparable value.
type Ticket struct {
	ID          string         `json:"id"`                   // unique in the thread, stable while the question stands
	Call        string         `json:"call"`                 // id of the tool call
	Plugin      string         `json:"plugin"`               // who asks; "tool NAME" for a tool
	Kind        TicketKind     `json:"kind"`                 // Confirm when empty
	Message     string         `json:"message"`              // for the person
	Params      inference.JSON `json:"params,omitzero"`      // fields, preview: for the one who shows the question
	Choices     inference.JSON `json:"choices,omitzero"`     // texts that the answer's value is taken from; see Choices
	Schema      inference.JSON `json:"schema,omitzero"`      // JSON Schema of the answer's value
	Mode        ResumeMode     `json:"mode,omitzero"`        // what an approving answer does
	Default     Default        `json:"default,omitzero"`     // what counts when nobody can be asked, or answers in time
	Fallback    inference.JSON `json:"fallback,omitzero"`    // the value that goes with DefaultYes
	Lifetime    time.Duration  `json:"lifetime,omitzero"`    // how long the question stands; 0: for ever
	Until       time.Time      `json:"until,omitzero"`       // when it no longer does
	Fingerprint string         `json:"fingerprint,omitzero"` // of the exact call that is asked about
}

// Valid reports whether the ticket can be saved: its JSON is JSON.
func (t Ticket) Valid() bool {
	return t.Params.Valid() && t.Choices.Valid() && t.Schema.Valid() && t.Fallback.Valid()
}

// Choices returns the Choices of a ticket.
func Choices(list ...string) inference.JSON {
	text, _ := inference.ToJSON(list) // texts can always be written
	return text
}

// Default is the answer to a ticket when no resolver is there to ask, or, with a
// Lifetime, when nobody answered in that time.
type Default string

// Defaults. The zero one waits; at the end of a Lifetime it calls the call off.
const (
	NoDefault     Default = ""
	DefaultYes    Default = "approve"
	DefaultNo     Default = "deny"
	DefaultCancel Default = "cancel"
)

// Fingerprint identifies a call by its tool and exact arguments, ignoring only
// insignificant white space, key order and escapes; numbers count as written. An
// approval is bound to it: after an edit the old approval does not count.
func Fingerprint(call inference.ToolCall) string {
	args, err := call.Args.Canonical()
	if err != nil {
		args = call.Args // not JSON: every byte counts
	}
	text := make([]byte, 0, len(call.Name)+len(args)+8)
	text = strconv.AppendInt(text, int64(len(call.Name)), 10)
	text = append(append(append(text, ':'), call.Name...), args...)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
