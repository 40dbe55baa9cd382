package anthropic_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/anthropic"
	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var hello = []inference.Message{inference.User("Hello")}

func yes(w http.ResponseWriter, _ []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, wholeMessage(modeltest.Answer{Text: []string{"Yes."}, Stop: inference.StopEnd}).Body)
}

// sent asks once and returns the members of the request.
func sent(t *testing.T, o anthropic.Options, r inference.Request) map[string]json.RawMessage {
	t.Helper()
	m, asked := endpoint(t, o, yes)
	_, err := m.Generate(context.Background(), r)
	require.NoError(t, err)
	_, body := asked()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &members))
	return members
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	t.Setenv(anthropic.EnvKey, "")
	t.Setenv(anthropic.EnvBaseURL, "")
	for name, c := range map[string]struct {
		options anthropic.Options
		want    string
	}{
		"no key":           {anthropic.Options{}, "ANTHROPIC_API_KEY"},
		"no host":          {anthropic.Options{BaseURL: "localhost:8000"}, "Options.BaseURL"},
		"other scheme":     {anthropic.Options{BaseURL: "ftp://localhost"}, "Options.BaseURL"},
		"query":            {anthropic.Options{BaseURL: "http://localhost?version=1"}, "Options.BaseURL"},
		"key with newline": {anthropic.Options{Key: "k\n"}, "the key has"},
		"limit":            {anthropic.Options{Key: "k", MaxTokens: -1}, "Options.MaxTokens"},
		"cache":            {anthropic.Options{Key: "k", Cache: "2d"}, "Options.Cache"},
		"no effort":        {anthropic.Options{Key: "k", Budgets: map[inference.Effort]int{"none": 1}}, "Options.Budgets"},
		"other effort":     {anthropic.Options{Key: "k", Budgets: map[inference.Effort]int{"huge": 2048}}, "Options.Budgets"},
		"no budget":        {anthropic.Options{Key: "k", Budgets: map[inference.Effort]int{"low": 0}}, "Options.Budgets"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := anthropic.New(c.options)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "anthropic: ")
		})
	}
	t.Setenv(anthropic.EnvBaseURL, "nowhere")
	_, err := anthropic.New(anthropic.Options{})
	require.ErrorContains(t, err, anthropic.EnvBaseURL)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestEnvironment takes key and endpoint from the environment, and never a key of there for an endpoint of the options.
func TestEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "of-somebody")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Somebody: else")
	t.Setenv(anthropic.EnvKey, "from-the-environment")
	r := inference.Request{Model: "m", Messages: hello}
	for key, want := range map[string]string{"": "", "of-the-options": "of-the-options"} {
		m, asked := endpoint(t, anthropic.Options{Key: key}, yes) // with BaseURL
		_, err := m.Generate(context.Background(), r)
		require.NoError(t, err)
		header, _ := asked()
		require.Equal(t, want, header.Get("X-Api-Key"))
		require.Empty(t, header.Get("Authorization"))
		require.Empty(t, header.Get("X-Somebody"))
		require.Empty(t, header.Get("X-Stainless-Timeout"), "there is no time limit")
	}
	var got http.Header
	var address string
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		got, address = r.Header, r.URL.String()
		return nil, io.EOF
	})}
	for base, want := range map[string]string{"https://models.example/a/": "^https://models.example/a/v1/messages$", "": `^https://.*/v1/messages$`} {
		t.Setenv(anthropic.EnvBaseURL, base)
		m, err := anthropic.New(anthropic.Options{HTTPClient: client})
		require.NoError(t, err)
		_, err = m.Generate(context.Background(), r)
		require.ErrorIs(t, err, resilient.Transient)
		require.Equal(t, "from-the-environment", got.Get("X-Api-Key"))
		require.Regexp(t, want, address)
	}
}

func TestHeader(t *testing.T) {
	m, asked := endpoint(t, anthropic.Options{Header: http.Header{"Anthropic-Beta": {"a-1", "b-2"}, "Authorization": {"Bearer k"}}}, yes)
	_, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.NoError(t, err)
	header, _ := asked()
	require.Equal(t, []string{"a-1", "b-2"}, header["Anthropic-Beta"])
	require.Equal(t, "Bearer k", header.Get("Authorization"))
	require.NotEmpty(t, header.Get("Anthropic-Version"))
}

