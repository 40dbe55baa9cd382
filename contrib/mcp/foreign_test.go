//go:build foreign

package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// foreign returns a path below the folder that .ci/run installs servers in.
func foreign(t *testing.T, elem ...string) string {
	t.Helper()
	dir := os.Getenv("FIXPOINT_MCP_SERVERS")
	require.NotEmpty(t, dir, "FIXPOINT_MCP_SERVERS is not set; .ci/run says how to fill such a folder")
	return filepath.Join(append([]string{dir}, elem...)...)
}

// A server that others wrote in Python, from a package registry: its tools have their
// schemas, results are texts, and its errors are told.
func TestPythonServer(t *testing.T) {
	servers := connect(t, mcp.Options{Servers: []mcp.Server{{
		Name: "time", Command: foreign(t, "bin", "python"), Args: []string{"-m", "mcp_server_time", "--local-timezone", "UTC"}, TrustHints: true,
	}}})
	all := specs(servers.Tools())
	require.Contains(t, string(all["time__get_current_time"].Schema), `"timezone"`)
	require.NotEmpty(t, all["time__convert_time"].Description)
	res := one(t, servers.Shared(), "time__convert_time", map[string]string{"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo"})
	require.False(t, res.IsError, res.Content)
	require.Contains(t, res.Content, "T01:30:00+09:00")
	res = one(t, servers.Shared(), "time__get_current_time", map[string]string{"timezone": "Nowhere/At_All"})
	require.True(t, res.IsError)
	require.Contains(t, res.Content, "Nowhere/At_All")
}

// The protocol's own server for tests of clients, in Node.js: texts, images, resources,
// progress, cancellation, a question to the user, resources and prompts as context.
func TestEverythingServer(t *testing.T) {
	var mu sync.Mutex
	progress := 0
	servers := connect(t, mcp.Options{
		Servers: []mcp.Server{{
			Name: "all", Command: foreign(t, "bin", "node"), Args: []string{foreign(t, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js"), "stdio"},
			Elicit: true, Resources: true,
		}},
		Progress: func(mcp.Progress) { mu.Lock(); progress++; mu.Unlock() },
	})
	call := func(tool string, args any) inference.ToolResult {
		res := one(t, servers.Shared(), "all__"+tool, args)
		require.False(t, res.IsError, res.Content)
		return res
	}
	require.Equal(t, "Echo: hi", call("echo", map[string]string{"message": "hi"}).Content)
	require.Contains(t, call("get-sum", map[string]int{"a": 2, "b": 3}).Content, "5")
	image := call("get-tiny-image", nil)
	require.Contains(t, image.Content, "[image image/png, ")
	require.Equal(t, inference.PartImage, details(t, image).Parts[0].Kind)
	require.Contains(t, string(details(t, call("get-structured-content", map[string]string{"location": "Chicago"})).Structured), "temperature")
	call("trigger-long-running-operation", map[string]float64{"duration": 0.2, "steps": 2})
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return progress >= 2 }, 30*time.Second, time.Millisecond)
	require.Contains(t, call("list_resources", nil).Content, "demo://")

	ctx, cancel := context.WithCancelCause(t.Context())
	w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "all__trigger-long-running-operation", map[string]float64{"duration": 3600, "steps": 2}), enginetest.Say("done"))
	w.ctx = ctx
	time.AfterFunc(100*time.Millisecond, func() { cancel(errTest) })
	require.ErrorIs(t, w.run(t).Err, errTest)

	var asked []gate.Ticket
	w = newWorld(t, servers.Shared(), func(c *engine.Config) {
		c.Resolver = gate.ResolverFunc(func(_ context.Context, t gate.Ticket) (phase.Answer, error) {
			asked = append(asked, t)
			return yes(t, `{"name":"Ada"}`), nil
		})
	}, enginetest.Call("c1", "all__trigger-elicitation-request", nil), enginetest.Say("done"))
	w.spec = withSection("a", `{"context":[{"server":"all","prompt":"simple-prompt"}]}`)
	require.NoError(t, w.run(t).Err)
	require.Len(t, asked, 1)
	require.Contains(t, w.results()[0].Content, "Ada")
	require.Equal(t, inference.RoleUser, engine.Transcript.Get(w.thread.Snapshot()).At(1).Role)
}
