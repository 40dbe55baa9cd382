package inference

import "slices"

// Request is everything a model is told for one inference. It is plain data: changing a request changes that one call
// and never the thread's history, provided the holder works on a [Request.Clone].
type Request struct {
	Model    string     `json:"model"`
	System   string     `json:"system,omitempty"`
	Messages []Message  `json:"messages,omitempty"`
	Tools    []ToolSpec `json:"tools,omitempty"`
	Params   Params     `json:"params,omitzero"`
}

// Clone returns a copy that shares nothing that can change.
func (r Request) Clone() Request {
	r.Messages = CloneMessages(r.Messages)
	r.Tools = slices.Clone(r.Tools)
	return r
}

// StopReason says why a model stopped.
type StopReason string

// The stop reasons. The empty reason means that the answer broke off.
const (
	StopEnd       StopReason = "end"
	StopToolUse   StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
	StopFiltered  StopReason = "filtered"
	StopOther     StopReason = "other"
)

// Response is a model's answer. Its message has [RoleAssistant].
type Response struct {
	Message Message    `json:"message"`
	Usage   Usage      `json:"usage,omitzero"`
	Stop    StopReason `json:"stop,omitempty"`
	// Model is the model that answered, which may differ from the one asked for.
	Model string `json:"model,omitempty"`
}

// Clone returns a copy that shares nothing that can change.
func (r Response) Clone() Response {
	r.Message = r.Message.Clone()
	return r
}

// ValidateResponse returns a [*ResponseError] when r cannot be acted on: its message is not an assistant's, it claims
// negative usage, a part's Extra is not JSON (such a message could not be saved), or a tool call has no name, no id, or
// an id that an earlier call has. Arguments that are not JSON are accepted, since the model can be told about them in
// the call's result.
func ValidateResponse(r Response) error {
	bad := func(reason string) error { return &ResponseError{Call: -1, Reason: reason} }
	switch u := r.Usage; {
	case r.Message.Role != RoleAssistant:
		return bad("the message has role \"" + string(r.Message.Role) + "\"; build it with Assistant")
	case r.Message.Result != ToolResult{}:
		return bad("the message carries a tool result; a model answers with text and tool calls")
	case min(u.InputTokens, u.OutputTokens, u.CachedTokens, u.ReasoningTokens) < 0:
		return bad("the usage is negative; leave unknown counts at zero")
	}
	for _, p := range r.Message.Parts {
		if !p.Extra.Valid() {
			return bad("a part of kind \"" + p.Kind + "\" has an Extra that is not JSON; encode it with ToJSON")
		}
	}
	seen := map[string]bool{}
	for i, c := range r.Message.ToolCalls {
		bad := func(reason string) error { return &ResponseError{Call: i, CallID: c.ID, Reason: reason} }
		switch {
		case c.ID == "":
			return bad("it has no id; give each call an id that is unique in its response")
		case seen[c.ID]:
			return bad("an earlier call has the same id; give each call an id that is unique in its response")
		case c.Name == "":
			return bad("it names no tool")
		}
		seen[c.ID] = true
	}
	return nil
}
