package openai

import (
	"encoding/json"
	"fmt"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// taken says of members of a request's body why an entry of the open map cannot set them.
type taken map[string]string

const (
	byAdapter = "no entry of this name: the adapter writes it"
	byParams  = "no entry of this name: use the parameter that inference.Params has for it"
)

// extras returns the entries of the open map as members of the body, without those in merged, which it returns as
// they are.
func extras(r inference.Request, taken taken, merged ...string) (members map[string]any, rest map[string]json.RawMessage, err error) {
	members, rest = map[string]any{}, map[string]json.RawMessage{}
	for name, value := range r.Params.Extra.All() {
		if want := taken[name]; want != "" {
			return nil, nil, remote.Unsent(&inference.FieldError{Field: inference.ExtraField(name), Value: string(value), Want: want})
		}
		text := json.RawMessage("null")
		if value != "" {
			text = json.RawMessage(value)
		}
		members[name] = text
	}
	for _, name := range merged {
		if text, ok := members[name]; ok {
			rest[name] = text.(json.RawMessage)
			delete(members, name)
		}
	}
	return members, rest, nil
}

// function is a tool as both protocols know it. It is written here, not with the SDK's types, since those lose the
// order of a schema's members, in which models read and write.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func (m *Model) function(tool inference.ToolSpec) (function, error) {
	f := function{tool.Name, tool.Description, json.RawMessage(tool.Schema), m.options.Strict}
	if tool.Schema == "" {
		f.Parameters = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(f.Parameters, &members); err != nil || members == nil {
		return f, remote.Unsent(fmt.Errorf("the schema of tool %s is no JSON object", tool.Name))
	}
	return f, nil
}

// appended returns the tools of the request and behind them those of the open map's entry "tools": the service's own.
func appended(tools []json.RawMessage, more json.RawMessage) ([]json.RawMessage, error) {
	if more == nil {
		return tools, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(more, &list); err != nil {
		return nil, remote.Unsent(&inference.FieldError{Field: inference.ExtraField("tools"), Value: string(more), Want: "a list of the service's own tools"})
	}
	return append(tools, list...), nil
}

// arguments returns a call's arguments as a text that services can parse again: some refuse a conversation in which
// they once were malformed.
func arguments(args inference.JSON) string {
	if args == "" {
		return "{}"
	}
	if args.Valid() {
		return string(args)
	}
	text, _ := inference.ToJSON(map[string]string{"malformed_args": string(args)})
	return string(text)
}
