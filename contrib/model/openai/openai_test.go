package openai_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/contrib/model/openai"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var hello = []inference.Message{inference.User("Hello")}

func yes(w http.ResponseWriter, _ []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, wholeResponse(modeltest.Answer{Text: []string{"Yes."}, Stop: inference.StopEnd}).Body)
}

func yesChat(w http.ResponseWriter, _ []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, wholeCompletion(modeltest.Answer{Text: []string{"Yes."}, Stop: inference.StopEnd}).Body)
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	t.Setenv(openai.EnvKey, "")
	t.Setenv(openai.EnvBaseURL, "")
	for name, c := range map[string]struct {
		options openai.Options
		want    string
	}{
		"no key":           {openai.Options{}, "OPENAI_API_KEY"},
		"protocol":         {openai.Options{Key: "k", API: "grpc"}, "chat_completions"},
		"no host":          {openai.Options{BaseURL: "localhost:8000/v1"}, "Options.BaseURL"},
		"other scheme":     {openai.Options{BaseURL: "ftp://localhost/v1"}, "Options.BaseURL"},
		"query":            {openai.Options{BaseURL: "http://localhost/v1?version=1"}, "Options.BaseURL"},
		"key with newline": {openai.Options{Key: "k\n"}, "the key has"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openai.New(c.options)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "openai: ")
		})
	}
	t.Setenv(openai.EnvBaseURL, "nowhere")
	_, err := openai.New(openai.Options{})
	require.ErrorContains(t, err, openai.EnvBaseURL)
}

// TestEnvironment takes key and endpoint from the environment, and never a key of there for an endpoint of the options.
func TestEnvironment(t *testing.T) {
	t.Setenv("OPENAI_ORG_ID", "somebody")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Somebody: else")
	t.Setenv(openai.EnvKey, "from-the-environment")
	m, asked := endpoint(t, openai.Options{}, yes) // with BaseURL
	_, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.NoError(t, err)
	header, _ := asked()
	require.Empty(t, header.Get("Authorization"))
	require.Empty(t, header.Get("OpenAI-Organization"))
	require.Empty(t, header.Get("X-Somebody"))

	m, asked = endpoint(t, openai.Options{Key: "of-the-options"}, yes)
	_, err = m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.NoError(t, err)
	header, _ = asked()
	require.Equal(t, "Bearer of-the-options", header.Get("Authorization"))

	var got http.Header
	var path string
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		got, path = r.Header, r.URL.String()
		return nil, io.EOF
	})}
	t.Setenv(openai.EnvBaseURL, "https://models.example/v1")
	m, err = openai.New(openai.Options{HTTPClient: client})
	require.NoError(t, err)
	_, err = m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.ErrorIs(t, err, resilient.Transient)
	require.Equal(t, "Bearer from-the-environment", got.Get("Authorization"))
	require.Equal(t, "https://models.example/v1/responses", path)

	t.Setenv(openai.EnvBaseURL, "")
	m, err = openai.New(openai.Options{HTTPClient: client})
	require.NoError(t, err)
	_, err = m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.ErrorIs(t, err, resilient.Transient)
	require.Regexp(t, `^https://.*/v1/responses$`, path)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestHeader(t *testing.T) {
	m, asked := endpoint(t, openai.Options{Header: http.Header{"Api-Key": {"k"}, "X-Two": {"1", "2"}}}, yes)
	_, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.NoError(t, err)
	header, _ := asked()
	require.Equal(t, "k", header.Get("Api-Key"))
	require.Equal(t, []string{"1", "2"}, header["X-Two"])
}