func TestNames(t *testing.T) {
	o := anthropic.Options{Model: "default", Names: map[string]string{"smart": "claude-large", "default": "claude-small"}}
	for request, want := range map[string]string{"": "claude-small", "smart": "claude-large", "claude-other": "claude-other"} {
		require.JSONEq(t, `"`+want+`"`, string(sent(t, o, inference.Request{Model: request, Messages: hello})["model"]))
	}
}

func TestOptionsOfRequests(t *testing.T) {
	r := inference.Request{Model: "m", Messages: hello, System: "Be brief."}
	got := sent(t, anthropic.Options{MaxTokens: 77, Cache: anthropic.CacheOneHour}, r)
	require.Equal(t, "77", string(got["max_tokens"]))
	require.JSONEq(t, `{"type":"ephemeral","ttl":"1h"}`, string(got["cache_control"]))
	require.JSONEq(t, `[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}]`, string(got["system"]))

	r.Params.Extra = inference.Extra{}.With("cache_control", "null")
	require.Equal(t, "null", string(sent(t, anthropic.Options{Cache: anthropic.CacheFiveMinutes}, r)["cache_control"]), "the request has the last word")

	r.Params = inference.Params{MaxTokens: inference.Some(200_000)}
	require.Equal(t, "200000", string(sent(t, anthropic.Options{MaxTokens: 77}, r)["max_tokens"]), "long answers may come in one piece")
}

// TestEffort: models that know no effort get a budget, and what the request says of thinking and output stays.
func TestEffort(t *testing.T) {
	budgets := anthropic.Options{Budgets: map[inference.Effort]int{inference.EffortLow: 1024}, Model: "claude-opus-4-6"}
	ask := func(effort inference.Effort, extra inference.Extra) inference.Request {
		return inference.Request{Model: "claude-opus-4-6", Messages: hello, Params: inference.Params{ReasoningEffort: inference.Some(effort), Extra: extra}}
	}
	got := sent(t, budgets, ask(inference.EffortLow, inference.Extra{}))
	require.JSONEq(t, `{"type":"enabled","budget_tokens":1024}`, string(got["thinking"]))
	require.NotContains(t, got, "output_config")
	got = sent(t, budgets, ask(inference.EffortNone, inference.Extra{}))
	require.JSONEq(t, `{"type":"disabled"}`, string(got["thinking"]))

	more := inference.Extra{}.With("output_config", `{"format":{"type":"json_schema","schema":{"b":1,"a":2}}}`).With("thinking", `{"type":"adaptive","display":"summarized"}`)
	got = sent(t, anthropic.Options{}, ask(inference.EffortHigh, more))
	require.JSONEq(t, `{"effort":"high","format":{"type":"json_schema","schema":{"b":1,"a":2}}}`, string(got["output_config"]))
	require.JSONEq(t, `{"type":"adaptive","display":"summarized"}`, string(got["thinking"]))
	got = sent(t, anthropic.Options{}, inference.Request{Model: "m", Messages: hello, Params: inference.Params{Extra: more}})
	require.JSONEq(t, `{"type":"adaptive","display":"summarized"}`, string(got["thinking"]))
	require.Contains(t, got, "output_config")

	for name, c := range map[string]struct {
		options anthropic.Options
		request inference.Request
		field   inference.Field
	}{
		"an effort without a budget":      {budgets, ask(inference.EffortHigh, inference.Extra{}), inference.FieldReasoningEffort},
		"a budget and thinking":           {budgets, ask(inference.EffortLow, more), "extra.thinking"},
		"no thinking, and thinking":       {anthropic.Options{}, ask(inference.EffortNone, more), "extra.thinking"},
		"two efforts":                     {anthropic.Options{}, ask(inference.EffortLow, inference.Extra{}.With("output_config", `{"effort":"high"}`)), "extra.output_config"},
		"an output_config that is a list": {anthropic.Options{}, ask(inference.EffortLow, inference.Extra{}.With("output_config", `[]`)), "extra.output_config"},
		"no list of tools":                {anthropic.Options{}, ask(inference.EffortLow, inference.Extra{}.With("tools", `{}`)), "extra.tools"},
		"another model":                   {anthropic.Options{}, ask(inference.EffortLow, inference.Extra{}.With("model", `"x"`)), "extra.model"},
		"no temperature":                  {anthropic.Options{}, ask(inference.EffortLow, inference.Extra{}.With("temperature", ``)), "extra.temperature"},
	} {
		t.Run(name, func(t *testing.T) {
			m, asked := endpoint(t, c.options, yes)
			_, err := m.Generate(context.Background(), c.request)
			var field *inference.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, c.field, field.Field)
			require.ErrorIs(t, err, resilient.BadRequest)
			header, _ := asked()
			require.Nil(t, header)
		})
	}
}

