package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/ddd26017/fixpoint/inference"
)

// taken says of members of a request's body why an entry of the open map cannot set them.
var taken = map[string]string{
	"model": byAdapter, "messages": byAdapter, "system": byAdapter, "stream": byAdapter,
	"temperature": byParams, "top_p": byParams, "max_tokens": byParams,
}

const (
	byAdapter = "no entry of this name: the adapter writes it"
	byParams  = "no entry of this name: use the parameter that inference.Params has for it"
)

func badExtra(name string, value json.RawMessage, want string) error {
	return &inference.FieldError{Field: inference.ExtraField(name), Value: string(value), Want: want}
}

// request writes a request, and what else there is in its body. Errors are of what cannot be sent.
func (m *Model) request(r inference.Request) (sdk.MessageNewParams, []option.RequestOption, error) {
	extra := map[string]json.RawMessage{}
	p, err := m.params(r, extra)
	var members []option.RequestOption
	// One by one, since the SDK's SetExtraFields has them in another order each time.
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		members = append(members, option.WithJSONSet(param.EscapeSJSONKey(name), extra[name]))
	}
	return p, members, err
}

func (m *Model) params(r inference.Request, extra map[string]json.RawMessage) (sdk.MessageNewParams, error) {
	p := sdk.MessageNewParams{Model: r.Model, MaxTokens: int64(r.Params.MaxTokens.Or(m.options.MaxTokens)), Messages: []sdk.MessageParam{}}
	if r.Model == "" {
		return p, errors.New("the request names no model, and neither does Options.Model")
	}
	if err := r.Params.Validate(); err != nil {
		return p, err
	}
	for name, value := range r.Params.Extra.All() {
		text := json.RawMessage(value)
		if value == "" {
			text = json.RawMessage("null")
		}
		if want := taken[name]; want != "" {
			return p, badExtra(name, text, want)
		}
		extra[name] = text
	}
	if t, ok := r.Params.Temperature.Get(); ok {
		p.Temperature = param.NewOpt(t)
	}
	if t, ok := r.Params.TopP.Get(); ok {
		p.TopP = param.NewOpt(t)
	}
	if err := m.think(&p, r.Params.ReasoningEffort, extra); err != nil {
		return p, err
	}
	var err error
	if p.Tools, err = tools(r.Tools, extra); err != nil {
		return p, err
	}
	h := history{systemMessages: m.options.SystemMessages}
	if r.System != "" {
		h.system = append(h.system, sdk.TextBlockParam{Text: r.System})
	}
	if p.Messages, err = h.write(r.Messages); err != nil {
		return p, err
	}
	p.System = h.system
	if m.options.Cache != "" {
		m.cache(&p, extra)
	}
	return p, nil
}

// think writes the effort, and joins it with the entries output_config and thinking.
func (m *Model) think(p *sdk.MessageNewParams, effort inference.Opt[inference.Effort], extra map[string]json.RawMessage) error {
	e, set := effort.Get()
	thinking, given := extra["thinking"]
	if given && set && (e == inference.EffortNone || m.options.Budgets != nil) {
		return badExtra("thinking", thinking, "no such entry, since reasoning_effort sets it")
	}
	switch {
	case !set:
		return nil
	case e == inference.EffortNone:
		p.Thinking = sdk.ThinkingConfigParamUnion{OfDisabled: &sdk.ThinkingConfigDisabledParam{}}
		return nil
	case m.options.Budgets != nil:
		budget, ok := m.options.Budgets[e]
		if !ok {
			return &inference.FieldError{Field: inference.FieldReasoningEffort, Value: string(e), Want: "none, or one that Options.Budgets has"}
		}
		// Not with the SDK's type, with which it prints advice to the standard error.
		p.Thinking = param.Override[sdk.ThinkingConfigParamUnion](map[string]any{"type": "enabled", "budget_tokens": budget})
		return nil
	}
	if !given {
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
	}
	members := map[string]json.RawMessage{}
	if text, ok := extra["output_config"]; ok {
		if err := json.Unmarshal(text, &members); err != nil || members == nil {
			return badExtra("output_config", text, "an object")
		}
		if _, twice := members["effort"]; twice {
			return badExtra("output_config", text, "no effort, since reasoning_effort is set")
		}
	}
	members["effort"] = json.RawMessage(`"` + e + `"`)
	text, err := inference.ToJSON(members)
	extra["output_config"] = json.RawMessage(text)
	return err
}

// tools writes the tools, and behind them those of the entry "tools": the service's own. They are not written with the
// SDK's types, since those lose the order of a schema's members, in which models read and write.
func tools(specs []inference.ToolSpec, extra map[string]json.RawMessage) ([]sdk.ToolUnionParam, error) {
	var out []sdk.ToolUnionParam
	for _, tool := range specs {
		schema := json.RawMessage(tool.Schema)
		if tool.Schema == "" {
			schema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(schema, &members); err != nil || members == nil {
			return nil, fmt.Errorf("the schema of tool %s is no JSON object", tool.Name)
		}
		text, err := inference.ToJSON(struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Schema      json.RawMessage `json:"input_schema"`
		}{tool.Name, tool.Description, schema})
		if err != nil {
			return nil, err
		}
		out = append(out, param.Override[sdk.ToolUnionParam](json.RawMessage(text)))
	}
	if text, ok := extra["tools"]; ok {
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, badExtra("tools", text, "a list of the service's own tools")
		}
		for _, tool := range list {
			out = append(out, param.Override[sdk.ToolUnionParam](tool))
		}
		delete(extra, "tools")
	}
	return out, nil
}

// cache marks the end of the system prompt, behind which threads differ, and lets the service mark the last block.
func (m *Model) cache(p *sdk.MessageNewParams, extra map[string]json.RawMessage) {
	mark := sdk.CacheControlEphemeralParam{TTL: sdk.CacheControlEphemeralTTL(m.options.Cache)}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = mark
	}
	if _, given := extra["cache_control"]; !given {
		p.CacheControl = mark
	}
}