// TestSecretsOfHeaders: a key that is sent in a header of its own is in no error either.
func TestSecretsOfHeaders(t *testing.T) {
	m, _ := endpoint(t, openai.Options{Key: "none", Header: http.Header{"Api-Key": {"azure-secret"}, "OpenAI-Project": {"proj_12345"}}},
		func(w http.ResponseWriter, _ []byte) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"none such: azure-secret of proj_12345"}}`)
		})
	_, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.ErrorIs(t, err, resilient.Auth)
	require.ErrorContains(t, err, "none such: [key] of proj_12345")
}

func TestNames(t *testing.T) {
	m, asked := endpoint(t, openai.Options{Model: "default", Names: map[string]string{"smart": "gpt-large", "default": "gpt-small"}}, yes)
	for request, want := range map[string]string{"": "gpt-small", "smart": "gpt-large", "gpt-other": "gpt-other"} {
		_, err := m.Generate(context.Background(), inference.Request{Model: request, Messages: hello})
		require.NoError(t, err)
		_, body := asked()
		var sent struct{ Model string }
		require.NoError(t, json.Unmarshal(body, &sent))
		require.Equal(t, want, sent.Model)
	}
	m, _ = endpoint(t, openai.Options{}, yes)
	_, err := m.Generate(context.Background(), inference.Request{Messages: hello})
	require.ErrorContains(t, err, "names no model")
}

func TestOptionsOfRequests(t *testing.T) {
	r := inference.Request{Model: "m", Messages: hello, Tools: []inference.ToolSpec{{Name: "f", Schema: `{"type":"object","properties":{"b":{},"a":{}}}`}}}
	r.Params.MaxTokens = inference.Some(9)
	m, asked := endpoint(t, openai.Options{API: openai.ChatCompletions, OldMaxTokens: true, Strict: true}, yesChat)
	_, err := m.Generate(context.Background(), r)
	require.NoError(t, err)
	_, body := asked()
	require.Contains(t, string(body), `"max_tokens":9`)
	require.NotContains(t, string(body), "max_completion_tokens")
	require.Contains(t, string(body), `"strict":true`)
	require.Contains(t, string(body), `"properties":{"b":{},"a":{}}`, "a schema keeps its order")
}

// TestExtra: what would contradict the request is refused, and what belongs together is joined.
func TestExtra(t *testing.T) {
	for _, api := range []openai.API{openai.Responses, openai.ChatCompletions} {
		handler := yes
		if api == openai.ChatCompletions {
			handler = yesChat
		}
		m, asked := endpoint(t, openai.Options{API: api}, handler)
		ask := func(o inference.Override) (map[string]json.RawMessage, error) {
			_, err := m.Generate(context.Background(), o.Apply(inference.Request{Model: "m", Messages: hello, Tools: []inference.ToolSpec{{Name: "f"}}}))
			_, body := asked()
			var sent map[string]json.RawMessage
			if err == nil {
				require.NoError(t, json.Unmarshal(body, &sent))
			}
			return sent, err
		}
		for _, name := range []string{"model", "stream", "temperature", "top_p"} {
			_, err := ask(inference.Override{Extra: inference.Extra{}.With(name, "1")})
			var field *inference.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, inference.ExtraField(name), field.Field)
			require.ErrorIs(t, err, resilient.BadRequest)
		}
		_, err := ask(inference.Override{Extra: inference.Extra{}.With("tools", "{}")})
		require.ErrorContains(t, err, "extra.tools")

		sent, err := ask(inference.Override{Extra: inference.Extra{}.
			With("tools", `[{"type":"web_search"}]`).With("a.b|c", "1").With("store", "true").With("parallel_tool_calls", "false")})
		require.NoError(t, err)
		var tools []map[string]any
		require.NoError(t, json.Unmarshal(sent["tools"], &tools))
		require.Len(t, tools, 2)
		require.Equal(t, "web_search", tools[1]["type"])
		require.Equal(t, "1", string(sent["a.b|c"]))
		require.Equal(t, "true", string(sent["store"]))
		require.Equal(t, "false", string(sent["parallel_tool_calls"]))
		require.NotContains(t, sent, "include", "models that do not think refuse it")

		if api == openai.Responses {
			summary := inference.Override{ReasoningEffort: inference.Some(inference.EffortHigh), Extra: inference.Extra{}.With("reasoning", `{"summary":"auto"}`)}
			sent, err := ask(summary)
			require.NoError(t, err)
			require.JSONEq(t, `{"summary":"auto","effort":"high"}`, string(sent["reasoning"]))
			require.JSONEq(t, `["reasoning.encrypted_content"]`, string(sent["include"]))
			for _, bad := range []inference.JSON{`{"effort":"low"}`, `7`, ``} {
				summary.Extra = summary.Extra.With("reasoning", bad)
				_, err = ask(summary)
				require.ErrorContains(t, err, "extra.reasoning")
			}
		}
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	picture := inference.Part{Kind: inference.PartImage, Data: "x"}
	for name, c := range map[string]struct {
		request inference.Request
		want    string
	}{
		"schema":               {inference.Request{Messages: hello, Tools: []inference.ToolSpec{{Name: "f", Schema: "[]"}}}, "tool f"},
		"parameter":            {inference.Request{Messages: hello, Params: inference.Params{TopP: inference.Some(2.0)}}, "top_p"},
		"an image of nothing":  {inference.Request{Messages: []inference.Message{{Role: inference.RoleUser, Parts: []inference.Part{{Kind: inference.PartImage}}}}}, "neither data nor a URI"},
		"an image of a model":  {inference.Request{Messages: []inference.Message{{Role: inference.RoleAssistant, Parts: []inference.Part{picture}}}}, `"assistant"`},
		"of another adapter's": {inference.Request{Messages: []inference.Message{{Role: inference.RoleAssistant, Parts: []inference.Part{{Kind: inference.PartImage, Data: "x", Extra: `{"sig":1}`}}}}}, `"assistant"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, api := range []openai.API{openai.Responses, openai.ChatCompletions} {
				m, asked := endpoint(t, openai.Options{API: api, Model: "m"}, yes)
				_, err := m.Generate(context.Background(), c.request)
				require.ErrorContains(t, err, c.want)
				require.ErrorIs(t, err, resilient.BadRequest)
				header, _ := asked()
				require.Nil(t, header)
			}
		})
	}
}

