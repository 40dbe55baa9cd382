package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

var chatTaken = taken{
	"model": byAdapter, "messages": byAdapter, "stream": byAdapter, "n": byAdapter,
	"temperature": byParams, "top_p": byParams, "max_tokens": byParams, "max_completion_tokens": byParams, "reasoning_effort": byParams,
}

// chat asks by the Chat Completions API.
func (x *exchange) chat(stream bool) error {
	params, err := x.chatParams(stream)
	if err != nil {
		return err
	}
	into := option.WithResponseInto(&x.http)
	if !stream {
		answer, err := x.model.chat.New(x.ctx, params, into)
		if err != nil {
			return err
		}
		return x.wholeCompletion(answer)
	}
	chunks := x.model.chat.NewStreaming(x.ctx, params, into)
	defer chunks.Close()
	return x.completionChunks(chunks)
}

func (x *exchange) chatParams(stream bool) (sdk.ChatCompletionNewParams, error) {
	r := x.request
	p := sdk.ChatCompletionNewParams{Model: r.Model, Messages: []sdk.ChatCompletionMessageParamUnion{}}
	members, merged, err := extras(r, chatTaken, "tools")
	if err != nil {
		return p, err
	}
	if t, ok := r.Params.Temperature.Get(); ok {
		p.Temperature = param.NewOpt(t)
	}
	if t, ok := r.Params.TopP.Get(); ok {
		p.TopP = param.NewOpt(t)
	}
	if n, ok := r.Params.MaxTokens.Get(); ok && x.model.options.OldMaxTokens {
		p.MaxTokens = param.NewOpt(int64(n))
	} else if ok {
		p.MaxCompletionTokens = param.NewOpt(int64(n))
	}
	if e, ok := r.Params.ReasoningEffort.Get(); ok {
		p.ReasoningEffort = shared.ReasoningEffort(e)
	}
	if stream {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	var tools []json.RawMessage
	for _, tool := range r.Tools {
		f, err := x.model.function(tool)
		if err != nil {
			return p, err
		}
		text, err := inference.ToJSON(struct {
			Type     string   `json:"type"`
			Function function `json:"function"`
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
		p.Tools = append(p.Tools, param.Override[sdk.ChatCompletionToolUnionParam](tool))
	}
	if r.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(r.System))
	}
	for _, message := range r.Messages {
		sent, err := chatMessage(message)
		if err != nil {
			return p, err
		}
		p.Messages = append(p.Messages, sent)
	}
	p.SetExtraFields(members)
	return p, nil
}

func chatMessage(m inference.Message) (sdk.ChatCompletionMessageParamUnion, error) {
	var none sdk.ChatCompletionMessageParamUnion
	texts, media, err := chatParts(m)
	if err != nil {
		return none, err
	}
	switch m.Role {
	case inference.RoleUser:
		if len(texts) == 0 && len(media) == 0 {
			return sdk.UserMessage(m.Text), nil
		}
		var content []sdk.ChatCompletionContentPartUnionParam
		if m.Text != "" {
			content = append(content, sdk.TextContentPart(m.Text))
		}
		return sdk.UserMessage(append(content, media...)), nil
	case inference.RoleAssistant:
		return chatAssistant(m, texts), nil
	case inference.RoleSystem, inference.RoleTool: // have texts only
	}
	if len(texts) == 0 {
		if m.Role == inference.RoleTool {
			return sdk.ToolMessage(m.Text, m.Result.CallID), nil
		}
		return sdk.SystemMessage(m.Text), nil
	}
	if m.Text != "" {
		texts = append([]sdk.ChatCompletionContentPartTextParam{{Text: m.Text}}, texts...)
	}
	if m.Role == inference.RoleTool {
		return sdk.ToolMessage(texts, m.Result.CallID), nil
	}
	return sdk.SystemMessage(texts), nil
}

// chatAssistant returns what the model said: content is left out of a message that has calls and no text.
func chatAssistant(m inference.Message, texts []sdk.ChatCompletionContentPartTextParam) sdk.ChatCompletionMessageParamUnion {
	said := &sdk.ChatCompletionAssistantMessageParam{}
	switch {
	case len(texts) > 0:
		list := &said.Content.OfArrayOfContentParts
		for _, text := range append([]sdk.ChatCompletionContentPartTextParam{{Text: m.Text}}, texts...) {
			if text.Text != "" {
				*list = append(*list, sdk.ChatCompletionAssistantMessageParamContentArrayOfContentPartUnion{OfText: &text})
			}
		}
	case m.Text != "" || len(m.ToolCalls) == 0:
		said.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.ToolCalls {
		said.ToolCalls = append(said.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: arguments(c.Args)},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: said}
}

// chatParts returns the texts among a message's parts, and all that can be sent of it as content of a user.
func chatParts(m inference.Message) (texts []sdk.ChatCompletionContentPartTextParam, all []sdk.ChatCompletionContentPartUnionParam, err error) {
	for _, p := range m.Parts {
		if p.Kind == inference.PartReasoning || p.Kind == inference.PartVendor {
			continue // a model's, and the protocol has no place for it
		}
		if p.Kind == inference.PartText {
			if p.Text != "" {
				texts = append(texts, sdk.ChatCompletionContentPartTextParam{Text: p.Text})
				all = append(all, sdk.TextContentPart(p.Text))
			}
			continue
		}
		if m.Role != inference.RoleUser {
			return nil, nil, cannot(p, m.Role, ChatCompletions)
		}
		part, err := chatMedia(p)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, part)
	}
	return texts, all, nil
}

func chatMedia(p inference.Part) (sdk.ChatCompletionContentPartUnionParam, error) {
	var none sdk.ChatCompletionContentPartUnionParam
	switch {
	case p.Kind == inference.PartImage:
		at, err := address(p)
		if err != nil {
			return none, err
		}
		return sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: at}), nil
	case p.Kind == inference.PartAudio && p.Data != "" && audioFormat(p.MediaType) != "":
		return sdk.InputAudioContentPart(sdk.ChatCompletionContentPartInputAudioInputAudioParam{
			Data: base64.StdEncoding.EncodeToString([]byte(p.Data)), Format: audioFormat(p.MediaType),
		}), nil
	case p.Kind == inference.PartFile && p.Data != "":
		return sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
			FileData: param.NewOpt(dataURL(p)), Filename: param.NewOpt(filename(p)),
		}), nil
	case p.URI != "":
		p.MediaType = cmp.Or(p.MediaType, "no media type") + " at a URI"
	}
	return none, cannot(p, inference.RoleUser, ChatCompletions)
}
