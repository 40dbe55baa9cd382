package permission

import (
	"encoding/json"
	"fmt"

	"github.com/ddd26017/fixpoint/inference"
)

// Preview is the Params of a question: what there is to approve.
type Preview struct {
	Tool        string `json:"tool"`
	Kind        string `json:"kind,omitempty"`
	Description string `json:"description,omitempty"`
	// Args are the call's arguments, with long texts cut and marked as such.
	Args inference.JSON `json:"args,omitzero"`
	// Always says what an answer with Always covers.
	Always string `json:"always,omitempty"`
}

// longText is the number of characters of one argument that a preview shows.
const longText = 4000

func preview(tool inference.ToolSpec, call inference.ToolCall, always string) (inference.JSON, error) {
	var args any
	if call.Args != "" {
		if err := json.Unmarshal([]byte(call.Args), &args); err != nil {
			return "", fmt.Errorf("permission: the arguments of %s cannot be shown: %w", tool.Name, err)
		}
	}
	shown, err := inference.ToJSON(shorten(args))
	if err != nil {
		return "", err
	}
	return inference.ToJSON(Preview{Tool: tool.Name, Kind: tool.Kind, Description: tool.Description, Args: shown, Always: always})
}

// shorten cuts long texts anywhere in v, which it changes.
func shorten(v any) any {
	switch v := v.(type) {
	case string:
		if r := []rune(v); len(r) > longText {
			return fmt.Sprintf("%s… (%d more characters)", string(r[:longText]), len(r)-longText)
		}
	case []any:
		for i := range v {
			v[i] = shorten(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = shorten(v[name])
		}
	}
	return v
}
