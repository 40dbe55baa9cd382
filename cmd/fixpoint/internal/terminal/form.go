package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// field is one value of a form.
type field struct {
	name     string
	about    string
	typ      string   // of JSON Schema; "" for any value
	choices  []string // of a text that must be one of them
	required bool
}

// formFields returns the fields of a form by its JSON Schema, the required ones first
// and in the schema's order of them, the others by name. It is false for a schema that
// says too little to be asked field by field.
func formFields(schema inference.JSON) ([]field, bool) {
	var s struct {
		Type       string   `json:"type"`
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type        string   `json:"type"`
			Title       string   `json:"title"`
			Description string   `json:"description"`
			Enum        []string `json:"enum"`
		} `json:"properties"`
	}
	// Not strict: a schema says much that a prompt need not know.
	if json.Unmarshal([]byte(schema), &s) != nil || s.Type != "object" || len(s.Properties) == 0 {
		return nil, false
	}
	place := func(name string) int {
		if i := slices.Index(s.Required, name); i >= 0 {
			return i
		}
		return len(s.Required)
	}
	fields := make([]field, 0, len(s.Properties))
	for name, p := range s.Properties {
		fields = append(fields, field{name, cmp.Or(p.Description, p.Title), p.Type, p.Enum, slices.Contains(s.Required, name)})
	}
	slices.SortFunc(fields, func(a, b field) int {
		return cmp.Or(cmp.Compare(place(a.name), place(b.name)), strings.Compare(a.name, b.name))
	})
	return fields, true
}

// form asks for the fields one by one. A required field left empty declines the form.
func (q *Prompt) form(ctx context.Context, fields []field) (inference.JSON, error) {
	values := map[string]inference.JSON{}
	for _, f := range fields {
		value, err := q.field(ctx, f)
		if err != nil || value == "" && f.required {
			return "", err
		}
		if value != "" {
			values[f.name] = value
		}
	}
	return inference.ToJSON(values)
}

func (q *Prompt) field(ctx context.Context, f field) (inference.JSON, error) {
	s := q.p.s
	q.p.write(q.p.layout(s.plain, "", 2, s.bold.Render(clean(f.name)+":"), s.dim.Render(clip(clean(f.about), 200))) + "\n")
	cue := cmp.Or(f.typ, "value, as JSON")
	if f.typ == "boolean" {
		cue = "[y]es, [n]o"
	}
	if len(f.choices) > 0 {
		q.list(f.choices)
		cue = "number or text"
	}
	if f.required {
		cue += "; an empty line declines"
	} else {
		cue += "; an empty line leaves it out"
	}
	for {
		q.cue(cue)
		text, err := q.line(ctx)
		if err != nil || strings.TrimSpace(text) == "" {
			return "", err
		}
		if value, ok := f.read(text); ok {
			return value, nil
		}
		q.complain("that is not what is wanted")
	}
}

// read returns the value that was typed for a field.
func (f field) read(text string) (inference.JSON, bool) {
	word := strings.TrimSpace(text)
	if len(f.choices) > 0 {
		c, ok := pick(f.choices, word)
		value, _ := inference.ToJSON(c) // a text can always be written
		return value, ok
	}
	switch f.typ {
	case "string":
		value, err := inference.ToJSON(text)
		return value, err == nil
	case "boolean":
		switch strings.ToLower(word) {
		case "y", "yes", "true":
			return "true", true
		case "n", "no", "false":
			return "false", true
		}
		return "", false
	case "integer", "number":
		var n json.Number
		if json.Unmarshal([]byte(word), &n) != nil || word[0] == '"' {
			return "", false
		}
		return inference.JSON(n), true
	default:
		value := inference.JSON(word)
		return value, value.Valid()
	}
}
