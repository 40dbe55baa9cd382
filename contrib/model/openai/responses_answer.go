package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/ddd26017/fixpoint/inference"
)

// wholeResponse yields an answer that came in one piece.
func (x *exchange) wholeResponse(answer *responses.Response) error {
	if answer == nil {
		return x.noAnswer("")
	}
	if answer.Status == "" && len(answer.Output) == 0 {
		return x.noAnswer(answer.RawJSON())
	}
	o := outputs{x: x, items: map[int64]*output{}}
	for i, item := range answer.Output {
		if err := o.done(int64(i), item); err != nil {
			return err
		}
	}
	return o.end(answer)
}

// noAnswer is about a body with a good status that is no answer: an error after all, or something else.
func (x *exchange) noAnswer(body string) error {
	if c := readComplaint([]byte(body)); c.message != "" {
		return c
	}
	return errors.New("what the service sent is no answer")
}

// responseEvents yields a stream.
func (x *exchange) responseEvents(events *ssestream.Stream[responses.ResponseStreamEventUnion]) error {
	o := outputs{x: x, items: map[int64]*output{}}
	for !x.left && events.Next() {
		e := events.Current()
		switch e.Type {
		case "response.created":
			x.say(inference.Chunk{Model: e.Response.Model})
		case "response.output_item.added":
			o.added(e.OutputIndex, e.Item)
		case "response.output_text.delta":
			o.text(e.OutputIndex, e.Delta)
		case "response.refusal.delta":
			o.refusal(e.OutputIndex, e.Delta)
		case "response.reasoning_summary_text.delta":
			o.think(e.OutputIndex, place{"summary", e.SummaryIndex}, e.Delta)
		case "response.reasoning_text.delta":
			o.think(e.OutputIndex, place{"content", e.ContentIndex}, e.Delta)
		case "response.function_call_arguments.delta":
			o.args(e.OutputIndex, e.Delta)
		case "response.output_item.done":
			if err := o.done(e.OutputIndex, e.Item); err != nil {
				return err
			}
		case "response.completed", "response.incomplete", "response.failed":
			return o.end(&e.Response)
		case "error":
			return &complaint{code: e.Code, message: e.Message, param: e.Param}
		}
	}
	if x.left {
		return nil
	}
	if err := events.Err(); err != nil {
		return err
	}
	return errCut
}

// outputs follows the items of one answer.
type outputs struct {
	x     *exchange
	items map[int64]*output
	// calls is how many there were so far; spoke, thought and denied tell whether there was text, a thought, a refusal.
	calls                  int
	spoke, thought, denied bool
}

// output is one item, as far as it came.
type output struct {
	call int
	// said and shown are true when text or arguments, and thoughts, came piece by piece.
	said, shown bool
	last        place
}

// place is where in an item a thought stands.
type place struct {
	list  string
	index int64
}

// item returns the item at an index, and makes one that was not announced.
func (o *outputs) item(index int64) *output {
	if o.items[index] == nil {
		o.items[index] = &output{call: -1}
	}
	return o.items[index]
}

func (o *outputs) added(index int64, item responses.ResponseOutputItemUnion) {
	out := o.item(index)
	if item.Type == "function_call" && out.call < 0 {
		out.call = o.calls
		o.calls++
		id := item.CallID
		if id == "" {
			id = item.ID // of servers that have but one id
		}
		o.x.say(inference.Chunk{ToolCall: inference.ToolCallDelta{Index: out.call, ID: id, Name: item.Name}})
	}
}

func (o *outputs) text(index int64, text string) {
	if text == "" {
		return
	}
	out := o.item(index)
	if !out.said && o.spoke {
		text = "\n\n" + text // another message
	}
	out.said, o.spoke = true, true
	o.x.say(inference.Chunk{Text: text})
}

func (o *outputs) refusal(index int64, text string) {
	o.denied = true
	o.text(index, text)
}

