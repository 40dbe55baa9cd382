package resilient

import (
	"iter"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// relay passes the streams of several attempts on to one consumer, as one answer.
type relay struct {
	yield func(inference.Chunk, error) bool
	// holds is true when everything but text, usage and the model's name waits in held for a good end.
	holds bool
	held  []inference.Chunk
	// text is what was passed on of it, and began whether anything was that is part of the answer.
	text  strings.Builder
	began bool
	// left is true when the consumer had enough.
	left bool
}

// walk passes a stream on to its end, without what is known of it, and returns what it said. If the consumer leaves,
// the stream ends there without an error.
func (y *relay) walk(stream iter.Seq2[inference.Chunk, error], known overlap) (inference.Response, error) {
	y.held = nil
	if stream == nil {
		return inference.Collect(nil)
	}
	return inference.Collect(func(collect func(inference.Chunk, error) bool) {
		for c, err := range stream {
			text, same := known.cut(c.Text)
			switch c.Text = text; {
			case err != nil:
				y.paid(c.Usage)
			case !same:
				y.paid(c.Usage)
				err = ErrDiverged
			default:
				y.pass(c)
			}
			if y.left || !collect(c, err) {
				return
			}
		}
		if known.whole && known.text != "" {
			collect(inference.Chunk{}, ErrDiverged)
		}
	})
}

// pass sends a chunk, or what is not held back of it, if only as a sign of life.
func (y *relay) pass(c inference.Chunk) {
	if y.holds {
		later := c
		later.Text, later.Usage, later.Model = "", inference.Usage{}, ""
		if later != (inference.Chunk{}) {
			y.held = append(y.held, later)
		}
		c = inference.Chunk{Text: c.Text, Usage: c.Usage, Model: c.Model}
	}
	y.send(c)
}

// paid sends the usage of a chunk that is no part of the answer.
func (y *relay) paid(u inference.Usage) {
	if u != (inference.Usage{}) {
		y.send(inference.Chunk{Usage: u})
	}
}

// release sends what was held back: it is part of the answer now.
func (y *relay) release() {
	for _, c := range y.held {
		y.send(c)
	}
	y.held = nil
}

// send sends a chunk unless the consumer has left.
func (y *relay) send(c inference.Chunk) {
	if y.left {
		return
	}
	y.left = !y.yield(c, nil)
	y.text.WriteString(c.Text)
	c.Usage, c.Model = inference.Usage{}, ""
	y.began = y.began || c != inference.Chunk{}
}

// end ends the consumer's stream, with err unless it is nil.
func (y *relay) end(err error) {
	if err != nil && !y.left {
		y.yield(inference.Chunk{}, err)
	}
}

// chunks yields a whole response piece by piece, for those who want a stream of a model that has none.
func chunks(r inference.Response) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		if !yield(inference.Chunk{Text: r.Message.Text, Usage: r.Usage, Stop: r.Stop, Model: r.Model}, nil) {
			return
		}
		for _, p := range r.Message.Parts {
			if !yield(inference.Chunk{Part: p}, nil) {
				return
			}
		}
		for i, c := range r.Message.ToolCalls {
			delta := inference.ToolCallDelta{Index: i, ID: c.ID, Name: c.Name, Args: string(c.Args)}
			if !yield(inference.Chunk{ToolCall: delta}, nil) {
				return
			}
		}
	}
}
