package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
)

// query is a request to a service, as far as tests look at it.
type query struct {
	path, key string
	Model     string
	Stream    bool
	Messages  []struct {
		Role    string
		Content string
	}
	Tools []struct{ Function struct{ Name string } }
}

func (a query) system() string {
	for _, m := range a.Messages {
		if m.Role == "system" {
			return m.Content
		}
	}
	return ""
}

// last is the newest message, such as the result of a call.
func (a query) last() string { return a.Messages[len(a.Messages)-1].Content }

// service speaks OpenAI's protocol of chat completions on this machine.
type service struct {
	*httptest.Server
	mu   sync.Mutex
	seen []query
}

// say streams an answer: its text word by word, and calls as "name {arguments}".
func say(text string, calls ...string) func(http.ResponseWriter, query) {
	return func(w http.ResponseWriter, a query) {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(delta map[string]any, finish any) {
			chunk, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": a.Model,
				"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
			_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk)
			w.(http.Flusher).Flush()
		}
		if text != "" {
			send(map[string]any{"reasoning_content": "Let me think."}, nil)
		}
		for _, word := range strings.SplitAfter(text, " ") {
			if word != "" {
				send(map[string]any{"content": word}, nil)
			}
		}
		finish := "stop"
		for i, c := range calls {
			name, args, _ := strings.Cut(c, " ")
			id := fmt.Sprintf("call_%d_%d", len(a.Messages), i)
			send(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": id, "type": "function",
				"function": map[string]any{"name": name, "arguments": ""}}}}, nil)
			send(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": args}}}}, nil)
			finish = "tool_calls"
		}
		send(map[string]any{}, finish)
		_, _ = io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,`+
			`"total_tokens":110,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":4}}}`+"\n\ndata: [DONE]\n\n")
	}
}

