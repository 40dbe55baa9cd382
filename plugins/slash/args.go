package slash

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ddd26017/fixpoint/inference"
)

// Split divides a line such as "/undo 2" into the name and the rest. ok is false for a
// line that is no slash command: it does not begin with one slash and a name.
func Split(line string) (name, rest string, ok bool) {
	after, slash := strings.CutPrefix(strings.TrimSpace(line), "/")
	name, rest = after, ""
	if i := strings.IndexFunc(after, unicode.IsSpace); i >= 0 {
		name, rest = after[:i], strings.TrimSpace(after[i:])
	}
	if !slash || name == "" || strings.HasPrefix(name, "/") {
		return "", "", false
	}
	return name, rest, true
}

// Args makes the arguments of what a person typed behind the name:
//
//	nothing                   {}
//	{"steps": 2}              itself
//	steps=2 why="too far"     an object; a value is JSON, or else a text
//	too far                   the text, for a schema with exactly one property
//
// A word for a property of type string is a text even if it is JSON, such as a number.
//
// The error is an ErrArgs that says how the command is used.
func (c Command) Args(rest string) (inference.JSON, error) {
	names := c.properties()
	switch {
	case rest == "":
		return "{}", nil
	case strings.HasPrefix(rest, "{"):
		if args := inference.JSON(rest); args.Valid() {
			return args, nil
		}
		return "", fmt.Errorf("%w: %s: what begins with { has to be a JSON object; a text that does is given as name=\"{...\"", ErrArgs, c.Usage())
	}
	if args, err := c.pairs(rest, names); err == nil {
		return args, nil
	} else if len(names) != 1 {
		return "", fmt.Errorf("%w: %s: %w", ErrArgs, c.Usage(), err)
	}
	return inference.ToJSON(map[string]any{names[0]: c.value(names[0], rest)})
}

// Usage returns how the command is typed, such as "/undo [steps=...]".
func (c Command) Usage() string {
	var b strings.Builder
	b.WriteString("/" + c.name)
	required := c.shape().Required
	for _, name := range c.properties() {
		if slices.Contains(required, name) {
			b.WriteString(" " + name + "=...")
		} else {
			b.WriteString(" [" + name + "=...]")
		}
	}
	return b.String()
}

// shape is what of a schema decides how arguments are typed.
type shape struct {
	Properties map[string]struct {
		Type string `json:"type"`
	} `json:"properties"`
	Required []string `json:"required"`
}

func (c Command) shape() (s shape) {
	if json.Unmarshal([]byte(c.schema), &s) != nil {
		return shape{} // it has another form, and arguments are typed as an object
	}
	return s
}

// properties returns the names of the arguments, the required ones first and each group
// in order.
func (c Command) properties() []string {
	s := c.shape()
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		first, second := slices.Contains(s.Required, a), slices.Contains(s.Required, b)
		if first != second && first {
			return -1
		} else if first != second {
			return 1
		}
		return strings.Compare(a, b)
	})
	return names
}

// value is what a text stands for as the value of a property.
func (c Command) value(property, text string) any {
	if raw := json.RawMessage(text); json.Valid(raw) && c.shape().Properties[property].Type != "string" {
		return raw
	}
	return text
}

// pairs reads name=value pairs whose names are known.
func (c Command) pairs(rest string, names []string) (inference.JSON, error) {
	args := map[string]any{}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		name, after, found := strings.Cut(rest, "=")
		if !found || !slices.Contains(names, name) {
			return "", fmt.Errorf("%q does not begin with name= of an argument", rest)
		}
		if _, twice := args[name]; twice {
			return "", fmt.Errorf("%s is given twice", name)
		}
		text, left, quoted, err := cutValue(after)
		if err != nil {
			return "", fmt.Errorf("the value of %s: %w", name, err)
		}
		args[name], rest = text, left
		if !quoted {
			args[name] = c.value(name, text)
		}
	}
	return inference.ToJSON(args)
}

// cutValue cuts a value off: a text in quotes as JSON has them, with white space or the end
// behind it, or a word.
func cutValue(from string) (text, rest string, quoted bool, err error) {
	if strings.HasPrefix(from, `"`) {
		d := json.NewDecoder(strings.NewReader(from))
		if err := d.Decode(&text); err != nil {
			return "", "", true, errors.New("a text in quotes has no end or a wrong escape")
		}
		rest = from[d.InputOffset():]
		if strings.TrimLeftFunc(rest, unicode.IsSpace) == rest && rest != "" {
			return "", "", true, errors.New("white space is missing behind the quotes")
		}
		return text, rest, true, nil
	}
	if i := strings.IndexFunc(from, unicode.IsSpace); i >= 0 {
		return from[:i], from[i:], false, nil
	}
	return from, "", false, nil
}

func decode[In any](name string, args inference.JSON) (in In, err error) {
	if err = args.Decode(&in); err != nil {
		err = fmt.Errorf("%w: /%s: %w", ErrArgs, name, err)
	}
	return in, err
}
