package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/ddd26017/fixpoint/inference"
)

// errCut is what a stream ends with that ends too early.
var errCut = errors.New("the stream ended before the answer did")

// message yields an answer that came in one piece.
func (x *exchange) message(m *sdk.Message) error {
	b := blocks{x: x, open: map[int64]*block{}}
	b.count(m.Usage.RawJSON())
	for i, content := range m.Content {
		if err := b.start(int64(i), content.Type, content.RawJSON()); err != nil {
			return err
		}
		if err := b.stop(int64(i)); err != nil {
			return err
		}
	}
	b.ended(m.StopReason, m.StopDetails)
	return b.end(m.Model)
}

// events yields a stream.
func (x *exchange) events(events *ssestream.Stream[sdk.MessageStreamEventUnion]) error {
	b := blocks{x: x, open: map[int64]*block{}}
	model := ""
	for !x.left && events.Next() {
		e := events.Current()
		var err error
		switch e.Type {
		case "message_start":
			model = e.Message.Model
			x.say(inference.Chunk{Model: model})
			b.count(e.Message.Usage.RawJSON())
		case "content_block_start":
			err = b.start(e.Index, e.ContentBlock.Type, e.ContentBlock.RawJSON())
		case "content_block_delta":
			b.delta(e.Index, e.AsContentBlockDelta().Delta)
		case "content_block_stop":
			err = b.stop(e.Index)
		case "message_delta":
			d := e.AsMessageDelta()
			b.count(d.Usage.RawJSON())
			b.ended(d.Delta.StopReason, d.Delta.StopDetails)
		case "message_stop":
			return b.end(model)
		case "error": // a compatible service that names no event
			return readComplaint([]byte(e.RawJSON()))
		}
		if err != nil {
			return err
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

// blocks follows the blocks of one answer.
type blocks struct {
	x    *exchange
	open map[int64]*block
	// text is how many bytes of text there were so far, and calls how many calls.
	text, calls int
	// apart is true when something other than text came after the last text, and thought when there was a thought.
	apart, thought bool
	counted        inference.Usage
	// fresh, put and read are the tokens of the input, by what the cache did with them.
	fresh, put, read int64
	reason           sdk.StopReason
	refusal          string
}

// block is one block, as far as it came.
type block struct {
	kind    string
	members map[string]json.RawMessage
	call    int
	// at is where in the answer it began.
	at kept
	// What came piece by piece, by the member that it belongs to.
	pieces    map[string]*bytes.Buffer
	citations []json.RawMessage
	// strange is true when a piece came that nobody knows, so that the block is not whole.
	strange bool
}

// start begins a block. What it has already is said.
func (b *blocks) start(index int64, kind, raw string) error {
	k := &block{kind: kind, at: kept{Text: b.text, Calls: b.calls}, pieces: map[string]*bytes.Buffer{}}
	if err := json.Unmarshal([]byte(raw), &k.members); err != nil {
		return fmt.Errorf("a block of type %q cannot be read: %w", kind, err)
	}
	b.open[index] = k
	var has struct {
		Text, Thinking, ID, Name string
		Input                    json.RawMessage
	}
	_ = json.Unmarshal([]byte(raw), &has) // what has another form is another block's
	switch kind {
	case "text":
		b.say(has.Text)
	case "thinking":
		b.think(k, has.Thinking)
		b.apart = true
	case "tool_use":
		k.call = b.calls
		b.calls++
		b.apart = true
		b.x.say(inference.Chunk{ToolCall: inference.ToolCallDelta{Index: k.call, ID: has.ID, Name: has.Name}})
		if input := string(bytes.TrimSpace(has.Input)); input != "{}" && input != "" {
			b.args(k, input)
		}
	default:
		b.apart = true
	}
	return nil
}

func (b *blocks) say(text string) {
	if text == "" {
		return
	}
	if b.text > 0 && b.apart {
		text = separator + text
	}
	b.apart = false
	b.text += len(text)
	b.x.say(inference.Chunk{Text: text})
}

func (b *blocks) think(k *block, text string) {
	if text == "" {
		return
	}
	shown := text
	if b.thought && k.pieces["thinking"] == nil {
		shown = separator + text // another thought
	}
	b.thought = true
	b.x.say(inference.Chunk{Reasoning: shown})
	k.add("thinking", text)
}

func (b *blocks) args(k *block, text string) {
	if text != "" {
		b.x.say(inference.Chunk{ToolCall: inference.ToolCallDelta{Index: k.call, Args: text}})
	}
}

// add appends to a member that comes piece by piece.
func (k *block) add(member, piece string) {
	if k.pieces[member] == nil {
		k.pieces[member] = &bytes.Buffer{}
	}
	k.pieces[member].WriteString(piece)
}

// delta takes a piece of a block.
func (b *blocks) delta(index int64, d sdk.RawContentBlockDeltaUnion) {
	k := b.open[index]
	if k == nil {
		return
	}
	switch d.Type {
	case "text_delta":
		if k.kind == "text" {
			b.say(d.Text)
		}
		k.add("text", d.Text)
	case "thinking_delta":
		b.think(k, d.Thinking)
	case "signature_delta":
		k.add("signature", d.Signature)
	case "input_json_delta":
		if k.kind == "tool_use" {
			b.args(k, d.PartialJSON)
		} else {
			k.add("input", d.PartialJSON)
		}
	case "citations_delta":
		k.citations = append(k.citations, json.RawMessage(d.Citation.RawJSON()))
	default:
		k.strange = true
	}
}

// stop ends a block, which is kept if it must go back as it was.
func (b *blocks) stop(index int64) error {
	k := b.open[index]
	delete(b.open, index)
	if k == nil || k.kind == "tool_use" || k.strange {
		return nil
	}
	for member, piece := range k.pieces {
		var text inference.JSON
		if member == "input" {
			if text = inference.JSON(piece.String()); !text.Valid() {
				return nil // the service could not take it back
			}
		} else {
			var begun string
			if member != "thinking" { // where the beginning is in the pieces
				_ = json.Unmarshal(k.members[member], &begun)
			}
			var err error
			if text, err = inference.ToJSON(begun + piece.String()); err != nil {
				return err
			}
		}
		k.members[member] = json.RawMessage(text)
	}
	if len(k.citations) > 0 {
		text, err := inference.ToJSON(k.citations)
		if err != nil {
			return err
		}
		k.members["citations"] = json.RawMessage(text)
	}
	switch k.kind {
	case "text":
		var cited []json.RawMessage
		if _ = json.Unmarshal(k.members["citations"], &cited); len(cited) == 0 {
			return nil
		}
	case "thinking":
		var signature string
		if _ = json.Unmarshal(k.members["signature"], &signature); signature == "" {
			return nil // it would be refused
		}
	}
	whole, err := inference.ToJSON(k.members)
	if err != nil {
		return err
	}
	k.at.Block = json.RawMessage(whole)
	if _, ok := k.at.read(); !ok {
		return nil // no block that the service could take back
	}
	extra, err := inference.ToJSON(k.at)
	if err != nil {
		return err
	}
	b.x.say(inference.Chunk{Part: inference.Part{Kind: inference.PartVendor, MediaType: blockType, Extra: extra}})
	return nil
}

// count yields what was not counted yet. The service sends running totals, and leaves out what did not change.
func (b *blocks) count(raw string) {
	var u struct {
		Input   *int64 `json:"input_tokens"`
		Written *int64 `json:"cache_creation_input_tokens"`
		Read    *int64 `json:"cache_read_input_tokens"`
		Output  *int64 `json:"output_tokens"`
		Details struct {
			Thinking *int64 `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	}
	if json.Unmarshal([]byte(raw), &u) != nil {
		return
	}
	now := b.counted
	for of, total := range map[*int64]*int64{
		&b.fresh: u.Input, &b.put: u.Written, &b.read: u.Read, &now.OutputTokens: u.Output, &now.ReasoningTokens: u.Details.Thinking,
	} {
		if total != nil {
			*of = *total
		}
	}
	now.InputTokens, now.CachedTokens = b.fresh+b.put+b.read, b.read
	b.x.say(inference.Chunk{Usage: inference.Usage{
		InputTokens:     now.InputTokens - b.counted.InputTokens,
		OutputTokens:    now.OutputTokens - b.counted.OutputTokens,
		CachedTokens:    now.CachedTokens - b.counted.CachedTokens,
		ReasoningTokens: now.ReasoningTokens - b.counted.ReasoningTokens,
	}})
	b.counted = now
}

func (b *blocks) ended(reason sdk.StopReason, details sdk.RefusalStopDetails) {
	if reason != "" {
		b.reason, b.refusal = reason, details.Explanation
	}
}

// end says what is known when the answer is over.
func (b *blocks) end(model string) error {
	last := inference.Chunk{Model: model}
	switch b.reason {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence, sdk.StopReasonToolUse, "":
		last.Stop = inference.StopEnd
		if b.calls > 0 {
			last.Stop = inference.StopToolUse
		}
	case sdk.StopReasonMaxTokens, "model_context_window_exceeded":
		last.Stop = inference.StopMaxTokens
	case sdk.StopReasonRefusal:
		last.Stop = inference.StopFiltered
		if b.text == 0 { // so that somebody learns why
			b.say(b.refusal)
		}
	default: // pause_turn, and what is to come
		last.Stop = inference.StopOther
	}
	b.x.say(last)
	return nil
}
