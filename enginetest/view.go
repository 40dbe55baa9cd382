package enginetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// view is what the templates of a script file see: the transcript up to the
// answer that is asked for. Its exported names are what ParseScript documents.
type view struct {
	Task    string // text of the first user message
	Input   string // text of the last one
	Step    int
	Results map[string]toolResult
}

// toolResult is a tool result as templates see it.
type toolResult struct {
	Name    string
	Content string
	Details any
	IsError bool
	Outcome string
}

func newView() *view { return &view{Step: 1, Results: map[string]toolResult{}} }

// add takes in the next message of the transcript.
func (v *view) add(m inference.Message) {
	switch m.Role {
	case inference.RoleUser:
		if v.Task == "" {
			v.Task = m.Text
		}
		v.Input = m.Text
	case inference.RoleAssistant:
		v.Step++
	case inference.RoleTool:
		r := m.Result
		v.Results[r.CallID] = toolResult{
			Name: r.Name, Content: r.Content, Details: plain(r.Details), IsError: r.IsError, Outcome: string(r.Outcome),
		}
	}
}

// Result returns the result of a call. It is an error when there is none yet.
func (v *view) Result(id string) (toolResult, error) {
	if r, ok := v.Results[id]; ok {
		return r, nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(v.Results)), ", ")
	if known == "" {
		known = "none"
	}
	return toolResult{}, fmt.Errorf("there is no result of call %q; known calls: %s", id, known)
}

// Has reports whether the call has a result.
func (v *view) Has(id string) bool {
	_, ok := v.Results[id]
	return ok
}

// plain decodes a JSON text into maps, slices, strings, booleans and numbers that
// print as they were written. What is not JSON becomes nil.
func plain(text inference.JSON) any {
	if text == "" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var out any
	if dec.Decode(&out) != nil {
		return nil
	}
	return numbers(out)
}

// numbers turns json.Numbers, which templates cannot compare, into int64 or float64.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	}
	return v
}
