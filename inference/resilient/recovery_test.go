package resilient_test

import (
	"context"
	"strings"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

func recovering(how resilient.How) resilient.Retry {
	return resilient.Retry{Recovery: resilient.Recovery{How: how}}
}

var broken = failure(resilient.Transient)

func TestABrokenStream(t *testing.T) {
	for name, c := range map[string]struct {
		how     resilient.How
		answers []answer
		want    string
		err     error
		asked   int
	}{
		"nothing was passed on":         {resilient.Fail, []answer{breaks(broken), says("a", "b")}, "ab", nil, 2},
		"text was passed on":            {resilient.Fail, []answer{breaks(broken, "a"), says("a", "b")}, "a", broken, 1},
		"repeated":                      {resilient.Repeat, []answer{breaks(broken, "a", "bc"), says("ab", "cd", "e")}, "abcde", nil, 2},
		"repeated, and nothing missing": {resilient.Repeat, []answer{breaks(broken, "ab"), says("ab")}, "ab", nil, 2},
		"repeated twice":                {resilient.Repeat, []answer{breaks(broken, "ab"), breaks(broken, "a", "bc"), says("abcd")}, "abcd", nil, 3},
		"repeated differently":          {resilient.Repeat, []answer{breaks(broken, "ab"), says("a", "xyz")}, "ab", resilient.ErrDiverged, 2},
		"repeated, but shorter":         {resilient.Repeat, []answer{breaks(broken, "ab"), says("a")}, "ab", resilient.ErrDiverged, 2},
		"repeated, and broken earlier":  {resilient.Repeat, []answer{breaks(broken, "ab"), breaks(broken, "a"), says("abc")}, "abc", nil, 3},
		"gone on with":                  {resilient.Prefill, []answer{breaks(broken, "a", "b"), says("c", "d")}, "abcd", nil, 2},
		"gone on with twice":            {resilient.Prefill, []answer{breaks(broken, "a"), breaks(broken, "b"), says("c")}, "abc", nil, 3},
		"gone on with, white space":     {resilient.Prefill, []answer{breaks(broken, "a \n"), says(" ", "\n", " b")}, "a \n b", nil, 2},
		"gone on with, less of it":      {resilient.Prefill, []answer{breaks(broken, "a \n"), says("b")}, "a \nb", nil, 2},
		"gone on with, other of it":     {resilient.Prefill, []answer{breaks(broken, "a \n"), says(" b")}, "a \nb", nil, 2},
		"gone on with, and later":       {resilient.Prefill, []answer{breaks(broken, "a \n"), says(" b", "\nc")}, "a \nb\nc", nil, 2},
		"asked to go on":                {resilient.Ask, []answer{breaks(broken, "a "), says(" b")}, "a  b", nil, 2},
		"too often":                     {resilient.Ask, []answer{breaks(broken, "a"), breaks(broken, "b"), breaks(broken, "c"), breaks(broken, "d")}, "abcd", broken, 4},
		"a failure that stays":          {resilient.Ask, []answer{breaks(failure(resilient.Auth), "a"), says("b")}, "a", resilient.Auth, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, m := streaming(c.answers...)
			resp, err := collect(t.Context(), wrap(t, m, recovering(c.how)), request("x"))
			require.ErrorIs(t, err, c.err, name)
			require.Equal(t, c.want, resp.Message.Text, name)
			require.Equal(t, c.asked, f.asked(), name)
			if c.err == resilient.ErrDiverged {
				require.ErrorIs(t, err, broken, "%s: and what broke it", name)
			}
		})
	}
}

func TestWhatIsAskedAfterABrokenStream(t *testing.T) {
	x := inference.User("x")
	for name, c := range map[string]struct {
		recovery resilient.Recovery
		text     string
		want     []inference.Message
	}{
		"repeat":               {resilient.Recovery{How: resilient.Repeat}, "so far ", []inference.Message{x}},
		"prefill":              {resilient.Recovery{How: resilient.Prefill}, "so far \n", []inference.Message{x, inference.Assistant("so far")}},
		"prefill, white space": {resilient.Recovery{How: resilient.Prefill}, "\n", []inference.Message{x}},
		"ask":                  {resilient.Recovery{How: resilient.Ask}, "so far ", []inference.Message{x, inference.Assistant("so far "), inference.User(resilient.DefaultPrompt)}},
		"ask in other words":   {resilient.Recovery{How: resilient.Ask, Prompt: "go on"}, "so far", []inference.Message{x, inference.Assistant("so far"), inference.User("go on")}},
		"ask, no text":         {resilient.Recovery{How: resilient.Ask}, "", []inference.Message{x}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told []int
			layer := resilient.Retry{Recovery: c.recovery, Observe: func(_ context.Context, f resilient.Failed) { told = append(told, f.Passed) }}
			f, m := streaming(breaks(broken, c.text), says(c.text, "more"))
			_, err := collect(t.Context(), wrap(t, m, layer), request("x"))
			require.NoError(t, err, name)
			require.Equal(t, c.want, f.requests[1].Messages, name)
			require.Equal(t, []int{len(c.text)}, told, name)
		})
	}
}

