package resilient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// cut is an answer of those texts that reached the maximum of tokens.
func cut(texts ...string) answer {
	return says(texts...).and(inference.Chunk{Stop: inference.StopMaxTokens})
}

func TestContinue(t *testing.T) {
	call := calls("look", `{"a":1}`)
	for name, c := range map[string]struct {
		layer   resilient.Continue
		answers []answer
		text    string
		stop    inference.StopReason
		asked   int
	}{
		"whole":                     {resilient.Continue{}, []answer{says("a")}, "a", inference.StopEnd, 1},
		"cut once":                  {resilient.Continue{}, []answer{cut("a"), says("b")}, "ab", inference.StopEnd, 2},
		"cut as often as allowed":   {resilient.Continue{}, []answer{cut("a"), cut("b"), cut("c"), says("d")}, "abcd", inference.StopEnd, 4},
		"cut too often":             {resilient.Continue{Times: 2}, []answer{cut("a"), cut("b"), cut("c"), says("d")}, "abc", inference.StopMaxTokens, 3},
		"cut with a call":           {resilient.Continue{}, []answer{cut("a").and(calls("look", `{"a"`)), says("b")}, "a", inference.StopMaxTokens, 1},
		"cut with a call later":     {resilient.Continue{}, []answer{cut("a"), cut("b").and(calls("look", "")), says("c")}, "ab", inference.StopMaxTokens, 2},
		"goes on with a call":       {resilient.Continue{}, []answer{cut("a"), says("b").and(call, inference.Chunk{Stop: inference.StopToolUse})}, "ab", inference.StopToolUse, 2},
		"no text":                   {resilient.Continue{}, []answer{cut().and(inference.Chunk{Reasoning: "hm"}), says("b")}, "", inference.StopMaxTokens, 1},
		"no more text":              {resilient.Continue{}, []answer{cut("a"), cut(), says("b")}, "a", inference.StopMaxTokens, 2},
		"filtered":                  {resilient.Continue{}, []answer{says("a").and(inference.Chunk{Stop: inference.StopFiltered}), says("b")}, "a", inference.StopFiltered, 1},
		"fails while it goes on":    {resilient.Continue{}, []answer{cut("a"), breaks(broken, "b"), says("c")}, "ab", inference.StopMaxTokens, 2},
		"prefill":                   {resilient.Continue{Prefill: true}, []answer{cut("a "), says(" b")}, "a b", inference.StopEnd, 2},
		"a failure leaves no calls": {resilient.Continue{}, []answer{cut("a"), breaks(broken, "b").and(call)}, "ab", inference.StopMaxTokens, 2},
	} {
		for way, ask := range ways {
			var answers []answer
			var paid int64
			for i, a := range c.answers {
				answers = append(answers, a.paid(1<<i))
				if i < c.asked {
					paid += 1 << i
				}
			}
			f, m := streaming(answers...)
			var told []resilient.WentOn
			c.layer.Observe = func(_ context.Context, w resilient.WentOn) { told = append(told, w) }
			resp, err := ask(t.Context(), wrap(t, m, c.layer), request("x"))
			require.NoError(t, err, "%s, %s", name, way)
			require.Equal(t, c.text, resp.Message.Text, "%s, %s", name, way)
			require.Equal(t, c.stop, resp.Stop, "%s, %s", name, way)
			require.Equal(t, c.asked, f.asked(), "%s, %s", name, way)
			require.Equal(t, paid, resp.Usage.OutputTokens, "%s, %s", name, way)
			require.Len(t, told, c.asked-1, "%s, %s", name, way)
			for i, w := range told {
				require.Equal(t, i+1, w.Time)
				require.Equal(t, c.answers[i+1].err, w.Err, "%s, %s", name, way)
			}
			if c.stop == inference.StopToolUse {
				require.Equal(t, []inference.ToolCall{{ID: "c-look", Name: "look", Args: `{"a":1}`}}, resp.Message.ToolCalls, way)
			}
			if name == "a failure leaves no calls" {
				require.Empty(t, resp.Message.ToolCalls, way)
			}
		}
	}
}

