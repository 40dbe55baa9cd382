package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

func specs(tools []engine.Tool) map[string]inference.ToolSpec {
	out := map[string]inference.ToolSpec{}
	for _, t := range tools {
		out[t.Spec().Name] = t.Spec()
	}
	return out
}

// Tools are named after their server, keep description and schema, and hints count only
// where they are trusted.
func TestSpecs(t *testing.T) {
	no := false
	build := func(trust bool) map[string]inference.ToolSpec {
		s := newServer()
		schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
		h := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return say(""), nil }
		s.AddTool(&sdk.Tool{Name: "look", Description: "looks", InputSchema: schema, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, h)
		s.AddTool(&sdk.Tool{Name: "add", Title: "adds", InputSchema: schema, Annotations: &sdk.ToolAnnotations{DestructiveHint: &no}}, h)
		s.AddTool(&sdk.Tool{Name: "wipe", InputSchema: schema, Annotations: &sdk.ToolAnnotations{}}, h)
		s.AddTool(&sdk.Tool{Name: "deny.me", InputSchema: schema}, h)
		return specs(connect(t, mcp.Options{Servers: []mcp.Server{{Name: "x-1", Dial: dial(s), TrustHints: trust, Deny: []string{"deny*"}}}}).Tools())
	}
	got := build(false)
	require.Len(t, got, 3)
	require.Equal(t, "looks", got["x-1__look"].Description)
	require.Equal(t, "adds", got["x-1__add"].Description)
	require.JSONEq(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`, string(got["x-1__look"].Schema))
	for _, spec := range got {
		require.Equal(t, mcp.Kind, spec.Kind)
	}
	got = build(true)
	require.Equal(t, []string{"read", "write", mcp.Kind}, []string{got["x-1__look"].Kind, got["x-1__add"].Kind, got["x-1__wipe"].Kind})
}

// Arguments reach the server as the model wrote them, also numbers that no float holds.
// Those that a gate could read in another way than the server do not.
func TestArgumentsAsTheyAre(t *testing.T) {
	s := newServer()
	var got []string
	add(s, "echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		got = append(got, string(r.Params.Arguments))
		return say("ok"), nil
	})
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s)}}})
	for _, args := range []string{`{"n":12345678901234567890,"b":1,"a":[1.0,1e999]}`, ``, `{}`, `{"a":{"a":["a","a",{"a":"a"}]},"b":{}}`} {
		require.Equal(t, "ok", one(t, servers.Shared(), "s__echo", inference.JSON(args)).Content)
	}
	require.Equal(t, []string{`{"n":12345678901234567890,"b":1,"a":[1.0,1e999]}`, `{}`, `{}`, `{"a":{"a":["a","a",{"a":"a"}]},"b":{}}`}, got)
	for _, bad := range []string{`[1]`, `"x"`, `{`, `null`, `{"a":1,"a":2}`, `{"path":"a","PATH":"b"}`, `{"x":[{"k":1,"\u212a":2}]}`} {
		res := one(t, servers.Shared(), "s__echo", inference.JSON(bad))
		require.True(t, res.IsError, bad)
	}
	require.Len(t, got, 4, "what is no object goes to no server")
}

// Texts are the content; media, resources and structured content are in the details,
// and as much as the limits allow.
func TestResults(t *testing.T) {
	s := newServer()
	size := int64(3)
	results := map[string]*sdk.CallToolResult{
		"text":  {Content: []sdk.Content{&sdk.TextContent{Text: "a"}, &sdk.TextContent{Text: "b\xff"}}},
		"fail":  {Content: []sdk.Content{&sdk.TextContent{Text: "no such file"}}, IsError: true},
		"empty": {Content: []sdk.Content{}},
		"data":  {StructuredContent: map[string]any{"n": 1}},
		"list":  {StructuredContent: []any{1, "x"}, Content: []sdk.Content{&sdk.TextContent{Text: "two"}}},
		"media": {Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte("PNG")}, &sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("WAV")},
			&sdk.ResourceLink{URI: "file:///a", Name: "a", MIMEType: "text/plain", Size: &size},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", MIMEType: "text/plain", Text: "hello"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c", MIMEType: "x/y", Blob: []byte("1234")}}}},
		"long": {Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("ä", 1000)}, &sdk.ImageContent{Data: bytes.Repeat([]byte("x"), 1000)}},
			StructuredContent: strings.Repeat("y", 1000)},
	}
	for name, res := range results {
		add(s, name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return res, nil })
	}
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s)}}, Limits: mcp.Limits{Content: 201, Details: 300}})
	call := func(tool string) inference.ToolResult { return one(t, servers.Shared(), "s__"+tool, nil) }

	require.Equal(t, inference.ToolResult{CallID: "c1", Name: "s__text", Content: "a\nb\uFFFD", Outcome: inference.OutcomeOK}, call("text"))
	res := call("fail")
	require.True(t, res.IsError)
	require.Equal(t, "no such file", res.Content)
	require.Equal(t, "[no content]", call("empty").Content)
	res = call("data")
	require.Equal(t, `{"n":1}`, res.Content)
	require.Equal(t, inference.JSON(`{"server":"s","tool":"data","structured":{"n":1}}`), res.Details)
	res = call("list")
	require.Equal(t, "two", res.Content)
	require.Equal(t, inference.JSON(`[1,"x"]`), details(t, res).Structured)
	res = call("media")
	require.Equal(t, "[image image/png, 3 bytes]\n[audio audio/wav, 3 bytes]\n[resource file:///a a]\n[resource file:///b]\nhello\n[resource file:///c, x/y, 4 bytes]", res.Content)
	require.Equal(t, []inference.Part{
		{Kind: "image", MediaType: "image/png", Data: "PNG"}, {Kind: "audio", MediaType: "audio/wav", Data: "WAV"},
		{Kind: "file", MediaType: "text/plain", URI: "file:///a"}, {Kind: "file", MediaType: "text/plain", URI: "file:///b"},
		{Kind: "file", MediaType: "x/y", URI: "file:///c", Data: "1234"},
	}, details(t, res).Parts)
	res = call("long")
	require.Equal(t, strings.Repeat("ä", 100)+"\n[cut]", res.Content)
	require.Equal(t, mcp.Details{Server: "s", Tool: "long", Cut: true}, details(t, res))
}

// With Media the model sees images in its next request, and the history has them once.
func TestMediaForTheModel(t *testing.T) {
	s := newServer()
	add(s, "draw", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte("PNG")}}}, nil
	})
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s), Media: true}}})
	var seen []inference.Part
	w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "s__draw", nil), enginetest.Answer{Fn: func(r inference.Request) (inference.Response, error) {
		for _, m := range r.Messages {
			seen = append(seen, m.Parts...)
		}
		return inference.Response{Message: inference.Assistant("nice")}, nil
	}})
	require.NoError(t, w.run(t).Err)
	require.Equal(t, []inference.Part{{Kind: "image", MediaType: "image/png", Data: "PNG"}}, seen)
}

// Gates judge tools of servers like any other: by name, by kind and by arguments.
func TestUnderTheGates(t *testing.T) {
	s := newServer()
	calls := 0
	add(s, "wipe", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls++
		return say("gone"), nil
	})
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s)}}})
	w := newWorld(t, servers, func(c *engine.Config) {
		c.Plugins = append(c.Plugins, engine.NewPlugin("guard", func(r *engine.Registrar) error {
			r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				require.Equal(t, mcp.Kind, pc.Tool().Kind)
				return gate.Block("never " + pc.Call().Name + string(pc.Call().Args)), nil
			}))
			return nil
		}))
	}, enginetest.Call("c1", "s__wipe", map[string]any{"all": true}), enginetest.Say("done"))
	w.run(t)
	require.Contains(t, w.results()[0].Content, `never s__wipe{"all":true}`)
	require.Equal(t, inference.OutcomeBlocked, w.results()[0].Outcome)
	require.Zero(t, calls)
}

// hanging is a server whose tool "hang" tells when it began and when it was told to end.
func hanging() (s *sdk.Server, began, told chan struct{}) {
	s, began, told = newServer(), make(chan struct{}), make(chan struct{})
	add(s, "hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		close(told)
		return say("too late"), nil
	})
	add(s, "echo", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return say("here"), nil })
	return s, began, told
}

// A call that is cancelled returns at once, the server is told, and its late answer
// changes nothing.
func TestCancellation(t *testing.T) {
	enginetest.CheckLeaks(t)
	s, began, told := hanging()
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s)}}})
	w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "s__hang", nil), enginetest.Say("done"))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	w.ctx = ctx
	go func() { <-began; cancel(errTest) }()
	require.ErrorIs(t, w.run(t).Err, errTest)
	<-told
	require.Equal(t, inference.OutcomeCancelled, w.results()[0].Outcome)
	require.Equal(t, "here", one(t, servers.Shared(), "s__echo", nil).Content)
}

// A call that takes longer than its server's timeout ends just then, in the same way.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, told := hanging()
		servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s), Timeout: time.Hour}}})
		w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "s__hang", nil), enginetest.Call("c2", "s__echo", nil), enginetest.Say("done"))
		start := time.Now()
		require.NoError(t, w.run(t).Err)
		<-told
		require.Equal(t, time.Hour, time.Since(start))
		require.Contains(t, w.results()[0].Content, "took longer than its server's timeout")
		require.Equal(t, "here", w.results()[1].Content)
	})
}

// The time that a question waits is not the call's.
func TestTimeoutWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsker(legacy)
		servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "shop", Dial: dial(s.Server), Elicit: true, Timeout: time.Minute}}})
		w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "shop__order", nil), enginetest.Say("done"))
		res := w.run(t)
		for res.Status == phase.Waiting {
			time.Sleep(9 * time.Minute)
			res = w.resume(t, yes(res.Tickets[0], value(res.Tickets[0])))
		}
		require.NoError(t, res.Err)
		require.Equal(t, "order: map[name:Ada] map[size:3]", w.results()[0].Content)
	})
}

// A server that says nothing at all is given up on, at every stage.
func TestSilentServer(t *testing.T) {
	enginetest.CheckLeaks(t)
	silent := func(context.Context) (sdk.Transport, error) {
		in, _ := io.Pipe()
		_, out := io.Pipe() // nobody reads, so that also writing hangs
		return &sdk.IOTransport{Reader: in, Writer: out}, nil
	}
	_, err := mcp.Connect(t.Context(), mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: silent, ConnectTimeout: 20 * time.Millisecond}}, Limits: mcp.Limits{Close: 10 * time.Millisecond}})
	require.ErrorContains(t, err, "it was not ready within 20ms")
	require.ErrorIs(t, err, mcp.ErrDown)

	servers, err := mcp.Connect(t.Context(), mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: silent, Optional: true, ConnectTimeout: 20 * time.Millisecond}}})
	require.NoError(t, err)
	require.Empty(t, servers.Tools())
	require.NoError(t, servers.Close(t.Context()))
}

// What a server says of a call under way reaches Options.Progress; what it says of
// others does not.
func TestProgress(t *testing.T) {
	s := newServer()
	add(s, "work", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, token := range []any{"made up", r.Params.GetProgressToken()} {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "half\x00"}); err != nil {
				return nil, err
			}
		}
		return say("ok"), nil
	})
	news := make(chan mcp.Progress, 9)
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s)}}, Progress: func(p mcp.Progress) { news <- p }})
	one(t, servers.Shared(), "s__work", nil)
	got := <-news
	got.Run = ""
	require.Equal(t, mcp.Progress{Server: "s", Tool: "work", Thread: "thread", Call: "c1", Done: 1, Total: 2, Message: "half"}, got)
	require.Empty(t, news)
}

// Arguments are checked by the schema before the gates, if there is a checker.
func TestSchemasOfArguments(t *testing.T) {
	s := newServer()
	add(s, "echo", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return say("ok"), nil })
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{Name: "s", Dial: dial(s)}},
		Schemas: engine.SchemaCheckerFunc(func(schema, value inference.JSON) error {
			if schema == `{"type":"object"}` && value == `{"n":"x"}` {
				return errTest
			}
			return nil
		})})
	require.Equal(t, errTest.Error(), one(t, servers.Shared(), "s__echo", inference.JSON(`{"n":"x"}`)).Content)
	require.Equal(t, "ok", one(t, servers.Shared(), "s__echo", inference.JSON(`{"n":1}`)).Content)
}
