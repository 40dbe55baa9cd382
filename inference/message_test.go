package inference_test

import (
	"encoding/json"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

func fullRequest() inference.Request {
	call := inference.ToolCall{ID: "c1", Name: "read", Args: `{"path":"a"}`}
	answer := inference.Assistant("reading", call)
	answer.Parts = []inference.Part{
		{Kind: inference.PartReasoning, Text: "hm"},
		{Kind: inference.PartImage, MediaType: "image/png", Data: "\x89PNG\xff"},
		{Kind: inference.PartVendor, URI: "x:y", Extra: `{"signature":"s"}`},
	}
	return inference.Request{
		Model:  "m",
		System: "be brief",
		Messages: []inference.Message{
			inference.System("extra context"),
			inference.User("read a"),
			answer,
			inference.ToolMessage(inference.ToolResult{CallID: "c1", Name: "read", Content: "data", Details: `{"n":4}`, Outcome: inference.OutcomeOK}),
		},
		Tools: []inference.ToolSpec{{Name: "read", Description: "reads", Schema: `{"type":"object"}`, Kind: "read"}},
		Params: inference.Params{
			Temperature:     inference.Some(0.0),
			MaxTokens:       inference.Some(100),
			ReasoningEffort: inference.Some(inference.EffortLow),
			Extra:           inference.Extra{}.With("seed", "7"),
		},
	}
}

func TestRoundTrips(t *testing.T) {
	r := fullRequest()
	raw, err := inference.ToJSON(r)
	require.NoError(t, err)
	var back inference.Request
	require.NoError(t, raw.Decode(&back))
	require.Equal(t, r, back)

	resp := inference.Response{Message: r.Messages[2], Usage: inference.Usage{InputTokens: 3, OutputTokens: 2, CachedTokens: 1}, Stop: inference.StopToolUse, Model: "m-2"}
	raw, err = inference.ToJSON(resp)
	require.NoError(t, err)
	var respBack inference.Response
	require.NoError(t, raw.Decode(&respBack))
	require.Equal(t, resp, respBack)

	raw, err = inference.ToJSON(inference.Request{Model: "m"})
	require.NoError(t, err)
	require.Equal(t, inference.JSON(`{"model":"m"}`), raw, "what is not there is not written")
}

func TestBytesAreBase64(t *testing.T) {
	raw, err := inference.ToJSON(inference.Part{Kind: "image", Data: "\x00\x01"})
	require.NoError(t, err)
	require.Equal(t, inference.JSON(`{"kind":"image","data":"AAE="}`), raw)
	require.ErrorContains(t, inference.JSON(`{"kind":"image","data":"?"}`).Decode(new(inference.Part)), "not base64")
}

// Capability H3. A clone may be edited all over without the original noticing.
func TestCloneSharesNothing(t *testing.T) {
	original, untouched := fullRequest(), fullRequest()
	c := original.Clone()
	c.Model, c.System = "other", "other"
	c.Tools[0].Name = "write"
	c.Params.Extra = c.Params.Extra.With("seed", "8")
	c.Messages[2].ToolCalls[0].Args = `{}`
	c.Messages[2].Parts[0].Text = "changed"
	c.Messages[0] = inference.User("changed")
	c.Messages = append(c.Messages, inference.User("more"))
	require.Equal(t, untouched, original)

	resp := inference.Response{Message: fullRequest().Messages[2]}
	rc := resp.Clone()
	rc.Message.ToolCalls[0].Name = "x"
	rc.Message.Parts[0].Kind = "x"
	require.Equal(t, untouched.Messages[2], resp.Message)

	calls := []inference.ToolCall{{ID: "1"}}
	m := inference.Assistant("", calls...)
	calls[0].ID = "2"
	require.Equal(t, "1", m.ToolCalls[0].ID, "Assistant copies the calls")

	require.Equal(t, inference.Request{}, inference.Request{}.Clone(), "nil stays nil")
	require.Nil(t, inference.CloneMessages(nil))
}

func TestMalformedArgsSurviveSaving(t *testing.T) {
	for _, args := range []inference.JSON{`{"a":`, `not json`, `{"a":1} {"b":2}`, `{"a":1}`, ``} {
		call := inference.ToolCall{ID: "1", Name: "t", Args: args}
		raw, err := json.Marshal(inference.Assistant("", call))
		require.NoError(t, err, "a model's mistake must not make the thread impossible to save")
		var back inference.Message
		require.NoError(t, json.Unmarshal(raw, &back))
		require.Equal(t, call, back.ToolCalls[0])
	}
	err := json.Unmarshal([]byte(`{"id":"1","name":"t","args":{},"malformed_args":"x"}`), new(inference.ToolCall))
	require.ErrorContains(t, err, "keep one")
	require.Error(t, json.Unmarshal([]byte(`{"id":1}`), new(inference.ToolCall)))
}

func TestUsageDoesNotWrap(t *testing.T) {
	u := inference.Usage{InputTokens: 1, OutputTokens: 2, CachedTokens: 1}
	require.Equal(t, inference.Usage{InputTokens: 2, OutputTokens: 4, CachedTokens: 2}, u.Add(u))
	require.Equal(t, int64(3), u.Total())
	huge := inference.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}
	require.Equal(t, huge, huge.Add(huge))
	require.Equal(t, int64(math.MaxInt64), huge.Total())
	low := inference.Usage{InputTokens: math.MinInt64, OutputTokens: -1}
	require.Equal(t, int64(math.MinInt64), low.Total())
}