// TestHalfACallIsNeverPassedOn breaks streams in mid call, among reasoning and parts. What reaches the consumer is
// what came with the stream that ended well.
func TestHalfACallIsNeverPassedOn(t *testing.T) {
	half := breaks(broken, "I will ").and(
		inference.Chunk{Reasoning: "hm"}, inference.Chunk{Part: inference.Part{Kind: "vendor", Text: "half"}},
		calls("wipe", `{"path":`), inference.Chunk{Stop: inference.StopOther, Model: "m-1"},
	).paid(5)
	whole := says("I will ", "look").and(
		inference.Chunk{Reasoning: "aha"}, inference.Chunk{Part: inference.Part{Kind: "vendor", Text: "whole"}},
		calls("look", `{"path":`), calls("look", `"a"}`), inference.Chunk{Stop: inference.StopToolUse, Model: "m-1"},
	).paid(7)
	for _, how := range []resilient.How{resilient.Repeat, resilient.Prefill, resilient.Ask} {
		synctest.Test(t, func(t *testing.T) {
			_, m := streaming(half, whole)
			m = wrap(t, m, recovering(how))
			resp, err := collect(t.Context(), m, request("x"))
			require.NoError(t, err)
			require.Equal(t, []inference.ToolCall{{ID: "c-look", Name: "look", Args: `{"path":"a"}`}}, resp.Message.ToolCalls)
			require.Equal(t, []inference.Part{{Kind: inference.PartReasoning, Text: "aha"}, {Kind: "vendor", Text: "whole"}}, resp.Message.Parts)
			require.Equal(t, inference.StopToolUse, resp.Stop)
			require.EqualValues(t, 12, resp.Usage.OutputTokens)

			_, m = streaming(half, half, half, half)
			resp, err = collect(t.Context(), wrap(t, m, recovering(how)), request("x"))
			require.ErrorIs(t, err, broken)
			require.Empty(t, resp.Message.ToolCalls)
			require.EqualValues(t, 20, resp.Usage.OutputTokens)
		})
	}
	// Without recovery pieces are passed on as they come; the error tells not to use them.
	_, m := streaming(half, whole)
	resp, err := collect(t.Context(), wrap(t, m, resilient.Retry{}), request("x"))
	require.ErrorIs(t, err, broken)
	require.Equal(t, inference.JSON(`{"path":`), resp.Message.ToolCalls[0].Args)
}

// TestRepeatJoinsWithoutASeam breaks one text at random places, in random pieces: the whole text comes, once.
func TestRepeatJoinsWithoutASeam(t *testing.T) {
	joins := func(text string, breaksAt []uint8, size uint8) bool {
		text += "." // not empty
		pieces := func(text string) (all []string) {
			for n := int(size%7) + 1; len(text) > 0; text = text[min(n, len(text)):] {
				all = append(all, text[:min(n, len(text))])
			}
			return all
		}
		var answers []answer
		for _, at := range breaksAt[:min(len(breaksAt), 8)] {
			answers = append(answers, breaks(broken, pieces(text[:int(at)%(len(text)+1)])...))
		}
		_, m := streaming(append(answers, says(pieces(text)...))...)
		layer := recovering(resilient.Repeat)
		layer.Attempts, layer.Sleep = 9, func(context.Context, time.Duration) error { return nil }
		var got strings.Builder
		for c, err := range wrap(t, m, layer).(inference.Streamer).Stream(t.Context(), request("x")) {
			if err != nil {
				return false
			}
			got.WriteString(c.Text)
		}
		return got.String() == text
	}
	require.NoError(t, quick.Check(joins, &quick.Config{MaxCount: 1000}))
}
