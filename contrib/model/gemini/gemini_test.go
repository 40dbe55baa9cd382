package gemini_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/gemini"
	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

var hello = []inference.Message{inference.User("Hello")}

func yes(w http.ResponseWriter, _ []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, wire{}.whole(modeltest.Answer{Text: []string{"Yes."}, Stop: inference.StopEnd}).Body)
}

// sent asks once and returns the members of the request.
func sent(t *testing.T, o gemini.Options, r inference.Request) map[string]json.RawMessage {
	t.Helper()
	m, asked := endpoint(t, o, yes)
	_, err := m.Generate(context.Background(), r)
	require.NoError(t, err)
	_, body := asked()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &members))
	return members
}

func forgetEnvironment(t *testing.T) {
	for _, name := range []string{gemini.EnvKey, gemini.EnvOtherKey, gemini.EnvBaseURL} {
		t.Setenv(name, "")
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	forgetEnvironment(t)
	for name, c := range map[string]struct {
		options gemini.Options
		want    string
	}{
		"no key":           {gemini.Options{}, "GEMINI_API_KEY"},
		"no host":          {gemini.Options{BaseURL: "localhost:8000"}, "Options.BaseURL"},
		"other scheme":     {gemini.Options{BaseURL: "ftp://localhost"}, "Options.BaseURL"},
		"query":            {gemini.Options{BaseURL: "http://localhost?version=1"}, "Options.BaseURL"},
		"key with newline": {gemini.Options{Key: "k\n"}, "the key has"},
		"other effort":     {gemini.Options{Key: "k", Budgets: map[inference.Effort]int{"huge": 2048}}, "Options.Budgets"},
		"no budget":        {gemini.Options{Key: "k", Budgets: map[inference.Effort]int{"low": -2}}, "Options.Budgets"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gemini.New(c.options)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "gemini: ")
		})
	}
	t.Setenv(gemini.EnvBaseURL, "nowhere")
	_, err := gemini.New(gemini.Options{})
	require.ErrorContains(t, err, gemini.EnvBaseURL)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestEnvironment takes key and endpoint from the environment, and never a key of there for an endpoint of the options.
func TestEnvironment(t *testing.T) {
	forgetEnvironment(t)
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	t.Setenv("GOOGLE_CLOUD_PROJECT", "of-somebody")
	t.Setenv(gemini.EnvOtherKey, "from-the-environment")
	r := inference.Request{Model: "m", Messages: hello}
	for key, want := range map[string]string{"": "", "of-the-options": "of-the-options"} {
		m, asked := endpoint(t, gemini.Options{Key: key, Header: http.Header{"X-Two": {"1", "2"}}}, yes) // with BaseURL
		_, err := m.Generate(context.Background(), r)
		require.NoError(t, err)
		header, _ := asked()
		require.Equal(t, want, header.Get("X-Goog-Api-Key"))
		require.Equal(t, []string{"1", "2"}, header["X-Two"])
	}
	var got http.Header
	var address string
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		got, address = r.Header, r.URL.String()
		return nil, io.EOF
	})}
	for base, want := range map[string]string{
		"https://models.example/a/": "^https://models.example/a/v1beta/models/m:generateContent$",
		"":                          "^https://.*/v1beta/models/m:generateContent$",
	} {
		t.Setenv(gemini.EnvBaseURL, base)
		m, err := gemini.New(gemini.Options{HTTPClient: client})
		require.NoError(t, err)
		_, err = m.Generate(context.Background(), r)
		require.ErrorIs(t, err, resilient.Transient)
		require.Equal(t, "from-the-environment", got.Get("X-Goog-Api-Key"))
		require.Regexp(t, want, address)
	}
}

func TestNames(t *testing.T) {
	paths := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths[r.Header.Get("X-Asked")] = r.URL.Path
		yes(w, nil)
	}))
	defer server.Close()
	for request, want := range map[string]string{"": "models/small", "smart": "tunedModels/large", "other": "models/other"} {
		m, err := gemini.New(gemini.Options{
			BaseURL: server.URL, Model: "default", Names: map[string]string{"smart": "tunedModels/large", "default": "small"},
			Header: http.Header{"X-Asked": {request}},
		})
		require.NoError(t, err)
		_, err = m.Generate(context.Background(), inference.Request{Model: request, Messages: hello})
		require.NoError(t, err)
		require.Equal(t, "/v1beta/"+want+":generateContent", paths[request])
	}
}