func TestWhatIsAskedToGoOn(t *testing.T) {
	x, part := inference.User("x"), inference.Part{Kind: "vendor", Text: "p"}
	so := inference.Assistant("so far ")
	so.Parts = []inference.Part{part}
	trimmed := so
	trimmed.Text = "so far"
	for name, c := range map[string]struct {
		layer resilient.Continue
		want  []inference.Message
	}{
		"ask":                {resilient.Continue{}, []inference.Message{x, so, inference.User(resilient.DefaultPrompt)}},
		"ask in other words": {resilient.Continue{Prompt: "more"}, []inference.Message{x, so, inference.User("more")}},
		"prefill":            {resilient.Continue{Prefill: true}, []inference.Message{x, trimmed}},
	} {
		for way, ask := range ways {
			f, m := streaming(cut("so ", "far ").and(inference.Chunk{Part: part}), says("more").and(inference.Chunk{Part: part}))
			resp, err := ask(t.Context(), wrap(t, m, c.layer), request("x"))
			require.NoError(t, err)
			require.Equal(t, c.want, f.requests[1].Messages, "%s, %s", name, way)
			require.Equal(t, []inference.Part{part, part}, resp.Message.Parts, "%s, %s", name, way)
		}
	}
}

func TestContinueFailsWhereTheFirstAnswerDoes(t *testing.T) {
	for way, ask := range ways {
		_, m := streaming(breaks(broken, "a").paid(3))
		resp, err := ask(t.Context(), wrap(t, m, resilient.Continue{}), request("x"))
		require.Equal(t, broken, err, way)
		require.EqualValues(t, 3, resp.Usage.OutputTokens, way)
	}
}

func TestContinueEndsWithTheContext(t *testing.T) {
	for way, ask := range ways {
		synctest.Test(t, func(t *testing.T) {
			f, m := streaming(cut("a"), slow(time.Hour, says("b")))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			resp, err := ask(ctx, wrap(t, m, resilient.Continue{}), request("x"))
			require.ErrorIs(t, err, context.DeadlineExceeded, way)
			require.Equal(t, "a", resp.Message.Text, way)
			require.Equal(t, 2, f.asked(), way)
		})
	}
}

// TestContinueTellsOneStopReason counts them, and leaves when a piece was cut but has more to say.
func TestContinueTellsOneStopReason(t *testing.T) {
	_, m := streaming(cut("a"), cut("b"), says("c"))
	var stops []inference.StopReason
	for c, err := range wrap(t, m, resilient.Continue{}).(inference.Streamer).Stream(t.Context(), request("x")) {
		require.NoError(t, err)
		if c.Stop != "" {
			stops = append(stops, c.Stop)
		}
	}
	require.Equal(t, []inference.StopReason{inference.StopEnd}, stops)

	f, m := streaming(cut("a"), cut("b").paid(1), says("c"))
	for c := range wrap(t, m, resilient.Continue{}).(inference.Streamer).Stream(t.Context(), request("x")) {
		if c.Usage.OutputTokens > 0 {
			break
		}
	}
	require.Equal(t, 2, f.asked())
}

// TestContinueStopsWhenTheConsumerLeaves has the consumer leave at each chunk.
func TestContinueStopsWhenTheConsumerLeaves(t *testing.T) {
	for most := range 4 {
		f, m := streaming(cut("a", "b"), cut("c"), says("d"))
		seen := ""
		for c, err := range wrap(t, m, resilient.Continue{}).(inference.Streamer).Stream(t.Context(), request("x")) {
			require.NoError(t, err)
			if seen += c.Text; len(seen) == most+1 {
				break
			}
		}
		require.Equal(t, "abcd"[:most+1], seen)
		require.Equal(t, []int{1, 1, 2, 3}[most], f.asked())
		require.Zero(t, f.underWay())
	}
}
