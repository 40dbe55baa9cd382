package compact_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/compact"
)

func digest(t *testing.T, in compact.Input) string {
	t.Helper()
	out, err := compact.Digest(t.Context(), in)
	require.NoError(t, err)
	return out.Text
}

var record = []inference.Message{
	inference.User("find\n the door"),
	inference.Assistant("I look.", inference.ToolCall{ID: "1", Name: "look", Args: `{"at": "hall"}`}),
	inference.ToolMessage(inference.ToolResult{CallID: "1", Name: "look", Content: strings.Repeat("wall ", 500)}),
	inference.ToolMessage(inference.ToolResult{CallID: "2", Name: "open", Content: "locked", IsError: true}),
	{Role: inference.RoleUser, Parts: []inference.Part{{Kind: "image", URI: "x"}}},
}

// The digest shortens tool results first, then other texts, and then it leaves out lines
// in the middle and says how many; notes are never left out.
func TestDigest(t *testing.T) {
	in := compact.Input{Former: "once upon a time", Messages: record, Notes: []string{"the key is\nblue"}, Tokens: 1000, BytesPerToken: 4}
	text := digest(t, in)
	require.Contains(t, text, "once upon a time\nuser: find the door\nassistant: I look. calls look {\"at\": \"hall\"}\nresult of look: wall wall")
	require.Contains(t, text, "1299 bytes left out")
	require.Contains(t, text, "result of open, an error: locked\nuser: and 1 parts\nthe key is blue")

	in.Tokens = 80
	text = digest(t, in)
	require.LessOrEqual(t, len(text), 320+1)
	require.Contains(t, text, "I look.")
	require.NotContains(t, text, strings.Repeat("wall ", 10))

	in.Tokens = 20
	require.Equal(t, "once upon a time\n... 4 lines left out ...\nuser: and 1 parts\nthe key is blue", digest(t, in))
	in.Tokens = 0
	require.Equal(t, "... 6 lines left out ...\nthe key is blue", digest(t, in))
}

// A digest is within its size but for notes and the line that tells what is left out, it
// is proper text, and made of one as a former summary again it stays so.
func FuzzDigest(f *testing.F) {
	f.Add("former\nlines", "text \xff ä", "content", uint16(10))
	f.Add("", strings.Repeat("äöü", 30), strings.Repeat("日本", 60), uint16(20))
	f.Fuzz(func(t *testing.T, former, text, content string, tokens uint16) {
		in := compact.Input{Former: former, Tokens: int(tokens), BytesPerToken: 4, Messages: []inference.Message{
			inference.User(text), inference.Assistant(text, inference.ToolCall{ID: "1", Name: "look", Args: inference.JSON(content)}),
			inference.ToolMessage(inference.ToolResult{CallID: "1", Name: "look", Content: content}),
		}}
		for range 3 {
			out := digest(t, in)
			require.Equal(t, out, digest(t, in))
			require.NotEmpty(t, out)
			require.LessOrEqual(t, len(out), max(4*int(tokens), 40))
			if utf8.ValidString(former) && utf8.ValidString(text) && utf8.ValidString(content) {
				require.True(t, utf8.ValidString(out))
			}
			in.Former = out
		}
	})
}

// A model is asked without tools, for a text made of a text, and told what matters.
func TestByModel(t *testing.T) {
	var asked inference.Request
	answer := inference.Response{Message: inference.Assistant("short"), Usage: inference.Usage{InputTokens: 9}}
	var fault error
	s := compact.ByModel(inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		asked = r
		return answer, fault
	}), "cheap")
	in := compact.Input{Former: "before", Messages: record, Notes: []string{"blue"}, Instructions: "names", Tokens: 70, BytesPerToken: 4}
	out, err := s.Summarize(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, compact.Output{Text: "short", Usage: inference.Usage{InputTokens: 9}}, out)
	require.Equal(t, "cheap", asked.Model)
	require.Equal(t, inference.Some(70), asked.Params.MaxTokens)
	require.Empty(t, asked.Tools)
	require.Contains(t, asked.System, "What matters above all: names")
	require.Len(t, asked.Messages, 1)
	for _, part := range []string{"before", "[user]\nfind\n the door", "calls look {\"at\": \"hall\"}", "[result of open, an error]\nlocked", "(image )", "[to be kept]\nblue"} {
		require.Contains(t, asked.Messages[0].Text, part)
	}

	answer.Stop = inference.StopMaxTokens
	out, err = s.Summarize(t.Context(), in)
	require.ErrorContains(t, err, "raise summary_tokens")
	require.Equal(t, int64(9), out.Usage.InputTokens)
	fault = errors.New("no line")
	_, err = s.Summarize(t.Context(), in)
	require.ErrorIs(t, err, fault)
}