// TestConfig: the parameters are joined with what the request says of the configuration, and contradictions are refused.
func TestConfig(t *testing.T) {
	budgets := gemini.Options{Budgets: map[inference.Effort]int{inference.EffortLow: 1024, inference.EffortMax: -1}}
	ask := func(effort inference.Effort, config inference.JSON) inference.Request {
		r := inference.Request{Model: "m", Messages: hello}
		if effort != "" {
			r.Params.ReasoningEffort = inference.Some(effort)
		}
		if config != "" {
			r.Params.Extra = inference.Extra{}.With("generationConfig", config)
		}
		return r
	}
	for _, c := range []struct {
		options gemini.Options
		request inference.Request
		want    string
	}{
		{budgets, ask("low", ""), `{"thinkingConfig":{"thinkingBudget":1024}}`},
		{budgets, ask("max", ""), `{"thinkingConfig":{"thinkingBudget":-1}}`},
		{budgets, ask("none", ""), `{"thinkingConfig":{"thinkingBudget":0}}`},
		{gemini.Options{}, ask("high", `{"seed":7,"thinkingConfig":{"includeThoughts":true}}`), `{"seed":7,"thinkingConfig":{"thinkingLevel":"HIGH","includeThoughts":true}}`},
		{gemini.Options{}, ask("", `{"responseModalities":["TEXT","IMAGE"],"thinkingConfig":{"thinkingLevel":"LOW"}}`), `{"responseModalities":["TEXT","IMAGE"],"thinkingConfig":{"thinkingLevel":"LOW"}}`},
	} {
		require.JSONEq(t, c.want, string(sent(t, c.options, c.request)["generationConfig"]))
	}
	extra := func(name string, value inference.JSON) inference.Request {
		r := ask("low", "")
		r.Params.Extra = inference.Extra{}.With(name, value)
		return r
	}
	for name, c := range map[string]struct {
		options gemini.Options
		request inference.Request
		field   inference.Field
	}{
		"an effort without a budget": {budgets, ask("high", ""), inference.FieldReasoningEffort},
		"two levels":                 {gemini.Options{}, ask("low", `{"thinkingConfig":{"thinkingLevel":"HIGH"}}`), "extra.generationConfig"},
		"a level and a budget":       {gemini.Options{}, ask("low", `{"thinkingConfig":{"thinkingBudget":1}}`), "extra.generationConfig"},
		"thinking that is a list":    {gemini.Options{}, ask("low", `{"thinkingConfig":[]}`), "extra.generationConfig"},
		"a config that is a list":    {gemini.Options{}, ask("low", `[]`), "extra.generationConfig"},
		"a temperature":              {gemini.Options{}, ask("low", `{"temperature":1}`), "extra.generationConfig"},
		"several candidates":         {gemini.Options{}, ask("low", `{"candidateCount":2}`), "extra.generationConfig"},
		"contents":                   {gemini.Options{}, extra("contents", `[]`), "extra.contents"},
		"tools that are no list":     {gemini.Options{}, extra("tools", `{}`), "extra.tools"},
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
	r.Params.Extra = inference.Extra{}.With("tools", `[{"googleSearch":{}}]`).With("toolConfig", `{"functionCallingConfig":{"mode":"ANY"}}`)
	got := sent(t, gemini.Options{}, r)
	require.Equal(t, `[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{"b":{},"a":{}}}}]},{"googleSearch":{}}]`,
		string(got["tools"]), "a schema keeps its order")
	require.JSONEq(t, `{"functionCallingConfig":{"mode":"ANY"}}`, string(got["toolConfig"]))
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	of := func(role inference.Role, p inference.Part) inference.Request {
		return inference.Request{Model: "m", Messages: []inference.Message{{Role: role, Parts: []inference.Part{p}}}}
	}
	for name, c := range map[string]struct {
		request inference.Request
		want    string
	}{
		"no model":            {inference.Request{Messages: hello}, "names no model"},
		"another path":        {inference.Request{Model: "../../files", Messages: hello}, "not the name of a model"},
		"a query":             {inference.Request{Model: "m?key=1", Messages: hello}, "not the name of a model"},
		"schema":              {inference.Request{Model: "m", Messages: hello, Tools: []inference.ToolSpec{{Name: "f", Schema: "[]"}}}, "tool f"},
		"parameter":           {inference.Request{Model: "m", Messages: hello, Params: inference.Params{TopP: inference.Some(2.0)}}, "top_p"},
		"an image of nothing": {of(inference.RoleUser, inference.Part{Kind: inference.PartImage}), "neither data nor a URI"},
		"an image of nobody":  {of(inference.RoleSystem, inference.Part{Kind: inference.PartImage, Data: "x"}), `"system"`},
		"no kept part":        {of(inference.RoleAssistant, inference.Part{Kind: inference.PartVendor, MediaType: "application/vnd.google.gemini.part+json", Extra: `{"part":7}`}), "vendor"},
	} {
		t.Run(name, func(t *testing.T) {
			m, asked := endpoint(t, gemini.Options{}, yes)
			_, err := m.Generate(context.Background(), c.request)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, resilient.BadRequest)
			header, _ := asked()
			require.Nil(t, header)
		})
	}
}

