package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

// notesEnv makes the test binary a server of notes, by standard input and output.
const notesEnv = "FIXPOINT_CLI_NOTES"

// tool gives a server a tool that takes a text.
func tool(s *mcp.Server, name string, do func(ctx context.Context, r *mcp.CallToolRequest, text string) string) {
	s.AddTool(&mcp.Tool{Name: name, Description: "does " + name, InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: do(ctx, r, in.Text)}}}, nil
		})
}

func newServer(name string) *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
}

// notesServer keeps notes in a file of the folder that it is started in.
func notesServer() int {
	s := newServer("notes")
	tool(s, "add", func(_ context.Context, _ *mcp.CallToolRequest, text string) string {
		if err := os.WriteFile("notes.txt", []byte(text+"\n"), 0o644); err != nil {
			return err.Error()
		}
		return "noted, as " + os.Getenv("AUTHOR")
	})
	tool(s, "wipe", func(context.Context, *mcp.CallToolRequest, string) string {
		_ = os.Remove("notes.txt")
		return "all gone"
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// searchServer finds texts over HTTP, for those who have the key.
func searchServer(t *testing.T) (url string, calls *atomic.Int32) {
	s, calls := newServer("search"), new(atomic.Int32)
	tool(s, "find", func(ctx context.Context, r *mcp.CallToolRequest, text string) string {
		calls.Add(1)
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "looking"})
		return "three " + text
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s-1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// teamSpec has two agents and two servers of tools.
func teamSpec(t *testing.T, models *service, search string) string {
	exe, err := json.Marshal(os.Args[0])
	require.NoError(t, err)
	return specAt(t, `
id: boss
model_id: local:large
system_prompt: You lead.
delegates: [worker]
active_hook_filter: [mcp, permission]
sections:
  providers: %s
  resilience: {attempts: 2}
  mcp:
    servers:
      notes:
        command: %s
        env: {%s: "1"}
        env_from: {AUTHOR: NOTES_AUTHOR}
      search:
        url: %s
        headers_from: {Authorization: SEARCH_AUTH}
  permission:
    allow: ["search__*", "kind:delegate"]
    ask: ["notes__add"]
    deny: ["notes__wipe"]
---
id: worker
model_id: local:small
system_prompt: You search.
active_hook_filter: [mcp, permission]
sections:
  mcp:
    servers:
      search:
        url: %s
        headers_from: {Authorization: SEARCH_AUTH}
  permission: {allow: ["search__*"]}
`, local(models), exe, notesEnv, search, search)
}

// A spec with two servers of the protocol MCP, one a program and one over HTTP, and a
// delegate runs from the command line, with models over their own protocol: gates hold
// for the tools of servers, a person is asked, and what was used is counted.
func TestServersAndDelegate(t *testing.T) {
	models := serve(t, func(q query, n int) func(http.ResponseWriter, query) {
		switch {
		case q.Model == "small" && n == 0:
			return say("", `search__find {"text": "lilies"}`)
		case q.Model == "small":
			return say("There are " + q.last() + ".")
		case n == 0:
			return refuse(http.StatusTooManyRequests, "not so fast")
		case n == 1:
			return say("I look first.", `search__find {"text": "roses"}`, `notes__add {"text": "roses"}`, `notes__wipe {}`)
		case n == 2:
			return say("", `delegate_to_worker {"input": "Count the lilies."}`)
		}
		return say("The worker says: " + q.last())
	})
	search, calls := searchServer(t)
	dir := garden(t)
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	env := map[string]string{"LOCAL_KEY": "k-1", "SEARCH_AUTH": "Bearer s-1", "NOTES_AUTHOR": "Rose", "OPENAI_API_KEY": "k-2"}
	enginetest.CheckLeaks(t)
	got := with(t.Context(), "y\n", env, "run", teamSpec(t, models, search), "--dir", dir, "--trace", trace)
	require.Equal(t, cli.ExitOK, got.code, got.err+got.out)
	require.Equal(t, 1, strings.Count(got.out, "The worker says: There are three lilies."), got.out)
	require.Regexp(t, `(?m)^    retry    local:large failed, attempt 1 of 2; again in \S+: openai: model large: rate limited`, got.out)
	require.Contains(t, got.out, "   server  search: "+search+"\n")
	require.Contains(t, got.out, "search find: 50% looking\n")
	require.EqualValues(t, 2, calls.Load())
	note, err := os.ReadFile(filepath.Join(dir, "notes.txt"))
	require.NoError(t, err, "it was approved, and not wiped")
	require.Equal(t, "roses\n", string(note))

	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	for _, secret := range []string{"k-1", "k-2", "s-1"} {
		require.NotContains(t, string(text)+got.out, secret)
	}
	seen := events(t, string(text))
	results := map[string]inference.ToolResult{}
	for _, e := range enginetest.Select[engine.ToolFinished](seen) {
		results[e.Call.Name+" "+string(e.Call.Args)] = e.Result
	}
	require.Equal(t, "three roses", results[`search__find {"text":"roses"}`].Content)
	require.Equal(t, "three lilies", results[`search__find {"text":"lilies"}`].Content)
	require.Equal(t, "noted, as Rose", results[`notes__add {"text":"roses"}`].Content)
	require.Equal(t, "There are three lilies.", results[`delegate_to_worker {"input":"Count the lilies."}`].Content)
	denied := results[`notes__wipe {}`]
	require.Equal(t, inference.OutcomeBlocked, denied.Outcome)
	require.Equal(t, `blocked: notes__wipe is denied by the rule "notes__wipe"`, denied.Content)
	answers := enginetest.Select[engine.TicketAnswered](seen)
	require.Len(t, answers, 1)
	require.True(t, answers[0].Approved)

	// The model of each agent got its own tools and answers; what was used adds up.
	var large, small []string
	for _, q := range models.requests() {
		names := &large
		if q.Model == "small" {
			names = &small
			require.Equal(t, "You search.", q.system())
		}
		*names = nil
		for _, tool := range q.Tools {
			*names = append(*names, tool.Function.Name)
		}
	}
	require.ElementsMatch(t, []string{"notes__add", "notes__wipe", "search__find", "delegate_to_worker"}, large)
	require.Equal(t, []string{"search__find"}, small)
	require.Contains(t, got.out, "   tokens  500 in (300 cached), 50 out (20 of thoughts)\n")
}

// What servers need is said before anything runs, and checking a spec starts none.
func TestServerFaults(t *testing.T) {
	models := serve(t, inOrder())
	search, calls := searchServer(t)
	file := teamSpec(t, models, search)
	env := map[string]string{"LOCAL_KEY": "k-1", "SEARCH_AUTH": "Bearer wrong", "NOTES_AUTHOR": "Rose"}
	got := with(t.Context(), "", env, "run", file, "--dir", garden(t))
	require.Equal(t, cli.ExitError, got.code, got.out)
	require.Contains(t, got.err, "mcp: the server is not there: server search: ")
	delete(env, "SEARCH_AUTH")
	got = with(t.Context(), "", env, "run", file, "--dir", garden(t))
	require.Equal(t, cli.ExitUsage, got.code, got.out)
	require.Contains(t, got.err, "the environment variable SEARCH_AUTH is not set")

	got = fixpoint(t, "", "check", file)
	require.Equal(t, cli.ExitOK, got.code, got.err)
	bad := specFile(t, "id: x\nmodel_id: 'script:script.json'\nsections:\n  mcp: {servers: {a: {comand: x}}}\n", `{"answers": [{"text": "hi"}]}`)
	require.Contains(t, fixpoint(t, "", "check", bad).err, `:4:23: sections.mcp.servers.a.comand: no field "comand"; did you mean "command"?`)
	require.Zero(t, calls.Load())
	require.Empty(t, models.requests())
}