// refuse answers with a failure.
func refuse(status int, message string) func(http.ResponseWriter, query) {
	return func(w http.ResponseWriter, _ query) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"type":"server_error"}}`, message)
	}
}

// serve starts a service that asks answer for each answer, with the number of requests of
// the same model before it.
func serve(t *testing.T, answer func(a query, n int) func(http.ResponseWriter, query)) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		a := query{path: r.URL.Path, key: r.Header.Get("Authorization")}
		if err == nil {
			err = json.Unmarshal(body, &a)
		}
		if err != nil {
			t.Error(err, string(body))
			return
		}
		s.mu.Lock()
		n := 0
		for _, before := range s.seen {
			if before.Model == a.Model {
				n++
			}
		}
		s.seen = append(s.seen, a)
		s.mu.Unlock()
		answer(a, n)(w, a)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) requests() []query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]query(nil), s.seen...)
}

// inOrder gives one answer after the other.
func inOrder(answers ...func(http.ResponseWriter, query)) func(query, int) func(http.ResponseWriter, query) {
	return func(_ query, n int) func(http.ResponseWriter, query) {
		if n >= len(answers) {
			return refuse(http.StatusBadRequest, "the test has no more answers")
		}
		return answers[n]
	}
}

// with runs the command with these variables.
func with(ctx context.Context, in string, env map[string]string, args ...string) outcome {
	var out, errs bytes.Buffer
	code := cli.Run(ctx, args, cli.IO{In: strings.NewReader(in), Out: &out, Err: &errs, Env: func(name string) string { return env[name] }})
	return outcome{code, out.String(), errs.String()}
}

// specAt writes a spec, and returns its file.
func specAt(t *testing.T, format string, args ...any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, format, args...), 0o644))
	return file
}

// local is a section that describes a service.
func local(s *service) string {
	return "{local: {protocol: openai, endpoint: " + s.URL + "/v1, key_from: LOCAL_KEY}}"
}

// A run shows the text of a model as it comes and its calls as they begin, and no text
// twice.
func TestStreamedRun(t *testing.T) {
	s := serve(t, inOrder(
		say("I look around first.\n\nThen I see.", `list_files {"path": "."}`, `read_file {"path": "README.md"}`),
		say("A garden.\nWith roses, and this line goes on for quite a while so that it does not fit into what a screen has.")))
	file := specAt(t, "id: x\nmodel_id: local:tiny\nactive_hook_filter: [files, budget]\nsections:\n  providers: %s\n", local(s))
	dir := garden(t)
	env := map[string]string{"LOCAL_KEY": "k-1", "OPENAI_API_KEY": "k-2"}
	got := with(t.Context(), "", env, "run", file, "--dir", dir)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	golden(t, "streamed.txt", normal(got.out, dir))
	for _, r := range s.requests() {
		require.Equal(t, "tiny", r.Model)
		require.True(t, r.Stream)
		require.Equal(t, "Bearer k-1", r.key)
		require.Equal(t, "/v1/chat/completions", r.path)
	}

	s.seen = nil
	got = with(t.Context(), "", env, "run", file, "--dir", dir, "-q")
	require.Contains(t, got.out, "answer  A garden.\n")
	s.seen = nil
	got = with(t.Context(), "", env, "run", file, "--dir", dir, "-v")
	require.Contains(t, got.out, "  thought    Let me think.\n")
	require.Contains(t, got.out, "(tokens: 100 in (60 cached), 10 out (4 of thoughts))")
	require.Equal(t, 1, strings.Count(got.out, "With roses"))
}

// Without what a model needs nothing runs, and the error says what to do and where.
func TestModelFaults(t *testing.T) {
	const head = "id: x\nmodel_id: "
	for spec, want := range map[string]string{
		head + "openai:gpt\n":     `:2:11: model_id: there is no key for openai: set the environment variable OPENAI_API_KEY, or name an endpoint in OPENAI_BASE_URL or in the section providers`,
		head + "opnai:gpt\n":      `:2:11: model_id: no provider "opnai"; did you mean "openai"?`,
		head + "zzz:gpt\n":        `:2:11: model_id: no provider "zzz"; known: `,
		head + "'openai:'\n":      `:2:11: model_id: no model "openai:"; a model is named openai:NAME, `,
		head + "script:no.json\n": `:2:11: model_id: cannot read the script `,
		head + "l:m\nsections:\n  providers: {l: {protocol: openia, endpoint: 'http://127.0.0.1'}}\n":                                                             `:4:14: sections.providers: providers: l: no protocol "openia"; did you mean "openai"?`,
		head + "l:m\nsections:\n  providers: {l: {endpoint: 'http://127.0.0.1'}}\n":                                                                               `:4:14: sections.providers: providers: l: say which protocol it speaks: openai`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai}}\n":                                                                                           `:4:14: sections.providers: providers: l: name its endpoint`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai, endpoint: 'ftp://x'}}\n":                                                                      `endpoint needs to be like https://host/v1`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai, endpoint: 'https://a:b@x'}}\n":                                                                `endpoint must hold no password`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai, endpoint: 'https://x', key_from: sk-123}}\n":                                                  `key_from is the name of the environment variable that has the key`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai, endpoint: 'https://x', key_from: NO_KEY}}\n":                                                  `:2:11: model_id: the key of l is missing: set the environment variable NO_KEY, which key_from names`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai, endpoint: 'https://x', headers_from: {X-A: NO}}}\n":                                           `the header X-A of l is missing: set the environment variable NO`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai, endpoint: 'https://x', headers_from: {X-A: a b}}}\n":                                          `headers_from: X-A needs the name of the environment variable`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai, endpoint: 'https://x', api: chat}}\n":                                                         `no api "chat"; known: responses, chat_completions`,
		head + "l:m\nsections:\n  providers: {script: {protocol: openai, endpoint: 'https://x'}}\n":                                                               `"script" is taken`,
		head + "l:m\nsections:\n  providers: {l: {protocol: openai, key: x}}\n":                                                                                   `:4:37: sections.providers.l.key: no field "key"`,
		head + "l:m\nsections:\n  resilience: {atempts: 3}\n":                                                                                                     `:4:16: sections.resilience.atempts: no field "atempts"; did you mean "attempts"?`,
		head + "l:m\nsections:\n  resilience: {attempts: 0}\n":                                                                                                    `:4:15: sections.resilience: resilience: attempts is 0; use 1, which is no retry, or more`,
		head + "l:m\nsections:\n  resilience: {timeouts: {stall: soon}}\n":                                                                                        `resilience: timeouts.stall is "soon"; use a duration such as "90s"`,
		head + "l:m\nsections:\n  resilience: {recovery: repaet}\n":                                                                                               `resilience: no recovery "repaet"; did you mean "repeat"?`,
		head + "l:m\nsections:\n  resilience: {continue: -1}\n":                                                                                                   `resilience: continue is -1`,
		head + "l:m\nsections:\n  resilience: {breaker: {failures: -1}}\n":                                                                                        `resilience: breaker.failures is -1`,
		head + "l:m\nsections:\n  resilience: {fallback: [a, a]}\n":                                                                                               `resilience: fallback[1]: "a" is listed twice`,
		head + "'script:script.json'\nsections:\n  resilience: {fallback: ['openai:gpt']}\n":                                                                      `:2:11: model_id: fallback[0] of its resilience: there is no key for openai`,
		head + "'script:script.json'\nsections:\n  resilience: {fallback: ['script:script.json']}\n":                                                              `fallback[0] of its resilience is the model itself`,
		head + "'script:script.json'\nsections:\n  resilence: {attempts: 3}\n":                                                                                    `:4:3: sections.resilence: no section "resilence"; did you mean "resilience"?`,
		head + "'script:script.json'\nsections: {resilience: {attempts: 2}}\n---\nid: y\nmodel_id: 'script:script.json'\nsections: {resilience: {attempts: 3}}\n": `:7:11: sections: agents say different things of the resilience of "script:script.json"`,
		head + "'script:script.json'\nsections: {providers: {l: {protocol: openai, endpoint: 'http://a'}}}\n---\nid: y\nmodel_id: 'script:script.json'\nsections: {providers: {l: {protocol: openai, endpoint: 'http://b'}}}\n": `agents say different things of the provider "l"`,
	} {
		file := specFile(t, spec, `{"answers": [{"text": "hi"}]}`)
		got := fixpoint(t, "", "run", file, "--dir", garden(t))
		require.Equal(t, cli.ExitUsage, got.code, spec)
		require.Contains(t, got.err, want, spec)
		require.Empty(t, got.out)
	}
	got := fixpoint(t, "", "run", "--model", "opnai:gpt")
	require.Equal(t, "fixpoint: --model: no provider \"opnai\"; did you mean \"openai\"?; the section providers can describe another\n", got.err)
	require.Equal(t, cli.ExitUsage, got.code)
	require.Contains(t, fixpoint(t, "", "run", "--model", "script:nope.json").err, "fixpoint: --model: cannot read the script ")
	require.Contains(t, fixpoint(t, "", "chat", "--model", "gpt").err, "fixpoint: --model: no model \"gpt\"; a model is named openai:NAME, ")

	// To look at a spec, no key is needed.
	file := specFile(t, head+"openai:gpt\n", "")
	require.Equal(t, outcome{out: file + ": agent x is fine\n"}, fixpoint(t, "", "check", file))
}