// TestTurns: turns alternate, and results stand at the beginning of theirs, with the names of their calls.
func TestTurns(t *testing.T) {
	shot := inference.ToolMessage(inference.ToolResult{CallID: "1", Content: "a picture"})
	shot.Parts = []inference.Part{{Kind: inference.PartImage, Data: "\x89PNG\r\n\x1a\n"}}
	r := inference.Request{Model: "m", System: "Be brief.", Messages: []inference.Message{
		inference.System("Be kind."),
		inference.User("one"), inference.User("two"),
		inference.Assistant("", inference.ToolCall{ID: "1", Name: "f", Args: "[1]"}, inference.ToolCall{ID: "gemini_call_1", Name: "g", Args: `{"n":12345678901234567890}`}),
		shot, inference.System("Mind the clock."), inference.ToolMessage(inference.ToolResult{CallID: "gemini_call_1", IsError: true, Content: "no"}),
		inference.Assistant(""), inference.User("three"),
	}}
	got := sent(t, gemini.Options{}, r)
	require.JSONEq(t, `{"parts":[{"text":"Be brief."},{"text":"Be kind."}]}`, string(got["systemInstruction"]))
	require.JSONEq(t, `[{"role":"user","parts":[{"text":"one"},{"text":"two"}]},
		{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{"malformed_args":"[1]"}}},{"functionCall":{"name":"g","args":{"n":12345678901234567890}}}]},
		{"role":"user","parts":[
			{"functionResponse":{"id":"1","name":"f","response":{"output":"a picture"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}},
			{"functionResponse":{"name":"g","response":{"error":"no"}}},
			{"text":"<system>\nMind the clock.\n</system>"},{"text":"three"}]}]`, string(got["contents"]))
	require.Contains(t, string(got["contents"]), "12345678901234567890")
}

// TestChangedAnswers: what was kept of an answer still fits one that somebody changed.
func TestChangedAnswers(t *testing.T) {
	keep := func(extra inference.JSON) inference.Part {
		return inference.Part{Kind: inference.PartVendor, MediaType: "application/vnd.google.gemini.part+json", Extra: extra}
	}
	m := inference.Assistant("\u00e9 two", inference.ToolCall{ID: "1", Name: "f"})
	m.Parts = []inference.Part{
		keep(`{"text":-7,"calls":-7,"part":{"executableCode":{"code":"1"}}}`),
		keep(`{"text":1,"part":{"text":"","thoughtSignature":"cw=="}}`),
		keep(`{"text":2,"part":{"text":"blue","thoughtSignature":"cw=="}}`),
		keep(`{"text":2,"part":{"functionCall":{"name":"another"},"thoughtSignature":"cw=="}}`),
		keep(`{"text":900,"calls":9,"part":{"functionCall":{"name":"f"},"thoughtSignature":"cw=="}}`),
		{Kind: inference.PartText, Text: "more"},
		{Kind: inference.PartImage, MediaType: "image/png", Data: "x", Extra: `{"sig":1}`},
	}
	got := sent(t, gemini.Options{}, inference.Request{Model: "m", Messages: []inference.Message{m}})
	require.JSONEq(t, `[{"role":"model","parts":[
		{"executableCode":{"code":"1"}},
		{"text":"é"},
		{"text":"","thoughtSignature":"cw=="},
		{"text":" two"},
		{"functionCall":{"id":"1","name":"f","args":{}}},
		{"text":"more"},
		{"inlineData":{"mimeType":"image/png","data":"eA=="}}]}]`, string(got["contents"]))
}