func TestTools(t *testing.T) {
	r := inference.Request{Model: "m", Messages: hello, Tools: []inference.ToolSpec{{Name: "f", Schema: `{"type":"object","properties":{"b":{},"a":{}}}`}}}
	r.Params.Extra = inference.Extra{}.With("tools", `[{"type":"web_search_20250305","name":"web_search"}]`).With("tool_choice", `{"type":"auto","disable_parallel_tool_use":true}`)
	got := sent(t, anthropic.Options{}, r)
	require.Equal(t, `[{"name":"f","input_schema":{"type":"object","properties":{"b":{},"a":{}}}},{"name":"web_search","type":"web_search_20250305"}]`,
		string(got["tools"]), "a schema keeps its order")
	require.JSONEq(t, `{"type":"auto","disable_parallel_tool_use":true}`, string(got["tool_choice"]))
}

// TestExtra: entries are sent in one order, whatever they are called.
func TestExtra(t *testing.T) {
	r := inference.Request{Model: "m", Messages: hello}
	for _, name := range []string{"z", "a.b|c", "0", `q"\`, "top_k", "a.b"} {
		r.Params.Extra = r.Params.Extra.With(name, `{"y":1,"x":null}`)
	}
	m, asked := endpoint(t, anthropic.Options{}, yes)
	var first []byte
	for range 10 {
		_, err := m.Generate(context.Background(), r)
		require.NoError(t, err)
		_, body := asked()
		if first == nil {
			first = body
		}
		require.Equal(t, string(first), string(body))
	}
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(first, &members))
	for name, value := range r.Params.Extra.All() {
		require.JSONEq(t, string(value), string(members[name]), name)
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	picture := inference.Part{Kind: inference.PartImage, Data: "x"}
	of := func(role inference.Role, p inference.Part) inference.Request {
		return inference.Request{Model: "m", Messages: []inference.Message{{Role: role, Parts: []inference.Part{p}}}}
	}
	for name, c := range map[string]struct {
		request inference.Request
		want    string
	}{
		"no model":            {inference.Request{Messages: hello}, "names no model"},
		"schema":              {inference.Request{Model: "m", Messages: hello, Tools: []inference.ToolSpec{{Name: "f", Schema: "[]"}}}, "tool f"},
		"parameter":           {inference.Request{Model: "m", Messages: hello, Params: inference.Params{TopP: inference.Some(2.0)}}, "top_p"},
		"an image of nothing": {of(inference.RoleUser, inference.Part{Kind: inference.PartImage}), "neither data nor a URI"},
		"an image of a model": {of(inference.RoleAssistant, picture), `"assistant"`},
		"an image of nobody":  {of(inference.RoleSystem, picture), `"system"`},
		"a sheet":             {of(inference.RoleUser, inference.Part{Kind: inference.PartFile, MediaType: "application/vnd.ms-excel", Data: "x"}), "vnd.ms-excel"},
		"no kept block":       {of(inference.RoleAssistant, inference.Part{Kind: inference.PartVendor, MediaType: "application/vnd.anthropic.messages.block+json", Extra: `{"block":7}`}), "vendor"},
	} {
		t.Run(name, func(t *testing.T) {
			m, asked := endpoint(t, anthropic.Options{}, yes)
			_, err := m.Generate(context.Background(), c.request)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, resilient.BadRequest)
			header, _ := asked()
			require.Nil(t, header)
		})
	}
}

// TestTurns: turns alternate, results stand at the beginning of theirs, and instructions where the service takes them.
func TestTurns(t *testing.T) {
	shot := inference.ToolMessage(inference.ToolResult{CallID: "1", Content: "a picture"})
	shot.Parts = []inference.Part{{Kind: inference.PartImage, Data: "\x89PNG\r\n\x1a\n"}}
	r := inference.Request{Model: "m", System: "Be brief.", Messages: []inference.Message{
		inference.System("Be kind."),
		inference.User("one"), inference.User("two"),
		inference.Assistant("", inference.ToolCall{ID: "1", Name: "f", Args: "[1]"}, inference.ToolCall{ID: "2", Name: "f"}),
		shot, inference.System("Mind the clock."), inference.ToolMessage(inference.ToolResult{CallID: "2", IsError: true}),
		inference.User("three"), inference.Assistant("so"), inference.Assistant("be it"), inference.System("Go on."),
	}}
	r.Messages[1].Parts = []inference.Part{{Kind: inference.PartFile, MediaType: "text/markdown; charset=utf-8", Data: "# A", Text: "a.md"}}
	const first = `{"role":"user","content":[
			{"type":"text","text":"one"},
			{"type":"document","title":"a.md","source":{"type":"text","media_type":"text/plain","data":"# A"}},
			{"type":"text","text":"two"}]},
		{"role":"assistant","content":[
			{"type":"tool_use","id":"1","name":"f","input":{"malformed_args":"[1]"}},
			{"type":"tool_use","id":"2","name":"f","input":{}}]},
		{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a picture"},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]},
			{"type":"tool_result","tool_use_id":"2","is_error":true,"content":[{"type":"text","text":"error"}]},`
	const last = `{"role":"assistant","content":[{"type":"text","text":"so"},{"type":"text","text":"be it"}]},
		{"role":"user","content":[{"type":"text","text":"<system>\nGo on.\n</system>"}]}`
	got := sent(t, anthropic.Options{}, r)
	require.JSONEq(t, `[{"type":"text","text":"Be brief."},{"type":"text","text":"Be kind."}]`, string(got["system"]))
	require.JSONEq(t, `[`+first+`{"type":"text","text":"<system>\nMind the clock.\n</system>"},{"type":"text","text":"three"}]},`+last+`]`, string(got["messages"]))
	got = sent(t, anthropic.Options{SystemMessages: true}, r)
	require.JSONEq(t, `[`+first+`{"type":"text","text":"three"}]},{"role":"system","content":[{"type":"text","text":"Mind the clock."}]},`+last+`]`, string(got["messages"]))
}

// TestChangedAnswers: what was kept of an answer still fits one that somebody changed.
func TestChangedAnswers(t *testing.T) {
	keep := func(extra inference.JSON) inference.Part {
		return inference.Part{Kind: inference.PartVendor, MediaType: "application/vnd.anthropic.messages.block+json", Extra: extra}
	}
	m := inference.Assistant("\u00e9 two", inference.ToolCall{ID: "1", Name: "f"})
	m.Parts = []inference.Part{
		keep(`{"text":-7,"calls":-7,"block":{"type":"redacted_thinking","data":"d"}}`),
		keep(`{"text":1,"block":{"type":"thinking","thinking":"a","signature":"s"}}`),
		keep(`{"text":2,"block":{"type":"text","text":"blue","citations":[{}]}}`),
		keep(`{"text":900,"calls":9,"block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`),
		{Kind: inference.PartText, Text: "more"},
	}
	got := sent(t, anthropic.Options{}, inference.Request{Model: "m", Messages: []inference.Message{m}})
	require.JSONEq(t, `[{"role":"assistant","content":[
		{"type":"redacted_thinking","data":"d"},
		{"type":"text","text":"é"},
		{"type":"thinking","thinking":"a","signature":"s"},
		{"type":"text","text":" two"},
		{"type":"tool_use","id":"1","name":"f","input":{}},
		{"type":"server_tool_use","id":"s","name":"web_search","input":{}},
		{"type":"text","text":"more"}]}]`, string(got["messages"]))
}

