package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// careful is a plugin whose gate asks about calls of save, in a way that names says.
func careful(tickets ...gate.Ticket) engine.Plugin {
	return engine.NewPlugin("careful", func(r *engine.Registrar) error {
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "save"}, func(_ context.Context, pc *phase.Context, _ struct{}) (engine.Output, error) {
			if given := pc.Answers(); len(given) < len(tickets) {
				return engine.Output{Ask: &tickets[len(given)]}, nil
			}
			text := "saved"
			for _, a := range pc.Answers() {
				text += " " + string(a.Value)
			}
			return engine.Text(text), nil
		}))
		return nil
	})
}

var script = []enginetest.Answer{enginetest.Call("c1", "save", nil), {Fn: func(r inference.Request) (inference.Response, error) {
	return inference.Response{Message: inference.Assistant("I " + r.Messages[len(r.Messages)-1].Text), Usage: inference.Usage{InputTokens: 7, OutputTokens: 2}}, nil
}}}

func newEngine(t *testing.T, model inference.Model, plugins ...engine.Plugin) *engine.Engine {
	t.Helper()
	config, _ := enginetest.Config(t, plugins...)
	config.Model, config.NewID, config.Now = model, nil, nil
	config.Schemas = engine.SchemaCheckerFunc(func(_, _ inference.JSON) error { return nil })
	return enginetest.Engine(t, config)
}

var clerk = engine.AgentSpec{ID: "the clerk", Description: "saves things"}

// talk connects a client to an agent's server.
func talk(t *testing.T, s *sdk.Server, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	transport, err := dial(s)(t.Context())
	require.NoError(t, err)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, o).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func ask(t *testing.T, s *sdk.ClientSession, tool string, args any) (*sdk.CallToolResult, mcp.AgentResult) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	require.NoError(t, err)
	var out mcp.AgentResult
	text, err := json.Marshal(res.StructuredContent)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return res, out
}

func text(res *sdk.CallToolResult) string { return res.Content[0].(*sdk.TextContent).Text }

// An agent is a tool: a prompt starts a thread, whose id goes on with it, and the result
// has text and particulars.
func TestAgent(t *testing.T) {
	for _, version := range []string{legacy, current} {
		s, err := mcp.NewAgent(newEngine(t, enginetest.NewScript(append(script, enginetest.Say("anything else?"))...), careful()), clerk, mcp.AgentOptions{})
		require.NoError(t, err)
		client := talk(t, s, version, nil)
		tools, err := client.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, tools.Tools, 2)
		require.Equal(t, "saves things", tools.Tools[0].Description)
		res, out := ask(t, client, "the_clerk", map[string]string{"prompt": "save it"})
		require.False(t, res.IsError, text(res))
		require.Equal(t, "I saved", text(res))
		require.NotEmpty(t, out.Run)
		require.Greater(t, len(out.Thread), 20)
		require.Equal(t, mcp.AgentResult{Status: "done", Reason: "natural", Text: "I saved", Thread: out.Thread, Run: out.Run, Steps: 2, Input: 7, Output: 2}, out)
		res, again := ask(t, client, "the_clerk", map[string]string{"prompt": "thanks", "thread": out.Thread})
		require.Equal(t, "anything else?", text(res))
		require.Equal(t, out.Thread, again.Thread)
		for _, bad := range []any{map[string]string{"prompt": ""}, map[string]string{"prompt": "x", "thread": "mcp-AAAA"}, map[string]int{"prompt": 1}, map[string]string{"prompts": "x"}} {
			res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "the_clerk", Arguments: bad})
			require.NoError(t, err)
			require.True(t, res.IsError)
		}
	}
}

// A run that fails is an error result, that says why.
func TestAgentFails(t *testing.T) {
	s, err := mcp.NewAgent(newEngine(t, enginetest.NewScript(enginetest.Fail(errTest))), clerk, mcp.AgentOptions{})
	require.NoError(t, err)
	res, out := ask(t, talk(t, s, "", nil), "the_clerk", map[string]string{"prompt": "go"})
	require.True(t, res.IsError)
	require.Contains(t, text(res), errTest.Error())
	require.Equal(t, "error", out.Reason)

	_, err = mcp.NewAgent(newEngine(t, enginetest.NewScript()), engine.AgentSpec{ID: "x", PluginIDs: []string{"none"}}, mcp.AgentOptions{})
	require.ErrorIs(t, err, engine.ErrSpec)
	for _, o := range []mcp.AgentOptions{{Tool: "a b"}, {Threads: -1}, {Runs: -1}} {
		_, err = mcp.NewAgent(newEngine(t, enginetest.NewScript()), clerk, o)
		require.ErrorIs(t, err, mcp.ErrOptions)
	}
}

