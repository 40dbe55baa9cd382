package openai

import (
	"encoding/json"
	"strconv"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/ddd26017/fixpoint/inference"
)

// wholeCompletion yields an answer that came in one piece.
func (x *exchange) wholeCompletion(answer *sdk.ChatCompletion) error {
	if answer == nil {
		return x.noAnswer("")
	}
	if len(answer.Choices) == 0 {
		return x.noAnswer(answer.RawJSON())
	}
	c := choice{x: x}
	choice := answer.Choices[0]
	m := choice.Message
	c.think(m.JSON.ExtraFields)
	c.text(m.Content)
	c.refusal(m.Refusal)
	for i, call := range m.ToolCalls {
		c.call(int64(i), call.ID, call.Function.Name, call.Function.Arguments)
	}
	c.finish(choice.FinishReason)
	c.usage(answer.Usage)
	return c.end(answer.Model)
}

// completionChunks yields a stream.
func (x *exchange) completionChunks(chunks *ssestream.Stream[sdk.ChatCompletionChunk]) error {
	c := choice{x: x}
	model := ""
	for !x.left && chunks.Next() {
		chunk := chunks.Current()
		if chunk.Model != "" && model == "" {
			model = chunk.Model
			x.say(inference.Chunk{Model: model})
		}
		for _, part := range chunk.Choices {
			if part.Index != 0 {
				continue
			}
			d := part.Delta
			c.think(d.JSON.ExtraFields)
			c.text(d.Content)
			c.refusal(d.Refusal)
			for _, call := range d.ToolCalls {
				c.call(call.Index, call.ID, call.Function.Name, call.Function.Arguments)
			}
			c.finish(part.FinishReason)
		}
		c.usage(chunk.Usage)
	}
	if x.left {
		return nil
	}
	if err := chunks.Err(); err != nil {
		return err
	}
	if c.reason == "" {
		return errCut
	}
	return c.end(model)
}

// choice follows one answer.
type choice struct {
	x *exchange
	// counted is what was said of tokens so far: services send running totals.
	counted inference.Usage
	// calls are the ids of the calls so far, and at says which of them an index stands for.
	calls  []string
	at     map[int64]int
	reason string
	denied bool
}

// think yields thoughts, for which compatible services have members of their own.
func (c *choice) think(extra map[string]respjson.Field) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text string
		if json.Unmarshal([]byte(extra[name].Raw()), &text) == nil && text != "" {
			c.x.say(inference.Chunk{Reasoning: text})
			return // some send both
		}
	}
}

func (c *choice) text(text string) { c.x.say(inference.Chunk{Text: text}) }

func (c *choice) refusal(text string) {
	c.denied = c.denied || text != ""
	c.text(text)
}

// call yields a piece of a call. Some services number all calls of an answer alike, and some give no ids.
func (c *choice) call(index int64, id, name, args string) {
	if c.at == nil {
		c.at = map[int64]int{}
	}
	n, known := c.at[index]
	if !known || id != "" && name != "" && id != c.calls[n] {
		n, known = len(c.calls), false
		c.at[index] = n
		if id == "" {
			id = "call_" + strconv.Itoa(n)
		}
		c.calls = append(c.calls, id)
	}
	d := inference.ToolCallDelta{Index: n, Args: args}
	if !known {
		d.ID, d.Name = id, name
	}
	if d != (inference.ToolCallDelta{Index: n}) {
		c.x.say(inference.Chunk{ToolCall: d})
	}
}

func (c *choice) finish(reason string) {
	if reason != "" {
		c.reason = reason
	}
}

// usage yields what was not counted yet.
func (c *choice) usage(u sdk.CompletionUsage) {
	now := inference.Usage{
		InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens,
		CachedTokens: u.PromptTokensDetails.CachedTokens, ReasoningTokens: u.CompletionTokensDetails.ReasoningTokens,
	}
	if now == (inference.Usage{}) {
		return
	}
	c.x.say(inference.Chunk{Usage: inference.Usage{
		InputTokens:  now.InputTokens - c.counted.InputTokens,
		OutputTokens: now.OutputTokens - c.counted.OutputTokens,
		CachedTokens: now.CachedTokens - c.counted.CachedTokens, ReasoningTokens: now.ReasoningTokens - c.counted.ReasoningTokens,
	}})
	c.counted = now
}

// end says what is known when the answer is over.
func (c *choice) end(model string) error {
	last := inference.Chunk{Model: model}
	switch c.reason {
	case "stop", "tool_calls", "function_call", "":
		last.Stop = inference.StopEnd
		if len(c.calls) > 0 { // whatever the service calls it
			last.Stop = inference.StopToolUse
		}
		if c.denied {
			last.Stop = inference.StopFiltered
		}
	case "length":
		last.Stop = inference.StopMaxTokens
	case "content_filter":
		last.Stop = inference.StopFiltered
	case "error": // of gateways whose upstream failed
		return &complaint{code: "server_error", message: "the answer ended with an error"}
	default:
		last.Stop = inference.StopOther
	}
	c.x.say(last)
	return nil
}
