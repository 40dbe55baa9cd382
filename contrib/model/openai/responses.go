package openai

import (
	"encoding/base64"
	"encoding/json"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

var responsesTaken = taken{
	"model": byAdapter, "input": byAdapter, "instructions": byAdapter, "stream": byAdapter, "background": byAdapter,
	"temperature": byParams, "top_p": byParams, "max_output_tokens": byParams,
}

// responses asks by the Responses API.
func (x *exchange) responses(stream bool) error {
	params, err := x.responsesParams()
	if err != nil {
		return err
	}
	into := option.WithResponseInto(&x.http)
	if !stream {
		answer, err := x.model.responses.New(x.ctx, params, into)
		if err != nil {
			return err
		}
		return x.wholeResponse(answer)
	}
	events := x.model.responses.NewStreaming(x.ctx, params, into)
	defer events.Close()
	return x.responseEvents(events)
}

func (x *exchange) responsesParams() (responses.ResponseNewParams, error) {
	r := x.request
	p := responses.ResponseNewParams{
		Model: r.Model,
		// Conversations are kept by whoever asks, so nothing needs to be kept at the service.
		Store: param.NewOpt(false),
	}
	members, merged, err := extras(r, responsesTaken, "reasoning", "tools")
	if err != nil {
		return p, err
	}
	if r.System != "" {
		p.Instructions = param.NewOpt(r.System)
	}
	if t, ok := r.Params.Temperature.Get(); ok {
		p.Temperature = param.NewOpt(t)
	}
	if t, ok := r.Params.TopP.Get(); ok {
		p.TopP = param.NewOpt(t)
	}
	if n, ok := r.Params.MaxTokens.Get(); ok {
		p.MaxOutputTokens = param.NewOpt(int64(n))
	}
	if p.Reasoning, err = reasoning(r.Params.ReasoningEffort, merged["reasoning"]); err != nil {
		return p, err
	}
	if effort, ok := r.Params.ReasoningEffort.Get(); ok && effort != inference.EffortNone || len(merged["reasoning"]) > 0 {
		// The service, which keeps nothing, wants to see the model's thoughts again. Models that do not think refuse this.
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	var tools []json.RawMessage
	for _, tool := range r.Tools {
		f, err := x.model.function(tool)
		if err != nil {
			return p, err
		}
		text, err := inference.ToJSON(struct {
			Type string `json:"type"`
			function
		}{"function", f})
		if err != nil {
			return p, remote.Unsent(err)
		}
		tools = append(tools, json.RawMessage(text))
	}
	if tools, err = appended(tools, merged["tools"]); err != nil {
		return p, err
	}
	for _, tool := range tools {
		p.Tools = append(p.Tools, param.Override[responses.ToolUnionParam](tool))
	}
	input := responses.ResponseInputParam{}
	for _, message := range r.Messages {
		if input, err = appendInput(input, message); err != nil {
			return p, err
		}
	}
	p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
	p.SetExtraFields(members)
	return p, nil
}

// reasoning joins the effort with the entry "reasoning" of the open map, such as {"summary":"auto"}.
func reasoning(effort inference.Opt[inference.Effort], extra json.RawMessage) (shared.ReasoningParam, error) {
	var p shared.ReasoningParam
	if extra != nil {
		var members map[string]any
		bad := func(want string) error {
			return remote.Unsent(&inference.FieldError{Field: inference.ExtraField("reasoning"), Value: string(extra), Want: want})
		}
		if err := json.Unmarshal(extra, &members); err != nil || members == nil {
			return p, bad("an object")
		}
		if _, twice := members["effort"]; twice && effort.IsSet() {
			return p, bad("no effort, since reasoning_effort is set")
		}
		p.SetExtraFields(members)
	}
	if e, ok := effort.Get(); ok {
		p.Effort = shared.ReasoningEffort(e)
	}
	return p, nil
}

// appendInput appends the items that a message is made of.
func appendInput(input responses.ResponseInputParam, m inference.Message) (responses.ResponseInputParam, error) {
	switch m.Role {
	case inference.RoleAssistant:
		return appendAssistant(input, m)
	case inference.RoleTool:
		output := responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(m.Result.CallID)}
		if len(m.Parts) == 0 {
			output.Output.OfString = param.NewOpt(m.Text)
		} else {
			content, err := contentList(m)
			if err != nil {
				return nil, err
			}
			for _, c := range content {
				output.Output.OfResponseFunctionCallOutputItemArray = append(output.Output.OfResponseFunctionCallOutputItemArray,
					param.Override[responses.ResponseFunctionCallOutputItemUnionParam](c))
			}
		}
		return append(input, responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &output}), nil
	case inference.RoleSystem, inference.RoleUser: // are messages
	}
	role := responses.EasyInputMessageRole(m.Role)
	if len(m.Parts) == 0 {
		return append(input, responses.ResponseInputItemParamOfMessage(m.Text, role)), nil
	}
	content, err := contentList(m)
	if err != nil {
		return nil, err
	}
	return append(input, responses.ResponseInputItemParamOfMessage(content, role)), nil
}

