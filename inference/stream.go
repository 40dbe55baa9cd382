package inference

import (
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
	var a assembly
	var failure error
	for c, err := range stream {
		if err != nil {
			failure = err
			break
		}
		a.add(c)
	}
	return a.response(failure == nil), failure
}

type assembly struct {
	text, reasoning strings.Builder
	parts           []Part
	calls           map[int]*callPieces
	usage           Usage
	stop            StopReason
	model           string
}

type callPieces struct {
	id, name string
	args     strings.Builder
}

func (a *assembly) add(c Chunk) {
	a.text.WriteString(c.Text)
	a.reasoning.WriteString(c.Reasoning)
	if c.Part != (Part{}) {
		a.parts = append(a.parts, c.Part)
	}
	if d := c.ToolCall; d.ID != "" || d.Name != "" || d.Args != "" {
		a.call(d)
	}
	a.usage = a.usage.Add(c.Usage)
	a.stop = orElse(c.Stop, a.stop)
	a.model = orElse(c.Model, a.model)
}

func (a *assembly) call(d ToolCallDelta) {
	p := a.calls[d.Index]
	if p == nil {
		if a.calls == nil {
			a.calls = make(map[int]*callPieces)
		}
		p = new(callPieces)
		a.calls[d.Index] = p
	}
	p.id = orElse(d.ID, p.id)
	p.name = orElse(d.Name, p.name)
	p.args.WriteString(d.Args)
}

func (a *assembly) response(whole bool) Response {
	m := Assistant(a.text.String())
	if a.reasoning.Len() > 0 {
		m.Parts = append(m.Parts, Part{Kind: PartReasoning, Text: a.reasoning.String()})
	}
	m.Parts = append(m.Parts, a.parts...)
	for _, i := range slices.Sorted(maps.Keys(a.calls)) {
		p := a.calls[i]
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: p.id, Name: p.name, Args: JSON(p.args.String())})
	}
	stop := a.stop
	if whole && stop == "" {
		stop = StopEnd
		if len(m.ToolCalls) > 0 {
			stop = StopToolUse
		}
	}
	return Response{Message: m, Usage: a.usage, Stop: stop, Model: a.model}
}

func orElse[T ~string](v, other T) T {
	if v != "" {
		return v
	}
	return other
}