func TestBlockedPrompt(t *testing.T) {
	m, _ := endpoint(t, gemini.Options{}, func(w http.ResponseWriter, _ []byte) {
		_, _ = io.WriteString(w, `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}`)
	})
	answer, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	var f *resilient.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, resilient.ContentFiltered, f.Class)
	require.Equal(t, "SAFETY", f.Code)
	require.Equal(t, inference.Response{Usage: inference.Usage{InputTokens: 4}}, answer, "it is paid for")
}

type bytewise struct{ http.RoundTripper }

func (b bytewise) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{iotest.OneByteReader(resp.Body), resp.Body}
	}
	return resp, err
}

// TestLongNumbers: whole numbers in arguments are the ones that the model wrote, wherever a body is broken, and
// nothing else is touched.
func TestLongNumbers(t *testing.T) {
	const args = `{"a":12345678901234567890,"b":[-9007199254740993,123456789012345,1.25,1e3],"c":"x \" 12345678901234567890 \\","d":{"12345678901234567890":0}}`
	const part = `{"candidates":[{"content":{"parts":[{"text":"12345678901234567890 \""},{"functionCall":{"name":"f","args":` + args + `}}]},"avgLogprobs":-0.12345678901234567890,"finishReason":"STOP","index":0}]}`
	for _, client := range []*http.Client{{}, {Transport: bytewise{http.DefaultTransport}}} {
		m, _ := endpoint(t, gemini.Options{HTTPClient: client}, func(w http.ResponseWriter, _ []byte) {
			sendEvents(w, "data: "+part+"\r\n\r\n")
		})
		streamed, err := inference.Collect(m.Stream(context.Background(), inference.Request{Model: "m", Messages: hello}))
		require.NoError(t, err)
		m, _ = endpoint(t, gemini.Options{HTTPClient: client}, func(w http.ResponseWriter, _ []byte) { _, _ = io.WriteString(w, part) })
		whole, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
		require.NoError(t, err)
		for _, answer := range []inference.Response{streamed, whole} {
			require.Equal(t, `12345678901234567890 "`, answer.Message.Text)
			require.Equal(t, inference.JSON(strings.Replace(args, "1e3", "1000", 1)), answer.Message.ToolCalls[0].Args)
		}
	}
}

// TestNothingIsContinued: whether to ask again is not up to the SDK, which would where the service lets it.
func TestNothingIsContinued(t *testing.T) {
	const half = `{"candidates":[{"content":{"parts":[{"text":"Once"}]},"index":0%s}]}`
	for _, reason := range []string{`,"continuationToken":"dG9rZW4="`, `,"continuationToken":"dG9rZW4=","finishReason":"CONTINUATION"`} {
		asked := 0
		m, _ := endpoint(t, gemini.Options{}, func(w http.ResponseWriter, _ []byte) {
			if asked++; asked > 1 {
				return
			}
			sendEvents(w, "data: "+fmt.Sprintf(half, reason)+"\r\n\r\n")
		})
		answer, _ := inference.Collect(m.Stream(context.Background(), inference.Request{Model: "m", Messages: hello}))
		require.Equal(t, "Once", answer.Message.Text)
		require.Equal(t, 1, asked)
		m, _ = endpoint(t, gemini.Options{}, func(w http.ResponseWriter, _ []byte) {
			if asked++; asked > 2 {
				reason = ""
			}
			_, _ = fmt.Fprintf(w, half, reason)
		})
		_, _ = m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
		require.Equal(t, 2, asked)
	}
}

// TestListenersPanic: only what the SDK cannot read is recovered from.
func TestListenersPanic(t *testing.T) {
	m, _ := endpoint(t, gemini.Options{}, func(w http.ResponseWriter, _ []byte) {
		sendEvents(w, wire{}.stream(modeltest.Answer{Text: []string{"Once"}, Stop: inference.StopEnd})[0])
	})
	require.PanicsWithValue(t, "the listener's", func() {
		for range m.Stream(context.Background(), inference.Request{Model: "m", Messages: hello}) {
			panic("the listener's")
		}
	})
}

// TestSecrets: a service that repeats what it does not accept tells nobody else.
func TestSecrets(t *testing.T) {
	o := gemini.Options{Key: "the-key-itself", Header: http.Header{"Authorization": {"Bearer header-secret"}}}
	m, _ := endpoint(t, o, func(w http.ResponseWriter, _ []byte) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, failed(401, "UNAUTHENTICATED", "invalid: Bearer header-secret").Body)
	})
	_, err := m.Generate(context.Background(), inference.Request{Model: "m", Messages: hello})
	require.ErrorIs(t, err, resilient.Auth)
	require.ErrorContains(t, err, "invalid: [key]")
}