// contentList returns the text and the parts of a message that is not an assistant's.
func contentList(m inference.Message) (responses.ResponseInputMessageContentListParam, error) {
	var out responses.ResponseInputMessageContentListParam
	text := func(text string) {
		if text != "" {
			out = append(out, responses.ResponseInputContentParamOfInputText(text))
		}
	}
	text(m.Text)
	for _, p := range m.Parts {
		switch p.Kind {
		case inference.PartText:
			text(p.Text)
		case inference.PartReasoning, inference.PartVendor: // a model's, and not for another
		case inference.PartImage:
			at, err := address(p)
			if err != nil {
				return nil, err
			}
			image := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
			image.OfInputImage.ImageURL = param.NewOpt(at)
			out = append(out, image)
		case inference.PartFile:
			at, err := address(p)
			if err != nil {
				return nil, err
			}
			file := &responses.ResponseInputFileParam{}
			if p.Data != "" {
				file.FileData, file.Filename = param.NewOpt(at), param.NewOpt(filename(p))
			} else {
				file.FileURL = param.NewOpt(at)
			}
			out = append(out, responses.ResponseInputContentUnionParam{OfInputFile: file})
		default:
			return nil, cannot(p, m.Role, Responses)
		}
	}
	return out, nil
}

// itemType is the media type of parts whose Extra is a kept item.
const itemType = "application/vnd.openai.responses.item+json"

// kept is an item of an answer that goes back to the service as it came, and its place in the answer: the service
// insists that a model's thoughts stand before what they led to.
type kept struct {
	// Calls is how many calls came before it, and Text whether text did.
	Calls int             `json:"calls,omitempty"`
	Text  bool            `json:"text,omitempty"`
	Item  json.RawMessage `json:"item"`

	thought bool
}

// appendAssistant appends what the model said, in the order in which it did.
func appendAssistant(input responses.ResponseInputParam, m inference.Message) (responses.ResponseInputParam, error) {
	var items []kept
	texts := []string{m.Text}
	for _, p := range m.Parts {
		switch {
		case p.Kind == inference.PartText:
			texts = append(texts, p.Text)
		case p.Extra != "" && (p.Kind == inference.PartVendor && p.MediaType == itemType || p.Kind == inference.PartImage):
			item, err := readKept(p)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		case p.Kind == inference.PartVendor, p.Kind == inference.PartReasoning: // somebody else's, or only to be looked at
		default:
			return nil, cannot(p, m.Role, Responses)
		}
	}
	textAt := 0 // after how many calls
	for _, item := range items {
		if !item.Text {
			textAt = max(textAt, min(item.Calls, len(m.ToolCalls)))
		}
	}
	end := len(input) // behind the last item that may be the last
	take := func(calls int, text bool) {
		for _, item := range items {
			if min(item.Calls, len(m.ToolCalls)) != calls || item.Text != text {
				continue
			}
			input = append(input, param.Override[responses.ResponseInputItemUnionParam](item.Item))
			if !item.thought {
				end = len(input)
			}
		}
	}
	say := func(item responses.ResponseInputItemUnionParam) {
		input = append(input, item)
		end = len(input)
	}
	for i := range len(m.ToolCalls) + 1 {
		take(i, false)
		if i == textAt {
			for _, text := range texts {
				if text != "" {
					say(responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleAssistant))
				}
			}
		}
		take(i, true)
		if i < len(m.ToolCalls) {
			c := m.ToolCalls[i]
			say(responses.ResponseInputItemParamOfFunctionCall(arguments(c.Args), c.ID, c.Name))
		}
	}
	return input[:end], nil // the service takes no thoughts that led to nothing
}

// readKept returns the item of a part, with an image's data back in its place.
func readKept(p inference.Part) (kept, error) {
	var k kept
	var members map[string]json.RawMessage
	err := p.Extra.Decode(&k)
	if err == nil {
		err = json.Unmarshal(k.Item, &members)
	}
	if err != nil || members == nil {
		return k, cannot(p, inference.RoleAssistant, Responses) // another service's image
	}
	k.thought = word(members["type"]) == "reasoning"
	if p.Kind == inference.PartImage {
		text, err := inference.ToJSON(base64.StdEncoding.EncodeToString([]byte(p.Data)))
		if err != nil {
			return k, remote.Unsent(err)
		}
		members["result"] = json.RawMessage(text)
		text, err = inference.ToJSON(members)
		if err != nil {
			return k, remote.Unsent(err)
		}
		k.Item = json.RawMessage(text)
	}
	return k, nil
}
