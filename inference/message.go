package inference

import "slices"

// Role says who speaks in a message.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation. It is plain data. A message that is handed on shares its two slices with
// the original: give others a [Message.Clone] when either side may change them.
type Message struct {
	Role Role `json:"role"`
	// Text is what was said, without media.
	Text string `json:"text,omitempty"`
	// Parts holds media and vendor blocks, in order.
	Parts []Part `json:"parts,omitempty"`
	// ToolCalls is what an assistant asks to have run, in the order it asked.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// Result answers one tool call; only messages of [RoleTool] have one.
	Result ToolResult `json:"result,omitzero"`
}

// User returns what a person said.
func User(text string) Message { return Message{Role: RoleUser, Text: text} }

// System returns an instruction.
func System(text string) Message { return Message{Role: RoleSystem, Text: text} }

// Assistant returns what a model said and the tool calls it asked for. The calls are copied.
func Assistant(text string, calls ...ToolCall) Message {
	return Message{Role: RoleAssistant, Text: text, ToolCalls: slices.Clone(calls)}
}

// ToolMessage returns the answer to one tool call, as the model gets to see it.
func ToolMessage(result ToolResult) Message {
	return Message{Role: RoleTool, Text: result.Content, Result: result}
}

// Clone returns a copy that shares nothing that can change.
func (m Message) Clone() Message {
	m.Parts = slices.Clone(m.Parts)
	m.ToolCalls = slices.Clone(m.ToolCalls)
	return m
}

// CloneMessages returns a slice of its own with a [Message.Clone] of each message. It keeps nil as nil.
func CloneMessages(messages []Message) []Message {
	out := slices.Clone(messages)
	for i := range out {
		out[i] = out[i].Clone()
	}
	return out
}
