package mcp_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

func withSection(id, section string) engine.AgentSpec {
	return engine.AgentSpec{ID: id, Sections: map[string]inference.JSON{mcp.Name: inference.JSON(section)}}
}

func lookup(name string) (string, bool) {
	value, ok := map[string]string{"MY_TOKEN": "hunter2", "MY_AUTH": "Bearer hunter2\n"}[name]
	return value, ok
}

// The servers of specs come with the secrets that they name, each server once.
func TestFromSpecs(t *testing.T) {
	const clock = `"clock": {"url": "https://clock.example/mcp", "headers": {"X-Zone": "utc"}, "headers_from": {"Authorization": "MY_AUTH"}, "optional": true}`
	servers, err := mcp.FromSpecs(lookup,
		withSection("a", `{"servers": {"files": {"command": "files-server", "args": ["--root", "."], "dir": "/tmp",
			"env": {"LOG": "debug"}, "env_from": {"TOKEN": "MY_TOKEN"}, "allow": ["read_*"], "deny": ["read_all"],
			"trust_hints": true, "elicit": true, "resources": true, "media": true, "timeout": "5s"}, `+clock+`}}`),
		withSection("b", `{"servers": {`+clock+`}}`), engine.AgentSpec{ID: "c"})
	require.NoError(t, err)
	require.Equal(t, []mcp.Server{
		{Name: "clock", URL: "https://clock.example/mcp", Header: http.Header{"X-Zone": {"utc"}, "Authorization": {"Bearer hunter2"}}, Optional: true},
		{Name: "files", Command: "files-server", Args: []string{"--root", "."}, Dir: "/tmp", Env: map[string]string{"LOG": "debug", "TOKEN": "hunter2"},
			Allow: []string{"read_*"}, Deny: []string{"read_all"}, TrustHints: true, Elicit: true, Resources: true, Media: true, Timeout: 5 * time.Second},
	}, servers)

	_, err = mcp.FromSpecs(lookup, withSection("a", `{"servers":{"s":{"command":"x"}}}`), withSection("b", `{"servers":{"s":{"command":"y"}}}`))
	require.ErrorContains(t, err, `agents say different things of the server "s"`)
}

// What is wrong in a section is an error that says what to do, and shows no secret.
func TestFaultySections(t *testing.T) {
	for section, says := range map[string]string{
		`{"servers":{"S":{"command":"x"}}}`:                                           "lower-case letters",
		`{"servers":{"a__b":{"command":"x"}}}`:                                        "lower-case letters",
		`{"servers":{"a_":{"command":"x"}}}`:                                          "lower-case letters",
		`{"servers":{"s":{}}}`:                                                        "one of a command and a URL",
		`{"servers":{"s":{"command":"x","url":"http://h"}}}`:                          "one of a command and a URL",
		`{"servers":{"s":{"url":"ftp://h"}}}`:                                         "http:// or https://",
		`{"servers":{"s":{"url":"https://u:hunter2@h"}}}`:                             "must not hold a password",
		`{"servers":{"s":{"url":"https://h","args":["x"]}}}`:                          "are for a command",
		`{"servers":{"s":{"command":"x","headers":{"A":"b"}}}}`:                       "headers are for a URL",
		`{"servers":{"s":{"url":"https://h","headers":{"Authorization":"hunter2"}}}}`: "name the variable that has it in headers_from",
		`{"servers":{"s":{"url":"https://h","headers_from":{"A":"NOT_SET"}}}}`:        "the environment variable NOT_SET is not set",
		`{"servers":{"s":{"command":"x","env":{"GITHUB_TOKEN":"hunter2"}}}}`:          "name the variable that has it in env_from",
		`{"servers":{"s":{"command":"x","env_from":{"A":"NOT_SET"}}}}`:                "the environment variable NOT_SET is not set",
		`{"servers":{"s":{"command":"x","env":{"A=B":"c"}}}}`:                         "no name of a variable",
		`{"servers":{"s":{"command":"x","timeout":"soon"}}}`:                          "timeout is",
		`{"servers":{"s":{"command":"x","allow":["["]}}}`:                             "no pattern",
		`{"servers":{"s":{"comand":"x"}}}`:                                            "comand",
		`{"deny":["["]}`:                                                              "no pattern",
		`{"context":[{"server":"s"}]}`:                                                "one of resource and prompt",
		`{"context":[{"server":"s","resource":"a","prompt":"b"}]}`:                    "one of resource and prompt",
	} {
		_, err := mcp.FromSpecs(lookup, withSection("a", section))
		require.ErrorContains(t, err, says, section)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for _, o := range []mcp.Options{{Limits: mcp.Limits{Tools: -1}}, {Servers: []mcp.Server{{Name: "s", Command: "a"}, {Name: "s", Command: "b"}}},
		{Servers: []mcp.Server{{Name: "s"}}}, {Servers: []mcp.Server{{Name: "s", Command: "x", Timeout: -1}}}} {
		_, err := mcp.Connect(t.Context(), o)
		require.ErrorIs(t, err, mcp.ErrOptions)
	}
}

// two returns servers a and b with the tools look and save each.
func two(t *testing.T) *mcp.Servers {
	t.Helper()
	s := newServer()
	for _, name := range []string{"look", "save"} {
		add(s, name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return say("did " + name), nil
		})
	}
	return connect(t, mcp.Options{Servers: []mcp.Server{{Name: "a", Dial: dial(s)}, {Name: "b", Dial: dial(s)}}})
}

