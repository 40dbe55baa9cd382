package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

type object = map[string]any

// taken says of members of a request's body why an entry of the open map cannot set them, and takenConfig of members
// of generationConfig.
var (
	taken = map[string]string{
		"model": byAdapter, "contents": byAdapter, "systemInstruction": byAdapter, "system_instruction": byAdapter,
		"generation_config": "no entry of this name: write generationConfig",
	}
	takenConfig = map[string]string{
		"temperature": byParams, "topP": byParams, "top_p": byParams, "maxOutputTokens": byParams, "max_output_tokens": byParams,
		"candidateCount": byAdapter, "candidate_count": byAdapter, "thinking_config": "no member of this name: write thinkingConfig",
	}
)

const (
	byAdapter = "no entry of this name: the adapter writes it"
	byParams  = "no entry of this name: use the parameter that inference.Params has for it"
)

func badExtra(name string, value any, want string) error {
	text, _ := value.(json.RawMessage)
	return &inference.FieldError{Field: inference.ExtraField(name), Value: string(text), Want: want}
}

// levels are the words for efforts. None has no word: it is a budget of nothing.
var levels = map[inference.Effort]string{
	inference.EffortLow: "LOW", inference.EffortMedium: "MEDIUM", inference.EffortHigh: "HIGH", inference.EffortMax: "HIGH",
}

// body writes a request. Its errors are of what cannot be sent.
func (m *Model) body(r inference.Request) (object, error) {
	if r.Model == "" {
		return nil, errors.New("the request names no model, and neither does Options.Model")
	}
	if strings.ContainsAny(r.Model, "?&#%\\ ") || strings.Contains(r.Model, "..") {
		return nil, fmt.Errorf("%q is not the name of a model", r.Model)
	}
	if err := r.Params.Validate(); err != nil {
		return nil, err
	}
	out := object{}
	for name, value := range r.Params.Extra.All() {
		text := json.RawMessage(value)
		if value == "" {
			text = json.RawMessage("null")
		}
		if want := taken[name]; want != "" {
			return nil, badExtra(name, text, want)
		}
		out[name] = text
	}
	config, err := m.generationConfig(r.Params, out)
	if err != nil {
		return nil, err
	}
	if len(config) > 0 {
		out["generationConfig"] = config
	}
	if err := addTools(out, r.Tools); err != nil {
		return nil, err
	}
	var h history
	if r.System != "" {
		h.system = append(h.system, object{"text": r.System})
	}
	if out["contents"], err = h.write(r.Messages); err != nil {
		return nil, err
	}
	if len(h.system) > 0 {
		out["systemInstruction"] = object{"parts": h.system}
	}
	return out, nil
}

// member reads a member that is joined with what the adapter writes.
func member(of object, name string) (object, error) {
	text, ok := of[name].(json.RawMessage)
	if !ok {
		return object{}, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil || raw == nil {
		return nil, badExtra("generationConfig", text, "an object, with objects for objects")
	}
	out := object{}
	for name, value := range raw {
		out[name] = value
	}
	return out, nil
}

// generationConfig joins the parameters with the entry of that name.
func (m *Model) generationConfig(p inference.Params, extra object) (object, error) {
	config, err := member(extra, "generationConfig")
	if err != nil {
		return nil, err
	}
	for name := range maps.Keys(takenConfig) {
		if _, ok := config[name]; ok {
			return nil, badExtra("generationConfig", extra["generationConfig"], takenConfig[name]+" ("+name+")")
		}
	}
	if t, ok := p.Temperature.Get(); ok {
		config["temperature"] = t
	}
	if t, ok := p.TopP.Get(); ok {
		config["topP"] = t
	}
	if n, ok := p.MaxTokens.Get(); ok {
		config["maxOutputTokens"] = n
	}
	effort, ok := p.ReasoningEffort.Get()
	if !ok {
		return config, nil
	}
	thinking, err := member(config, "thinkingConfig")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"thinkingLevel", "thinking_level", "thinkingBudget", "thinking_budget"} {
		if _, twice := thinking[name]; twice {
			return nil, badExtra("generationConfig", extra["generationConfig"], "no "+name+", since reasoning_effort is set")
		}
	}
	budget, known := m.options.Budgets[effort]
	switch {
	case known || effort == inference.EffortNone:
		thinking["thinkingBudget"] = budget
	case m.options.Budgets != nil:
		return nil, &inference.FieldError{Field: inference.FieldReasoningEffort, Value: string(effort), Want: "none, or one that Options.Budgets has"}
	default:
		thinking["thinkingLevel"] = levels[effort]
	}
	config["thinkingConfig"] = thinking
	return config, nil
}

// addTools writes the tools, and behind them those of the entry "tools": the service's own.
func addTools(out object, specs []inference.ToolSpec) error {
	var functions []object
	for _, tool := range specs {
		f := object{"name": tool.Name}
		if tool.Description != "" {
			f["description"] = tool.Description
		}
		if tool.Schema != "" {
			var members map[string]json.RawMessage
			if err := json.Unmarshal([]byte(tool.Schema), &members); err != nil || members == nil {
				return fmt.Errorf("the schema of tool %s is no JSON object", tool.Name)
			}
			f["parametersJsonSchema"] = json.RawMessage(tool.Schema)
		}
		functions = append(functions, f)
	}
	var list []any
	if len(functions) > 0 {
		list = append(list, object{"functionDeclarations": functions})
	}
	if text, ok := out["tools"].(json.RawMessage); ok {
		var more []json.RawMessage
		if err := json.Unmarshal(text, &more); err != nil {
			return badExtra("tools", text, "a list of the service's own tools")
		}
		for _, tool := range more {
			list = append(list, tool)
		}
	}
	if delete(out, "tools"); len(list) > 0 {
		out["tools"] = list
	}
	return nil
}