// The key of the environment goes to the endpoint of the environment, and to none that a
// spec names.
func TestKeys(t *testing.T) {
	s := serve(t, func(query, int) func(http.ResponseWriter, query) { return say("Hello.") })
	env := map[string]string{"OPENAI_API_KEY": "k-own"}
	file := specAt(t, "id: x\nmodel_id: openai:tiny\nsections:\n  providers: {openai: {endpoint: '%s/v1'}}\n", s.URL)
	got := with(t.Context(), "", env, "run", file, "--dir", garden(t), "-q")
	require.Equal(t, cli.ExitOK, got.code, got.err+got.out)

	env["OPENAI_BASE_URL"] = s.URL + "/v2"
	got = with(t.Context(), "", env, "run", "--model", "openai:tiny", "--dir", garden(t), "-q", "--yes")
	require.Equal(t, cli.ExitError, got.code) // it speaks the other protocol
	seen := s.requests()
	require.Equal(t, "/v1/chat/completions", seen[0].path)
	require.Empty(t, seen[0].key)
	require.Equal(t, "/v2/responses", seen[1].path)
	require.Equal(t, "Bearer k-own", seen[1].key)
}

// Retries and other models are told of where they happen.
func TestResilience(t *testing.T) {
	away := refuse(http.StatusServiceUnavailable, "away")
	s := serve(t, func(q query, n int) func(http.ResponseWriter, query) {
		if q.Model == "first" && n < 3 {
			return away
		}
		return say("Hello from " + q.Model + ".")
	})
	env := map[string]string{"LOCAL_KEY": "k"}
	spec := func(r string) string {
		return specAt(t, "id: x\nmodel_id: local:first\nsections:\n  providers: %s\n  resilience: %s\n", local(s), r)
	}
	got := with(t.Context(), "", env, "run", spec("{attempts: 2, fallback: ['local:second']}"), "--dir", garden(t))
	require.Equal(t, cli.ExitOK, got.code, got.err+got.out)
	require.Regexp(t, `(?m)^    retry    local:first failed, attempt 1 of 2; again in \S+: openai: model first: overloaded \(status 503`, got.out)
	require.Regexp(t, `(?m)^ failover    from local:first to local:second: resilient: gave up after 2 attempts: openai: model first: `, got.out)
	require.Regexp(t, `(?m)^    model    Hello from second\.$`, got.out)
	require.Equal(t, 1, strings.Count(got.out, "Hello from"))

	got = with(t.Context(), "", env, "run", spec("{attempts: 1}"), "--dir", garden(t))
	require.Equal(t, cli.ExitError, got.code)
	require.Contains(t, got.out, "away")
	require.NotContains(t, got.out, "retry")
}