// The section says which tools an agent is offered; the others it cannot call either.
func TestListsOfASection(t *testing.T) {
	servers := two(t)
	for section, want := range map[string][]string{
		`{}`:                                {"a__look", "a__save", "b__look", "b__save"},
		`{"use":["a"]}`:                     {"a__look", "a__save"},
		`{"servers":{"b":{"command":"x"}}}`: {"b__look", "b__save"},
		`{"servers":{"b":{"command":"x"}},"use":["a"]}`: {"a__look", "a__save"},
		`{"allow":["*__look"],"deny":["b__look"]}`:      {"a__look"},
		`{"deny":["*"]}`: nil,
	} {
		var offered []string
		w := newWorld(t, servers.Shared(), nil, enginetest.Answer{Fn: func(r inference.Request) (inference.Response, error) {
			for _, tool := range r.Tools {
				offered = append(offered, tool.Name)
			}
			all := enginetest.Call("0", "a__look", nil).And(enginetest.Call("1", "a__save", nil), enginetest.Call("2", "b__look", nil), enginetest.Call("3", "b__save", nil))
			return inference.Response{Message: inference.Assistant("", all.ToolCalls...)}, nil
		}}, enginetest.Say("done"))
		w.spec = withSection("a", section)
		require.NoError(t, w.run(t).Err)
		require.Equal(t, want, offered, section)
		var called []string
		for _, r := range w.results() {
			if r.IsError {
				require.Equal(t, inference.OutcomeBlocked, r.Outcome)
			} else {
				called = append(called, r.Name)
			}
		}
		require.Equal(t, want, called, section)
	}
}

// A name in a section that nothing has ends the run before it begins, so that a slip
// does not let through what it was meant to keep out.
func TestUnknownNamesInASection(t *testing.T) {
	for section, says := range map[string]string{
		`{"use":["c"]}`: `wants the server "c"`, `{"servers":{"c":{"command":"x"}}}`: `wants the server "c"`,
		`{"context":[{"server":"c","resource":"x"}]}`: `wants the server "c"`,
		`{"deny":["a__svae"]}`:                        `the tool "a__svae", which no server has`, `{"allow":["look"]}`: `the tool "look", which no server has`,
	} {
		w := newWorld(t, two(t).Shared(), nil, enginetest.Say("done"))
		w.spec = withSection("a", section)
		_, err := w.thread.Run(t.Context(), w.spec, engine.Prompt("go"))
		if err == nil {
			err = w.run(t).Err
		}
		require.ErrorContains(t, err, says)
	}
}

// A delegate has its own servers, and what the agent above it denies is denied to it.
func TestDelegates(t *testing.T) {
	w := newWorld(t, two(t).Shared(), func(c *engine.Config) {
		c.Agents = []engine.AgentSpec{withSection("child", `{"use":["b"]}`)}
		c.Agents[0].ModelID = "child"
		c.Models = map[string]inference.Model{"child": enginetest.NewScript(
			enginetest.Call("c1", "b__look", nil).And(enginetest.Call("c2", "b__save", nil), enginetest.Call("c3", "a__look", nil)), enginetest.Say("done"))}
	}, enginetest.Call("c1", engine.DelegatePrefix+"child", map[string]string{"input": "go"}), enginetest.Say("done"))
	w.spec = withSection("parent", `{"use":["a"],"deny":["b__save"]}`)
	w.spec.Delegates = []string{"child"}
	require.NoError(t, w.run(t).Err)
	outcomes := map[string]inference.Outcome{}
	for _, r := range w.results() {
		outcomes[r.Name] = r.Outcome
	}
	require.Equal(t, map[string]inference.Outcome{"b__look": "ok", "b__save": "blocked", "a__look": "blocked", engine.DelegatePrefix + "child": "ok"}, outcomes)
}

// Resources are tools, and resources and prompts that a section names are in a thread
// once, before its first request.
func TestResourcesAndContext(t *testing.T) {
	s := newServer()
	s.AddResource(&sdk.Resource{URI: "file:///notes", Name: "notes", MIMEType: "text/plain"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "buy milk"}}}, nil
	})
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "file:///{name}", Name: "any"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	})
	s.AddPrompt(&sdk.Prompt{Name: "tone"}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Be " + r.Params.Arguments["how"]}}}}, nil
	})
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s), Resources: true}}})
	require.Equal(t, "file:///notes text/plain notes\ntemplate file:///{name} any\n", one(t, servers.Shared(), "s__list_resources", nil).Content)
	require.Equal(t, "[resource file:///notes]\nbuy milk", one(t, servers.Shared(), "s__read_resource", map[string]string{"uri": "file:///notes"}).Content)
	require.Contains(t, one(t, servers.Shared(), "s__read_resource", map[string]string{"uri": "file:///x"}).Content, "not found")

	var seen []string
	look := enginetest.Answer{Fn: func(r inference.Request) (inference.Response, error) {
		seen = nil
		for _, m := range r.Messages {
			seen = append(seen, m.Text)
		}
		return inference.Response{Message: inference.Assistant("ok")}, nil
	}}
	w := newWorld(t, servers.Shared(), nil, look, look)
	w.spec = withSection("a", `{"context":[{"server":"s","resource":"file:///notes"},{"server":"s","prompt":"tone","arguments":{"how":"kind"}},{"server":"s","resource":"file:///x"}]}`)
	want := []string{"go", "From the server s:\n[resource file:///notes]\nbuy milk", "Be kind"}
	require.NoError(t, w.run(t).Err)
	require.Equal(t, want, seen)
	require.NoError(t, w.run(t).Err)
	require.Equal(t, append(want, "ok", "go"), seen)
	letters := 0
	for range w.thread.DeadLetters() {
		letters++
	}
	require.Equal(t, 2, letters, "what could not be read is told, once in each run")
}