// TestResultsWithParts: a tool may answer with an image, where the protocol takes one.
func TestResultsWithParts(t *testing.T) {
	result := inference.ToolMessage(inference.ToolResult{CallID: "c", Content: "a picture"})
	result.Parts = []inference.Part{{Kind: inference.PartImage, MediaType: "image/png", Data: "x"}}
	r := inference.Request{Model: "m", Messages: []inference.Message{inference.Assistant("", inference.ToolCall{ID: "c", Name: "f"}), result}}
	m, asked := endpoint(t, openai.Options{}, yes)
	_, err := m.Generate(context.Background(), r)
	require.NoError(t, err)
	_, body := asked()
	require.Contains(t, string(body), `"output":[{"text":"a picture","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,eA==","type":"input_image"}]`)

	m, _ = endpoint(t, openai.Options{API: openai.ChatCompletions}, yesChat)
	_, err = m.Generate(context.Background(), r)
	require.ErrorContains(t, err, `"tool"`)
}

// TestErrorsWithGoodStatus: gateways that had begun to answer tell of errors in the body.
func TestErrorsWithGoodStatus(t *testing.T) {
	for body, want := range map[string]resilient.Class{
		`{"error":{"code":429,"message":"Upstream is busy"}}`:                         resilient.RateLimited,
		`{"error":{"code":"context_length_exceeded","message":"Too long"}}`:           resilient.ContextOverflow,
		`{"error":{"type":"insufficient_quota","message":"No credit"},"choices":[]}`:  resilient.Quota,
		`{"id":"resp_1","status":"failed","error":{"code":"x","message":"Upstream"}}`: resilient.Transient,
		`{"status":"failed","error":{"code":"invalid_image","message":"No image"}}`:   resilient.BadRequest,
		`{"status":"cancelled","error":null}`:                                         resilient.Transient,
		`{}`:                                                                          resilient.Transient,
		`null`:                                                                        resilient.Transient,
	} {
		for _, api := range []openai.API{openai.Responses, openai.ChatCompletions} {
			m, _ := endpoint(t, openai.Options{API: api}, func(w http.ResponseWriter, _ []byte) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body)
			})
			_, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
			require.ErrorIs(t, err, want, "%s: %s", api, body)
		}
	}
}

// TestFailedAnswersArePaidFor has an answer fail when its tokens were spent.
func TestFailedAnswersArePaidFor(t *testing.T) {
	for api, body := range map[openai.API]string{
		openai.Responses:       `{"status":"failed","error":{"code":"server_error","message":"No"},"usage":{"input_tokens":7,"output_tokens":3}}`,
		openai.ChatCompletions: `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"error"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`,
	} {
		m, _ := endpoint(t, openai.Options{API: api}, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
		answer, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
		require.ErrorIs(t, err, resilient.Transient)
		require.Equal(t, inference.Response{Usage: inference.Usage{InputTokens: 7, OutputTokens: 3}}, answer)
	}
}
