package resilient

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/ddd26017/fixpoint/inference"
)

// Continue is a [Layer] that has a model go on with an answer which was cut off since it reached its maximum of tokens
// ([inference.StopMaxTokens]), and joins the texts to one answer. The zero value is ready to use.
//
// An answer with a tool call is left as it is: the call itself may have been cut, and half a call must not become
// another one. So is one without any text, or to which no text was added, since asking again would spend the same tokens
// once more. When the model fails while it goes on, the answer stays as long as it got, cut off still; only the end of the context is an error.
//
// The joined answer has the text, the parts and the usage of all its pieces, and the rest of the last. In a stream text,
// usage and the model's name are passed on as they come; the rest follows when a piece is complete. Put Continue around
// a [Retry], not into it: what is retried is then one piece and not all.
type Continue struct {
	// Times is how often a model is asked to go on, at most, for one answer. The default is 3.
	Times int
	// Prefill has the text so far sent as the last message, for the model to go on with as if it had never stopped. Not
	// all services can do so. By default a user's message behind it asks to go on.
	Prefill bool
	// Prompt is that message; "" means DefaultPrompt.
	Prompt string
	// Observe, if not nil, is told each time that a model went on or failed to. It may be called by many goroutines at
	// once.
	Observe func(ctx context.Context, w WentOn)
}

// WentOn is one time that a model was asked to go on with an answer.
type WentOn struct {
	// Model is the model that was asked.
	Model string
	// Time is the number, from 1.
	Time int
	// Added is how much text that added, in bytes.
	Added int
	// Err is why it did not, or not for long.
	Err error
}

// Validate implements [Layer].
func (c Continue) Validate() error {
	return check("Continue",
		field{"Times", c.Times >= 0, "0 (the default) or more"},
		field{"Prompt", !c.Prefill || c.Prompt == "", "empty with Prefill"},
	)
}

func (c Continue) wrap(m inference.Model) inference.Model {
	c.Times = cmp.Or(c.Times, 3)
	if !c.Prefill {
		c.Prompt = cmp.Or(c.Prompt, DefaultPrompt)
	}
	return around(m, func(ctx context.Context, r inference.Request) (inference.Response, error) {
		ask := func(r inference.Request, known overlap) (inference.Response, error) {
			resp, err := m.Generate(ctx, r)
			resp.Message.Text, _ = known.cut(resp.Message.Text)
			return resp, err
		}
		resp, err := ask(r.Clone(), overlap{})
		if err != nil {
			return resp, err
		}
		return c.goOn(ctx, r, resp, ask)
	}, func(s inference.Streamer) streamFunc {
		return func(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
			return func(yield func(inference.Chunk, error) bool) { c.stream(ctx, s, r, yield) }
		}
	})
}

func (c Continue) stream(ctx context.Context, s inference.Streamer, r inference.Request, yield func(inference.Chunk, error) bool) {
	y := relay{yield: yield, holds: true}
	ask := func(r inference.Request, known overlap) (inference.Response, error) {
		resp, err := y.walk(s.Stream(ctx, r), known)
		if err == nil {
			for i := range y.held {
				y.held[i].Stop = "" // it is not the end yet
			}
			y.release()
		}
		if y.left {
			resp.Stop = "" // whatever it was, nobody wants more
		}
		return resp, err
	}
	resp, err := ask(r.Clone(), overlap{})
	if err == nil && !y.left {
		resp, err = c.goOn(ctx, r, resp, ask)
	}
	if err == nil {
		y.send(inference.Chunk{Stop: resp.Stop})
	}
	y.end(err)
}

// goOn asks for more of the answer so far as long as that is cut off.
func (c Continue) goOn(ctx context.Context, r inference.Request, all inference.Response, ask func(inference.Request, overlap) (inference.Response, error)) (inference.Response, error) {
	progress := all.Message.Text != ""
	for n := 1; n <= c.Times && progress && all.Stop == inference.StopMaxTokens && len(all.Message.ToolCalls) == 0; n++ {
		req, known := goOn(r.Clone(), all.Message.Clone(), c.Prompt)
		next, err := ask(req, known)
		if c.Observe != nil {
			c.Observe(ctx, WentOn{Model: r.Model, Time: n, Added: len(next.Message.Text), Err: err})
		}
		progress = next.Message.Text != ""
		all.Message.Text += next.Message.Text
		all.Usage = all.Usage.Add(next.Usage)
		if err != nil {
			if ctx.Err() == nil {
				err = nil
			}
			return all, err
		}
		all.Message.Parts = slices.Concat(all.Message.Parts, next.Message.Parts)
		all.Message.ToolCalls = next.Message.ToolCalls
		all.Stop, all.Model = next.Stop, cmp.Or(next.Model, all.Model)
	}
	return all, nil
}