// TestRunningTotals: what a later count leaves out did not change, and what failed is paid for.
func TestRunningTotals(t *testing.T) {
	const begun = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":5,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":6,"output_tokens":9}}

`
	want := inference.Usage{InputTokens: 1106, CachedTokens: 1000, OutputTokens: 9}
	for end, fails := range map[string]bool{"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n": false, errorEvent("overloaded_error", "Busy"): true} {
		m, _ := endpoint(t, anthropic.Options{}, func(w http.ResponseWriter, _ []byte) { sendEvents(w, begun+end) })
		answer, err := inference.Collect(m.Stream(context.Background(), inference.Request{Model: "m", Messages: hello}))
		require.Equal(t, fails, err != nil)
		require.Equal(t, want, answer.Usage)
	}
}

// TestSecrets: a service that repeats what it does not accept tells nobody else.
func TestSecrets(t *testing.T) {
	o := anthropic.Options{Key: "the-key-itself", Header: http.Header{"Authorization": {"Bearer header-secret"}}}
	m, _ := endpoint(t, o, func(w http.ResponseWriter, _ []byte) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, failed(401, "authentication_error", "invalid: Bearer header-secret").Body)
	})
	_, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.ErrorIs(t, err, resilient.Auth)
	require.ErrorContains(t, err, "invalid: [key]")
}