// A kept run keeps the model that it was given, and a thread of a chat does.
func TestKeptModel(t *testing.T) {
	s := serve(t, func(q query, n int) func(http.ResponseWriter, query) {
		if n == 0 {
			return say("", `write_report {"content": "Roses."}`)
		}
		return say(q.Model + " is done.")
	})
	env := map[string]string{"LOCAL_KEY": "k"}
	file := specAt(t, "id: x\nmodel_id: local:tiny\nsections:\n  providers: %s\n  permission: {ask: ['*']}\n", local(s))
	store := filepath.Join(t.TempDir(), "store")
	dir := garden(t)
	got := with(t.Context(), "", env, "run", file, "--dir", dir, "--store", store, "--pause", "--model", "local:large")
	require.Equal(t, cli.ExitWaiting, got.code, got.err+got.out)
	got = with(t.Context(), "", env, "approve", "thread-1", "--store", store)
	require.Equal(t, cli.ExitOK, got.code, got.err+got.out)
	require.Contains(t, got.out, "    model    large is done.\n")

	got = with(t.Context(), "hello\n", env, "chat", file, "--dir", dir, "--store", store, "--thread", "thread-1")
	require.Equal(t, cli.ExitOK, got.code, got.err+got.out)
	require.Contains(t, got.out, "    model  local:large\n")
	require.Equal(t, 1, strings.Count(got.out, "large is done."), got.out)
	for _, q := range s.requests() {
		require.Equal(t, "large", q.Model)
	}
	got = with(t.Context(), "hello\n", env, "chat", file, "--dir", dir, "--store", store, "--thread", "thread-1", "--model", "local:other")
	require.Contains(t, got.out, "    model  local:other\n")
}
