package permission

import (
	"encoding/json"
	"fmt"
	"strings"

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
	if !call.Args.Valid() {
		return "", fmt.Errorf("permission: the arguments of %s cannot be shown: they are no JSON", tool.Name)
	}
	return inference.ToJSON(Preview{Tool: tool.Name, Kind: tool.Kind, Description: tool.Description, Args: shorten(call.Args), Always: always})
}

// shorten cuts long texts anywhere in valid JSON. All else stays as it is written: a
// tool may read what another decoder drops, such as one of two members of one name.
func shorten(args inference.JSON) inference.JSON {
	var out strings.Builder
	for len(args) > 0 {
		end := 1
		if args[0] == '"' {
			for ; args[end] != '"'; end++ {
				if args[end] == '\\' {
					end++
				}
			}
			end++
		}
		out.WriteString(cut(string(args[:end])))
		args = args[end:]
	}
	return inference.JSON(out.String())
}

// cut cuts a token of JSON if it is a long text.
func cut(token string) string {
	var text string
	if len(token) <= longText || json.Unmarshal([]byte(token), &text) != nil {
		return token
	}
	r := []rune(text)
	if len(r) <= longText {
		return token
	}
	short, _ := inference.ToJSON(fmt.Sprintf("%s… (%d more characters)", string(r[:longText]), len(r)-longText)) // texts can always be written
	return string(short)
}
