package inference

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
)

// ToolSpec is what a model is told about a tool. It is comparable.
type ToolSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Schema is the JSON Schema of the arguments; empty means the tool takes none.
	Schema JSON `json:"schema,omitempty"`
	// Kind tells policies what the tool does: "read", "write", "exec", "net", "other", or any word they agree on.
	// Models do not see it.
	Kind string `json:"kind,omitempty"`
}

// ToolCall is a model's wish to have a tool run. It is comparable.
//
// Args may hold text that is not JSON, since models make mistakes. Such a call survives saving and loading: its JSON
// form carries the text in the member malformed_args.
type ToolCall struct {
	// ID is unique within its response.
	ID   string `json:"id"`
	Name string `json:"name"`
	Args JSON   `json:"args,omitempty"`
}

// toolCallFields is ToolCall without its methods, for encoding/json.
type toolCallFields ToolCall

type toolCallJSON struct {
	toolCallFields
	Malformed string `json:"malformed_args,omitempty"`
}

// MarshalJSON writes the members id, name and args (or malformed_args).
func (c ToolCall) MarshalJSON() ([]byte, error) {
	out := toolCallJSON{toolCallFields: toolCallFields(c)}
	if !c.Args.Valid() {
		out.Args, out.Malformed = "", string(c.Args)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *ToolCall) UnmarshalJSON(text []byte) error {
	var in toolCallJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	if in.Args != "" && in.Malformed != "" {
		return errors.New("inference: tool call has both args and malformed_args; keep one")
	}
	in.Args = cmp.Or(in.Args, JSON(in.Malformed))
	*c = ToolCall(in.toolCallFields)
	return nil
}

// Outcome says how a tool call ended.
type Outcome string

// The outcomes. Only the first means that the tool did its work.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeError       Outcome = "error"
	OutcomeBlocked     Outcome = "blocked"
	OutcomeDenied      Outcome = "denied"
	OutcomeSubstituted Outcome = "substituted"
	OutcomeCancelled   Outcome = "cancelled"
	OutcomeTimedOut    Outcome = "timed_out"
	OutcomeNotRun      Outcome = "not_run"
)

// ToolResult answers one tool call. It is comparable. A tool need only fill Content, and IsError when it failed; the
// engine adds the call's id and name and the outcome.
type ToolResult struct {
	CallID string `json:"call_id"`
	Name   string `json:"name,omitempty"`
	// Content is what the model reads.
	Content string `json:"content"`
	// Details is structured data for hooks and user interfaces; models do not see it.
	Details JSON    `json:"details,omitempty"`
	IsError bool    `json:"is_error,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
}

// Validate returns a [*FieldError] when r could not be saved or understood: its details are not JSON, or its outcome is
// none of the outcomes. No outcome is fine: the engine fills it in.
func (r ToolResult) Validate() error {
	if !r.Details.Valid() {
		return &FieldError{Field: "details", Value: strconv.Quote(string(r.Details)), Want: "one JSON value, as from ToJSON"}
	}
	switch r.Outcome {
	case "", OutcomeOK, OutcomeError, OutcomeBlocked, OutcomeDenied, OutcomeSubstituted, OutcomeCancelled, OutcomeTimedOut, OutcomeNotRun:
		return nil
	}
	return &FieldError{Field: "outcome", Value: strconv.Quote(string(r.Outcome)), Want: "one of the Outcome constants"}
}