func TestValidateResponse(t *testing.T) {
	call := func(id, name string) inference.ToolCall {
		return inference.ToolCall{ID: id, Name: name, Args: `{not json`}
	}
	answer := func(calls ...inference.ToolCall) inference.Response {
		return inference.Response{Message: inference.Assistant("hi", calls...)}
	}
	withResult := answer()
	withResult.Message.Result.CallID = "1"
	negative := answer()
	negative.Usage.CachedTokens = -1

	vendor := answer()
	vendor.Message.Parts = []inference.Part{{Kind: inference.PartVendor, Extra: `{`}}

	require.NoError(t, inference.ValidateResponse(answer()))
	require.NoError(t, inference.ValidateResponse(answer(call("1", "a"), call("2", "a"))), "bad arguments are not the response's fault")

	cases := map[string]struct {
		r    inference.Response
		call int
		id   string
	}{
		"no role":       {inference.Response{}, -1, ""},
		"wrong role":    {inference.Response{Message: inference.User("x")}, -1, ""},
		"result":        {withResult, -1, ""},
		"usage":         {negative, -1, ""},
		"vendor part":   {vendor, -1, ""},
		"no id":         {answer(call("1", "a"), call("", "b")), 1, ""},
		"duplicate ids": {answer(call("1", "a"), call("2", "b"), call("1", "c")), 2, "1"},
		"no name":       {answer(call("1", "")), 0, "1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := inference.ValidateResponse(c.r)
			require.ErrorIs(t, err, inference.ErrBadResponse)
			var re *inference.ResponseError
			require.ErrorAs(t, err, &re)
			require.Equal(t, c.call, re.Call)
			require.Equal(t, c.id, re.CallID)
			require.ErrorContains(t, err, "inference: bad response: ")
		})
	}
}

func TestValidateResult(t *testing.T) {
	require.NoError(t, inference.ToolResult{Content: "x"}.Validate())
	require.NoError(t, inference.ToolResult{Details: `{}`, Outcome: inference.OutcomeNotRun}.Validate())
	for field, r := range map[inference.Field]inference.ToolResult{"details": {Details: `{`}, "outcome": {Outcome: "fine"}} {
		var fe *inference.FieldError
		require.ErrorAs(t, r.Validate(), &fe)
		require.Equal(t, field, fe.Field)
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range fullRequest().Messages {
		raw, err := inference.ToJSON(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(`{"role":"assistant","tool_calls":[{"id":"1","name":"t","malformed_args":"{"}]}`)
	f.Add(`{"role":"tool","result":null,"parts":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var m inference.Message
		if err := inference.JSON(text).Decode(&m); err != nil {
			require.ErrorIs(t, err, inference.ErrBadJSON)
			return
		}
		raw, err := inference.ToJSON(m)
		require.NoError(t, err, "whatever was read can be written")
		var back inference.Message
		require.NoError(t, raw.Decode(&back))
		again, err := inference.ToJSON(back)
		require.NoError(t, err)
		require.Equal(t, raw, again)
		if utf8.ValidString(text) {
			require.Equal(t, m.Text, back.Text)
			require.Equal(t, len(m.ToolCalls), len(back.ToolCalls))
		}
	})
}
