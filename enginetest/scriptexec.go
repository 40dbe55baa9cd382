package enginetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/ddd26017/fixpoint/inference"
)

// fileAnswer is an answer of a script file, ready to be executed. It is immutable.
type fileAnswer struct {
	file   string
	number int
	usage  inference.Usage
	stop   inference.StopReason

	when, text, fail *template.Template // nil for the empty text
	calls            []fileCall
}

type fileCall struct {
	id, tool, field string
	when            *template.Template
	args            any // nil when there are none
}

// applies reports whether the answer's condition holds.
func (f *fileAnswer) applies(v *view) (bool, error) { return f.holds("when", f.when, v) }

func (f *fileAnswer) holds(field string, when *template.Template, v *view) (bool, error) {
	if when == nil {
		return true, nil
	}
	text, err := f.execute(field, when, v)
	if err != nil {
		return false, err
	}
	switch strings.TrimSpace(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, f.fault(field, fmt.Errorf("it printed %q; a condition prints true or false", text))
}

// answer executes the templates. The result has no file part any more.
func (f *fileAnswer) answer(v *view) (Answer, error) {
	a := Answer{Usage: f.usage, Stop: f.stop}
	var err error
	if a.Text, err = f.execute("text", f.text, v); err != nil {
		return Answer{}, err
	}
	for _, c := range f.calls {
		wanted, err := f.holds(c.field+".when", c.when, v)
		if err != nil {
			return Answer{}, err
		}
		if !wanted {
			continue
		}
		call := inference.ToolCall{ID: c.id, Name: c.tool}
		if c.args != nil {
			args, err := f.fill(c.field+".args", c.args, v)
			if err != nil {
				return Answer{}, err
			}
			if call.Args, err = inference.ToJSON(args); err != nil {
				return Answer{}, f.fault(c.field+".args", err)
			}
		}
		a.ToolCalls = append(a.ToolCalls, call)
	}
	if f.fail != nil {
		text, err := f.execute("error", f.fail, v)
		if err != nil {
			return Answer{}, err
		}
		a.Err = errors.New(text)
	}
	return a, nil
}

// fill returns a copy of args with every template executed.
func (f *fileAnswer) fill(field string, args any, v *view) (any, error) {
	var err error
	switch args := args.(type) {
	case *template.Template:
		return f.execute(field, args, v)
	case []any:
		out := make([]any, len(args))
		for i, e := range args {
			if out[i], err = f.fill(fmt.Sprintf("%s[%d]", field, i), e, v); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(args))
		for _, name := range slices.Sorted(maps.Keys(args)) {
			if out[name], err = f.fill(field+"."+name, args[name], v); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return args, nil
}

func (f *fileAnswer) execute(field string, t *template.Template, v *view) (string, error) {
	if t == nil {
		return "", nil
	}
	var b strings.Builder
	if err := t.Execute(&b, v); err != nil {
		return "", f.fault(field, err)
	}
	return b.String(), nil
}

func (f *fileAnswer) fault(field string, err error) error {
	return &ScriptError{File: f.file, Answer: f.number, Field: field, Err: err}
}
