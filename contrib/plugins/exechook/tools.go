package exechook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ddd26017/fixpoint/inference"
)

// ToolName is what hook programs call a tool and its arguments.
type ToolName struct {
	Name string // "" keeps the tool's own
	// Args maps the tool's own argument names to those that programs expect. Others
	// keep theirs.
	Args map[string]string
}

// DefaultTools returns names of the first-party tools, and of a tool named shell, as
// the programs of coding agents expect them. The map is the caller's.
func DefaultTools() map[string]ToolName {
	return map[string]ToolName{
		"shell":       {Name: "Bash"},
		"read_file":   {Name: "Read", Args: map[string]string{"path": "file_path", "from": "offset", "lines": "limit"}},
		"write_file":  {Name: "Write", Args: map[string]string{"path": "file_path"}},
		"edit_file":   {Name: "Edit", Args: map[string]string{"path": "file_path", "old": "old_string", "new": "new_string"}},
		"list_files":  {Name: "Glob"},
		"search_text": {Name: "Grep"},
	}
}

// validate returns what keeps the names from being used in both directions.
func (t ToolName) validate(tool string) error {
	taken := map[string]string{}
	for _, own := range slices.Sorted(maps.Keys(t.Args)) {
		theirs := t.Args[own]
		if other, ok := taken[theirs]; ok {
			return fmt.Errorf("exechook: tool %s: the arguments %q and %q both become %q", tool, other, own, theirs)
		}
		if own == "" || theirs == "" {
			return fmt.Errorf("exechook: tool %s: an argument's name is empty", tool)
		}
		taken[theirs] = own
	}
	return nil
}

// theirs returns the tool's name and arguments as programs get them. Arguments that
// are no object are handed over as they are, and as a string when they are not even
// JSON.
func (t ToolName) theirs(call inference.ToolCall) (name string, input inference.JSON, err error) {
	if name = t.Name; name == "" {
		name = call.Name
	}
	switch {
	case call.Args == "":
		return name, "{}", nil
	case !call.Args.Valid():
		input, err = inference.ToJSON(string(call.Args))
		return name, input, err
	}
	input, err = rename(call.Args, t.Args)
	return name, input, err
}

// own returns arguments that a program wrote under the tool's own names.
func (t ToolName) own(input inference.JSON) (inference.JSON, error) {
	back := make(map[string]string, len(t.Args))
	for own, theirs := range t.Args {
		back[theirs] = own
	}
	return rename(input, back)
}

// rename renames the members of an object. A name that is there already is an
// error: of two arguments one would be lost.
func rename(object inference.JSON, names map[string]string) (inference.JSON, error) {
	var in map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &in) != nil {
		return object, nil
	}
	if len(names) == 0 {
		// Of members with one name only the last stays, as tools read them.
		return inference.ToJSON(in)
	}
	out := make(map[string]json.RawMessage, len(in))
	for _, name := range slices.Sorted(maps.Keys(in)) {
		to, ok := names[name]
		if !ok {
			to = name
		}
		if _, twice := out[to]; twice {
			return "", fmt.Errorf("exechook: the arguments have two values for %q under the names that hook programs use", to)
		}
		out[to] = in[name]
	}
	return inference.ToJSON(out)
}
