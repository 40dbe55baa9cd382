package inference_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

func stream(failure error, chunks ...inference.Chunk) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
		if failure != nil && yield(inference.Chunk{}, failure) {
			panic("walked on after the error")
		}
	}
}

func TestCollectPutsTheResponseTogether(t *testing.T) {
	delta := func(i int, id, name, args string) inference.Chunk {
		return inference.Chunk{ToolCall: inference.ToolCallDelta{Index: i, ID: id, Name: name, Args: args}}
	}
	signature := inference.Part{Kind: inference.PartVendor, Extra: `{"s":1}`}
	got, err := inference.Collect(stream(nil,
		inference.Chunk{Reasoning: "let ", Model: "m-1"},
		inference.Chunk{Reasoning: "me see"},
		inference.Chunk{Part: signature},
		inference.Chunk{Text: "I wi"},
		inference.Chunk{Text: "ll read"},
		inference.Chunk{},
		delta(1, "c2", "write", ""),
		delta(0, "c1", "read", `{"pa`),
		delta(1, "", "", `{}`),
		delta(0, "", "", `th":"a"}`),
		inference.Chunk{Usage: inference.Usage{InputTokens: 5}},
		inference.Chunk{Usage: inference.Usage{OutputTokens: 6}},
	))
	require.NoError(t, err)
	want := inference.Assistant("I will read",
		inference.ToolCall{ID: "c1", Name: "read", Args: `{"path":"a"}`},
		inference.ToolCall{ID: "c2", Name: "write", Args: `{}`})
	want.Parts = []inference.Part{{Kind: inference.PartReasoning, Text: "let me see"}, signature}
	require.Equal(t, inference.Response{
		Message: want, Usage: inference.Usage{InputTokens: 5, OutputTokens: 6}, Stop: inference.StopToolUse, Model: "m-1",
	}, got)
	require.NoError(t, inference.ValidateResponse(got))
}

func TestCollectEndings(t *testing.T) {
	got, err := inference.Collect(stream(nil, inference.Chunk{Text: "hi"}))
	require.NoError(t, err)
	require.Equal(t, inference.StopEnd, got.Stop)

	got, err = inference.Collect(stream(nil, inference.Chunk{Text: "hi", Stop: inference.StopMaxTokens}))
	require.NoError(t, err)
	require.Equal(t, inference.StopMaxTokens, got.Stop)

	broken := errors.New("connection lost")
	got, err = inference.Collect(stream(broken, inference.Chunk{Text: "half"}, inference.Chunk{ToolCall: inference.ToolCallDelta{Args: `{"a`}}))
	require.ErrorIs(t, err, broken)
	require.Equal(t, "half", got.Message.Text, "what had arrived comes with the error")
	require.Equal(t, inference.JSON(`{"a`), got.Message.ToolCalls[0].Args)
	require.Empty(t, got.Stop)

	_, err = inference.Collect(nil)
	require.ErrorIs(t, err, inference.ErrBadResponse)
}

func TestFuncAdapters(t *testing.T) {
	var tr inference.Transform = inference.TransformFunc(func(_ context.Context, r inference.Request) (inference.Request, error) {
		r.Model += "!"
		return r, nil
	})
	var m inference.Model = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		return inference.Response{Message: inference.Assistant(r.Model)}, nil
	})
	r, err := tr.Transform(t.Context(), inference.Request{Model: "m"})
	require.NoError(t, err)
	resp, err := m.Generate(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "m!", resp.Message.Text)
}