// questions are one of each kind that a form can ask, with what the user fills in and
// what the tool gets.
var questions = []struct {
	ticket gate.Ticket
	fill   map[string]any
	value  string
}{
	{gate.Ticket{Kind: gate.Confirm, Message: "Sure?"}, map[string]any{"approve": true}, ""},
	{gate.Ticket{Kind: gate.Text, Message: "Name?"}, map[string]any{"value": "Ada"}, `"Ada"`},
	{gate.Ticket{Kind: gate.Choice, Message: "Which?", Choices: gate.Choices("a", "b")}, map[string]any{"value": "b"}, `"b"`},
	{gate.Ticket{Kind: gate.MultiChoice, Message: "Which ones?", Choices: gate.Choices("a", "b")}, map[string]any{"value": []any{"b"}}, `["b"]`},
	{gate.Ticket{Kind: gate.Form, Message: "Where?", Schema: `{"type":"object","properties":{"n":{"type":"integer"}}}`}, map[string]any{"n": 1.0}, `{"n":1}`},
}

// Questions of a run are questions to the client's user where the client can ask, while
// the call runs or by its result, whichever the protocol has.
func TestAgentAsksTheUser(t *testing.T) {
	var tickets []gate.Ticket
	fills, want := map[string]map[string]any{}, "I saved"
	for _, q := range questions {
		tickets = append(tickets, q.ticket)
		fills[q.ticket.Message] = q.fill
		want += " " + q.value
	}
	for _, version := range []string{legacy, current} {
		s, err := mcp.NewAgent(newEngine(t, enginetest.NewScript(script...), careful(tickets...)), clerk, mcp.AgentOptions{})
		require.NoError(t, err)
		asked := 0
		client := talk(t, s, version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked++
			return &sdk.ElicitResult{Action: "accept", Content: fills[r.Params.Message]}, nil
		}})
		res, _ := ask(t, client, "the_clerk", map[string]string{"prompt": "save it"})
		require.Equal(t, want, text(res), version)
		require.Equal(t, len(tickets), asked)
	}
}

// A user who declines denies; one who only closes the form leaves the question open.
func TestAgentIsDenied(t *testing.T) {
	for _, version := range []string{legacy, current} {
		for action, says := range map[string]string{"decline": "I denied", "cancel": "The run waits for 1 answers", "accept": "I denied: no way"} {
			s, err := mcp.NewAgent(newEngine(t, enginetest.NewScript(script...), careful(gate.Ticket{Message: "Sure?"})), clerk, mcp.AgentOptions{})
			require.NoError(t, err)
			client := talk(t, s, version, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				res := &sdk.ElicitResult{Action: action}
				if action == "accept" {
					res.Content = map[string]any{"approve": false, "reason": "no way"}
				}
				return res, nil
			}})
			res, _ := ask(t, client, "the_clerk", map[string]string{"prompt": "save it"})
			require.Contains(t, text(res), says, version)
		}
	}
}

// Forms must not ask for secrets, so the run waits.
func TestAgentAsksNoSecrets(t *testing.T) {
	s, err := mcp.NewAgent(newEngine(t, enginetest.NewScript(script...), careful(gate.Ticket{Kind: gate.Secret, Message: "Password?"})), clerk, mcp.AgentOptions{})
	require.NoError(t, err)
	client := talk(t, s, "", &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		t.Error("the user is asked")
		return nil, errTest
	}})
	_, out := ask(t, client, "the_clerk", map[string]string{"prompt": "save it"})
	require.Equal(t, "waiting", out.Status)
	require.Equal(t, "secret", out.Tickets[0].Kind)
}

// A client that cannot ask gets the tickets, and answers them with the second tool.
func TestAgentWaits(t *testing.T) {
	for _, q := range append(questions[:len(questions):len(questions)], struct {
		ticket gate.Ticket
		fill   map[string]any
		value  string
	}{gate.Ticket{Kind: gate.Form, Message: "Deep?", Schema: `{"type":"object","properties":{"o":{"type":"object"}}}`}, map[string]any{"o": map[string]any{}}, `{"o":{}}`}) {
		s, err := mcp.NewAgent(newEngine(t, enginetest.NewScript(script...), careful(q.ticket)), clerk, mcp.AgentOptions{})
		require.NoError(t, err)
		client := talk(t, s, "", nil)
		res, out := ask(t, client, "the_clerk", map[string]string{"prompt": "save it"})
		require.Equal(t, "waiting", out.Status)
		require.Len(t, out.Tickets, 1)
		require.Contains(t, text(res), out.Tickets[0].Ticket)
		require.Contains(t, text(res), q.ticket.Message)
		answer := map[string]any{"ticket": out.Tickets[0].Ticket, "approve": true}
		if v, ok := q.fill["value"]; ok {
			answer["value"] = v
		} else if q.ticket.Kind == gate.Form {
			answer["value"] = q.fill
		}
		bad, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "the_clerk_answer", Arguments: map[string]any{"thread": out.Thread, "answers": []any{map[string]any{"ticket": "none", "approve": true}}}})
		require.NoError(t, err)
		require.True(t, bad.IsError)
		res, _ = ask(t, client, "the_clerk_answer", map[string]any{"thread": out.Thread, "answers": []any{answer}})
		require.Equal(t, "I saved "+q.value, text(res))
	}
	s, err := mcp.NewAgent(newEngine(t, enginetest.NewScript()), clerk, mcp.AgentOptions{NoAnswers: true})
	require.NoError(t, err)
	tools, err := talk(t, s, "", nil).ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, tools.Tools, 1)
}

