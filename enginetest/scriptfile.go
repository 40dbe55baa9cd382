package enginetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/ddd26017/fixpoint/inference"
)

// ErrBadScript is the kind of *ScriptError.
var ErrBadScript = errors.New("enginetest: bad script")

// ScriptError is a mistake in a script file. It matches ErrBadScript.
type ScriptError struct {
	File   string // as given to ParseScript
	Line   int    // of the file, from 1; 0 when Answer tells more
	Column int
	Answer int    // from 1; 0 when the fault is not in an answer
	Field  string // such as "tool_calls[0].args.path", or ""
	Err    error  // for a template with line and column within the text
}

func (e *ScriptError) Error() string {
	var b strings.Builder
	b.WriteString("enginetest: script " + e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Answer > 0 {
		fmt.Fprintf(&b, ": answer %d", e.Answer)
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	return b.String() + ": " + e.Err.Error()
}

// Is reports whether target is ErrBadScript.
func (e *ScriptError) Is(target error) bool { return target == ErrBadScript }

// Unwrap returns the cause.
func (e *ScriptError) Unwrap() error { return e.Err }

// ParseScript reads a script from the JSON in data. The name of the file is only
// for errors, of which all that are found come joined; each is a *ScriptError.
//
//	{"answers": [
//	  {"text": "I look around.",
//	   "tool_calls": [{"id": "list", "tool": "list_files", "args": {"dir": "."}}]},
//	  {"when": "{{ not (.Result \"list\").IsError }}",
//	   "tool_calls": [{"id": "read", "tool": "read_file",
//	                   "args": {"path": "{{ (.Result \"list\").Content | lines | at 0 }}"}}],
//	   "usage": {"input_tokens": 120, "output_tokens": 18}},
//	  {"text": "Done: {{ (.Result \"read\").Content | first 80 }}"}
//	]}
//
// An answer has the members when, text, tool_calls, usage, stop and error; a tool
// call has id, tool, args and when. An error makes the model fail. A call without
// an id gets one from its place, such as "call-2-1".
//
// The texts when, text and error, and every string in args at any depth, are
// templates of package text/template. They see
//
//   - .Input, the text of the last user message, and .Task, that of the first;
//   - .Step, the number of the model call, 1 for the thread's first;
//   - .Result "id", the result of a tool call: Name, Content, Details (decoded JSON),
//     IsError and Outcome; it is an error when there is none. Of several results with
//     one id it is the last. .Has "id" reports whether there is one, and .Results is
//     the map of all;
//
// and may call, besides the functions of text/template: lines TEXT, split SEP TEXT,
// join SEP LIST, filter SUB LIST (elements that contain SUB), first N, last N and
// skip N of a list or text, at I LIST (from 0; empty when there is none), trim,
// lower, upper, replace OLD NEW TEXT, contains SUB TEXT, hasPrefix, hasSuffix, base,
// dir and ext of a path, add, sub, json VALUE and default DEF VALUE.
//
// A when must print true or false. An answer whose when is false is skipped, for
// good: the script goes on behind it. A call whose when is false is left out of its
// answer. Conditions are evaluated again for each request on the part of the
// transcript that stands before the answer, so that a Script needs no memory; do
// not let them depend on messages that only some requests have, such as one-shot
// context.
//
// A template that fails when it is executed makes the model fail with a
// *ScriptError.
func ParseScript(file string, data []byte) (*Script, error) {
	var top struct {
		Answers []json.RawMessage `json:"answers"`
	}
	if err := decodeStrict(data, &top); err != nil {
		line, column := position(data, err)
		return nil, &ScriptError{File: file, Line: line, Column: column, Err: err}
	}
	if len(top.Answers) == 0 {
		return nil, &ScriptError{File: file, Err: errors.New("it has no answers; give at least one")}
	}
	s := &Script{file: file}
	var errs []error
	for i, raw := range top.Answers {
		c := &compiler{file: file, answer: i + 1}
		s.answers = append(s.answers, Answer{file: c.compile(raw)})
		errs = append(errs, c.errs...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

func decodeStrict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the value")
	}
	return nil
}

// position returns line and column of a fault, as far as the error tells; 0 for
// one that does not.
func position(data []byte, err error) (line, column int) {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := 0
	switch {
	case errors.As(err, &syntax):
		offset = int(syntax.Offset)
	case errors.As(err, &kind):
		offset = int(kind.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		offset = len(data)
	default:
		return 0, 0
	}
	before := data[:min(max(offset-1, 0), len(data))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// answerText is an answer as it stands in the file.
type answerText struct {
	When      string          `json:"when"`
	Text      string          `json:"text"`
	ToolCalls []callText      `json:"tool_calls"`
	Usage     inference.Usage `json:"usage"`
	Stop      string          `json:"stop"`
	Error     string          `json:"error"`
}

type callText struct {
	ID   string          `json:"id"`
	Tool string          `json:"tool"`
	When string          `json:"when"`
	Args json.RawMessage `json:"args"`
}

// compiler turns one answer of a file into templates and collects its mistakes.
type compiler struct {
	file   string
	answer int
	errs   []error
}

func (c *compiler) fault(field string, err error) {
	c.errs = append(c.errs, &ScriptError{File: c.file, Answer: c.answer, Field: field, Err: err})
}

func (c *compiler) compile(raw json.RawMessage) *fileAnswer {
	var in *answerText
	err := decodeStrict(raw, &in)
	if err == nil && in == nil {
		err = errors.New("it is null; write {} for an empty answer")
	}
	if err != nil {
		c.fault("", err)
		return nil
	}
	out := &fileAnswer{
		file: c.file, number: c.answer, usage: in.Usage, stop: inference.StopReason(in.Stop),
		when: c.template("when", in.When), text: c.template("text", in.Text), fail: c.template("error", in.Error),
	}
	switch out.stop {
	case "", inference.StopEnd, inference.StopToolUse, inference.StopMaxTokens, inference.StopFiltered, inference.StopOther:
	default:
		c.fault("stop", fmt.Errorf("%q is not a stop reason; use end, tool_use, max_tokens, filtered or other", in.Stop))
	}
	var ids []string
	for i, call := range in.ToolCalls {
		field := fmt.Sprintf("tool_calls[%d]", i)
		if call.ID == "" {
			call.ID = fmt.Sprintf("call-%d-%d", c.answer, i+1)
		}
		if slices.Contains(ids, call.ID) {
			c.fault(field+".id", fmt.Errorf("%q is the id of an earlier call of this answer; ids are unique", call.ID))
		}
		ids = append(ids, call.ID)
		if call.Tool == "" {
			c.fault(field+".tool", errors.New("the call names no tool"))
		}
		out.calls = append(out.calls, fileCall{
			id: call.ID, tool: call.Tool, field: field,
			when: c.template(field+".when", call.When), args: c.args(field+".args", call.Args),
		})
	}
	return out
}

// template parses text; nil stands for the empty one.
func (c *compiler) template(field, text string) *template.Template {
	if text == "" {
		return nil
	}
	t, err := template.New(field).Option("missingkey=error").Funcs(templateFuncs()).Parse(text)
	if err != nil {
		c.fault(field, err)
	}
	return t
}

// args parses arguments: maps and slices of what JSON has, with a template in
// place of every string that is one.
func (c *compiler) args(field string, raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // numbers stay as they are written
	var v any
	if err := dec.Decode(&v); err != nil {
		c.fault(field, err)
	}
	return c.strings(field, v)
}

func (c *compiler) strings(field string, v any) any {
	switch v := v.(type) {
	case string:
		if !strings.Contains(v, "{{") {
			return v
		}
		return c.template(field, v)
	case []any:
		for i, e := range v {
			v[i] = c.strings(fmt.Sprintf("%s[%d]", field, i), e)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = c.strings(field+"."+name, v[name])
		}
	}
	return v
}
