package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// modeVar makes the test binary a server's program, see program_test.go.
const modeVar = "FIXPOINT_TEST_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		os.Exit(program(mode))
	}
	os.Exit(m.Run())
}

// legacy is the newest version of the protocol in which servers ask while a call runs.
const legacy = "2025-11-25"

func newServer(versions ...string) *sdk.Server {
	return sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: versions})
}

// dial returns a way to a server in this process.
func dial(s *sdk.Server) func(context.Context) (sdk.Transport, error) {
	return func(context.Context) (sdk.Transport, error) {
		ours, theirs := sdk.NewInMemoryTransports()
		_, err := s.Connect(context.Background(), theirs, nil)
		return ours, err
	}
}

// add gives the server a tool that takes any object.
func add(s *sdk.Server, name string, fn func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	s.AddTool(&sdk.Tool{Name: name, Description: "does " + name, InputSchema: json.RawMessage(`{"type":"object"}`)}, fn)
}

func say(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// notices keeps what a test's servers were in the news with.
type notices struct {
	mu   sync.Mutex
	list []mcp.Notice
	news chan struct{}
}

func newNotices() *notices { return &notices{news: make(chan struct{}, 1)} }

func (n *notices) add(one mcp.Notice) {
	n.mu.Lock()
	n.list = append(n.list, one)
	n.mu.Unlock()
	select {
	case n.news <- struct{}{}:
	default:
	}
}

func (n *notices) of(kind mcp.NoticeKind) (texts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.list {
		if one.Kind == kind {
			texts = append(texts, one.Text)
		}
	}
	return texts
}

// await waits until there are so many notices of the kind.
func (n *notices) await(t *testing.T, kind mcp.NoticeKind, count int) {
	t.Helper()
	for len(n.of(kind)) < count {
		select {
		case <-n.news:
		case <-time.After(30 * time.Second):
			require.FailNow(t, "no notice", "%s: %v", kind, n.of(kind))
		}
	}
}

// connect connects for the time of the test.
func connect(t *testing.T, o mcp.Options) *mcp.Servers {
	t.Helper()
	s, err := mcp.Connect(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// world is a thread of an agent with the tools of servers.
type world struct {
	thread *engine.Thread
	rec    *enginetest.Recorder
	spec   engine.AgentSpec
	ctx    context.Context
}

func newWorld(t *testing.T, s engine.Plugin, change func(*engine.Config), answers ...enginetest.Answer) *world {
	t.Helper()
	config, rec := enginetest.Config(t, s)
	config.Model = enginetest.NewScript(answers...)
	config.Now = nil
	config.Schemas = engine.SchemaCheckerFunc(func(_, _ inference.JSON) error { return nil })
	if change != nil {
		change(&config)
	}
	th, err := enginetest.Engine(t, config).NewThread("thread")
	require.NoError(t, err)
	return &world{thread: th, rec: rec, spec: engine.AgentSpec{ID: "a"}, ctx: t.Context()}
}

func (w *world) run(t *testing.T) *engine.Result {
	t.Helper()
	res, err := w.thread.Run(w.ctx, w.spec, engine.Prompt("go"))
	require.NoError(t, err)
	return res
}

func (w *world) resume(t *testing.T, answers ...phase.Answer) *engine.Result {
	t.Helper()
	var ds []engine.Decision
	for _, a := range answers {
		ds = append(ds, engine.Decision{Answer: a})
	}
	res, err := w.thread.Resume(w.ctx, w.spec, engine.Input{}, ds...)
	require.NoError(t, err)
	return res
}

// results returns the results of all calls so far.
func (w *world) results() (list []inference.ToolResult) {
	for _, e := range enginetest.Select[engine.ToolFinished](w.rec.Events()) {
		list = append(list, e.Result)
	}
	return list
}

// one calls a tool once and returns its result.
func one(t *testing.T, s engine.Plugin, tool string, args any) inference.ToolResult {
	t.Helper()
	w := newWorld(t, s, nil, enginetest.Call("c1", tool, args), enginetest.Say("done"))
	require.NoError(t, w.run(t).Err)
	results := w.results()
	require.Len(t, results, 1)
	return results[0]
}

func details(t *testing.T, r inference.ToolResult) (d mcp.Details) {
	t.Helper()
	require.NoError(t, r.Details.Decode(&d))
	return d
}

var errTest = errors.New("the test's own")