// Each message of the run is told while it goes on, and the end of the call ends it.
func TestAgentProgressAndCancel(t *testing.T) {
	enginetest.CheckLeaks(t)
	hung, again := make(chan struct{}), false
	eng := newEngine(t, enginetest.NewScript(enginetest.Call("c1", "save", nil).And(enginetest.Say("let me see")), enginetest.Answer{Wait: func(ctx context.Context) error {
		if again {
			return errTest
		}
		again = true
		close(hung)
		<-ctx.Done()
		return ctx.Err()
	}}), careful())
	s, err := mcp.NewAgent(eng, clerk, mcp.AgentOptions{Runs: 1})
	require.NoError(t, err)
	lines := make(chan string, 9)
	client := talk(t, s, "", &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		lines <- r.Params.Message
	}})
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	go func() {
		told = append(told, <-lines, <-lines)
		<-hung
		cancel()
	}()
	params := &sdk.CallToolParams{Name: "the_clerk", Arguments: map[string]string{"prompt": "go"}}
	params.SetProgressToken("p")
	_, err = client.CallTool(ctx, params)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"calls save", "save: ok"}, told)
	require.Eventually(t, func() bool { // the run is over, so that there is room for another
		res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "the_clerk", Arguments: map[string]string{"prompt": "again"}})
		return err == nil && text(res) != "too many runs are under way; try again later"
	}, 30*time.Second, time.Millisecond)
}

// Over HTTP an agent is reached by a client of this package, and a thread only by the
// user who began it.
func TestAgentOverHTTP(t *testing.T) {
	enginetest.CheckLeaks(t)
	h, err := mcp.Handler(newEngine(t, enginetest.NewScript(append(script, enginetest.Say("anything else?"))...), careful()), clerk, mcp.AgentOptions{}, nil)
	require.NoError(t, err)
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}
	server := httptest.NewServer(auth.RequireBearerToken(verify, nil)(h))
	t.Cleanup(server.Close)
	as := func(user string) *mcp.Servers {
		return connect(t, mcp.Options{Servers: []mcp.Server{{Name: "clerk", URL: server.URL, Header: http.Header{"Authorization": {"Bearer " + user}}}}})
	}
	ada, ben := as("ada"), as("ben")
	res := one(t, ada.Shared(), "clerk__the_clerk", map[string]string{"prompt": "save it"})
	require.Equal(t, "I saved", res.Content)
	var out mcp.AgentResult
	require.NoError(t, json.Unmarshal([]byte(details(t, res).Structured), &out))
	thanks := map[string]string{"prompt": "thanks", "thread": out.Thread}
	require.Contains(t, one(t, ben.Shared(), "clerk__the_clerk", thanks).Content, "there is no such thread")
	require.Equal(t, "anything else?", one(t, ada.Shared(), "clerk__the_clerk", thanks).Content)
}

// Threads are dropped, the one unused for longest first, and opened again where a journal
// has them; an id that was never given out opens nothing.
func TestAgentThreads(t *testing.T) {
	kept := map[string]*engine.Thread{}
	eng := newEngine(t, inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		return inference.Response{Message: inference.Assistant(strings.Repeat("x", len(r.Messages)))}, nil
	}))
	open := func(_ context.Context, id string) (*engine.Thread, error) {
		if kept[id] == nil {
			var err error
			if kept[id], err = eng.NewThread(id); err != nil {
				return nil, err
			}
		}
		return kept[id], nil
	}
	for _, journal := range []bool{true, false} {
		o := mcp.AgentOptions{Threads: 2}
		if journal {
			o.OpenThread = open
		}
		s, err := mcp.NewAgent(eng, clerk, o)
		require.NoError(t, err)
		client := talk(t, s, "", nil)
		var threads []string
		for range 3 {
			_, out := ask(t, client, "the_clerk", map[string]string{"prompt": "a"})
			threads = append(threads, out.Thread)
		}
		res, _ := ask(t, client, "the_clerk", map[string]string{"prompt": "b", "thread": threads[2]})
		require.Equal(t, "xxx", text(res))
		for _, id := range []string{"mcp-MADEUP", "other"} {
			res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "the_clerk", Arguments: map[string]string{"prompt": "b", "thread": id}})
			require.NoError(t, err)
			require.True(t, res.IsError)
		}
		res, err = client.CallTool(t.Context(), &sdk.CallToolParams{Name: "the_clerk", Arguments: map[string]string{"prompt": "b", "thread": threads[0]}})
		require.NoError(t, err)
		require.Equal(t, !journal, res.IsError)
	}
}