func (o *outputs) think(index int64, at place, text string) {
	if text == "" {
		return
	}
	out := o.item(index)
	if o.thought && (!out.shown || out.last != at) {
		text = "\n\n" + text // another thought
	}
	out.shown, out.last, o.thought = true, at, true
	o.x.say(inference.Chunk{Reasoning: text})
}

func (o *outputs) args(index int64, text string) {
	out := o.item(index)
	if out.call >= 0 && text != "" {
		out.said = true
		o.x.say(inference.Chunk{ToolCall: inference.ToolCallDelta{Index: out.call, Args: text}})
	}
}

// done takes a finished item, and says of it what was not said yet.
func (o *outputs) done(index int64, item responses.ResponseOutputItemUnion) error {
	o.added(index, item)
	out := o.item(index)
	switch item.Type {
	case "message":
		if !out.said {
			for _, c := range item.Content {
				o.text(index, c.Text)
				if c.Refusal != "" {
					o.refusal(index, c.Refusal)
				}
			}
		}
		return nil
	case "function_call":
		if !out.said {
			o.args(index, item.Arguments.OfString)
		}
		return nil
	case "reasoning":
		if !out.shown {
			for i, s := range item.Summary {
				o.think(index, place{"summary", int64(i)}, s.Text)
			}
			for i, c := range item.Content {
				o.think(index, place{"content", int64(i)}, c.Text)
			}
		}
		if item.EncryptedContent == "" && len(item.Content) == 0 {
			return nil // the service kept nothing and could not take it back
		}
	}
	return o.keep(item)
}

// keep yields an item as a part, so that it can go back.
func (o *outputs) keep(item responses.ResponseOutputItemUnion) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(item.RawJSON()), &members); err != nil {
		return fmt.Errorf("an item of type %q cannot be read: %w", item.Type, err)
	}
	part := inference.Part{Kind: inference.PartVendor, MediaType: itemType}
	for name, value := range members {
		if string(value) == "null" {
			delete(members, name) // what the service sends as null it does not take back
		}
	}
	if item.Type == "image_generation_call" && item.Result != "" {
		data, err := base64.StdEncoding.DecodeString(item.Result)
		if err != nil {
			return fmt.Errorf("an image is not base64: %w", err)
		}
		format := item.OutputFormat
		if format == "" {
			format = "png"
		}
		delete(members, "result")
		part = inference.Part{Kind: inference.PartImage, MediaType: "image/" + format, Data: inference.Bytes(data)}
	}
	text, err := inference.ToJSON(members)
	if err != nil {
		return err
	}
	if part.Extra, err = inference.ToJSON(kept{Calls: o.calls, Text: o.spoke, Item: json.RawMessage(text)}); err != nil {
		return err
	}
	o.x.say(inference.Chunk{Part: part})
	return nil
}

// end says what is known when the answer is over.
func (o *outputs) end(r *responses.Response) error {
	u := r.Usage
	last := inference.Chunk{Model: r.Model, Usage: inference.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CachedTokens: u.InputTokensDetails.CachedTokens, ReasoningTokens: u.OutputTokensDetails.ReasoningTokens,
	}}
	switch r.Status {
	case responses.ResponseStatusCompleted, "":
		last.Stop = inference.StopEnd
		if o.calls > 0 {
			last.Stop = inference.StopToolUse
		}
		if o.denied {
			last.Stop = inference.StopFiltered
		}
	case responses.ResponseStatusIncomplete:
		switch r.IncompleteDetails.Reason {
		case "max_output_tokens", "max_tokens":
			last.Stop = inference.StopMaxTokens
		case "content_filter":
			last.Stop = inference.StopFiltered
		default:
			last.Stop = inference.StopOther
		}
	default:
		o.x.say(last)
		code, message := string(r.Error.Code), r.Error.Message
		if message == "" {
			message = "the answer has the status " + string(r.Status)
		}
		return &complaint{code: code, message: message}
	}
	o.x.say(last)
	return nil
}
