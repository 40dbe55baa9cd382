package inference

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Chunk is one piece of a streamed response. Every field adds to the response; the zero chunk adds nothing. It is
// comparable.
type Chunk struct {
	Text string `json:"text,omitempty"`
	// Reasoning is thinking aloud. It ends up in one part of kind [PartReasoning].
	Reasoning string `json:"reasoning,omitempty"`
	// Part is a whole part.
	Part     Part          `json:"part,omitzero"`
	ToolCall ToolCallDelta `json:"tool_call,omitzero"`
	// Usage is added to what came before; an adapter whose vendor sends running totals sends the difference.
	Usage Usage      `json:"usage,omitzero"`
	Stop  StopReason `json:"stop,omitempty"`
	Model string     `json:"model,omitempty"`
}

// ToolCallDelta is a piece of one tool call. Pieces with the same Index belong together: ID and Name are given once,
// Args is appended.
type ToolCallDelta struct {
	Index int    `json:"index"`
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Args  string `json:"args,omitempty"`
}

// Collect walks a stream and puts the response together. Tool calls are in order of their index. At the first error
// it stops and returns that error with the part of the response that had arrived, whose stop reason is then empty
// unless the model gave one. A stream that ends without a reason gets [StopToolUse] if it has tool calls, else
// [StopEnd]. A nil stream is an [ErrBadResponse].
func Collect(stream iter.Seq2[Chunk, error]) (Response, error) {
	if stream == nil {
		return Response{}, &ResponseError{Call: -1, Reason: "the model returned a nil stream"}
	}
	var r Response
	var failure error
	var text, reasoning strings.Builder
	var parts []Part
	calls := map[int]*callPieces{}
	for c, err := range stream {
		if err != nil {
			failure = err
			break
		}
		text.WriteString(c.Text)
		reasoning.WriteString(c.Reasoning)
		if c.Part != (Part{}) {
			parts = append(parts, c.Part)
		}
		if d := c.ToolCall; d != (ToolCallDelta{Index: d.Index}) {
			if calls[d.Index] == nil {
				calls[d.Index] = new(callPieces)
			}
			p := calls[d.Index]
			p.ID = cmp.Or(d.ID, p.ID)
			p.Name = cmp.Or(d.Name, p.Name)
			p.args.WriteString(d.Args)
		}
		r.Usage = r.Usage.Add(c.Usage)
		r.Stop = cmp.Or(c.Stop, r.Stop)
		r.Model = cmp.Or(c.Model, r.Model)
	}
	r.Message = Assistant(text.String())
	if reasoning.Len() > 0 {
		parts = slices.Insert(parts, 0, Part{Kind: PartReasoning, Text: reasoning.String()})
	}
	r.Message.Parts = parts
	end := StopEnd
	for _, i := range slices.Sorted(maps.Keys(calls)) {
		p := calls[i]
		p.Args = JSON(p.args.String())
		r.Message.ToolCalls = append(r.Message.ToolCalls, p.ToolCall)
		end = StopToolUse
	}
	if failure == nil {
		r.Stop = cmp.Or(r.Stop, end)
	}
	return r, failure
}

// callPieces is a tool call of which more may come.
type callPieces struct {
	ToolCall
	args strings.Builder
}
