//go:build unix

package mcp_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

// gone waits until a process is not there any more, or is a zombie of nobody's.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(n, 0), syscall.ESRCH) }, 30*time.Second, time.Millisecond)
}

// A program is a server: it runs in a process of its own, with little of our
// environment, and is gone with all its children when the engine is closed.
func TestProgram(t *testing.T) {
	enginetest.CheckLeaks(t)
	t.Setenv("FIXPOINT_TEST_SECRET", "hunter2")
	servers, err := mcp.Connect(t.Context(), mcp.Options{Servers: []mcp.Server{own(t, "plain")}})
	require.NoError(t, err)
	require.Equal(t, `{"n":1}`, one(t, servers.Shared(), "own__echo", inference.JSON(`{"n":1}`)).Content)
	env := one(t, servers.Shared(), "own__env", nil).Content
	require.Contains(t, env, modeVar+"=plain")
	require.NotContains(t, env, "hunter2")
	pid := one(t, servers.Shared(), "own__pid", nil).Content
	child := one(t, servers.Shared(), "own__spawn", nil).Content

	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{servers}, Model: enginetest.NewScript()})
	require.NoError(t, err)
	require.NoError(t, eng.Close(t.Context()))
	gone(t, pid)
	gone(t, child)
	res := one(t, servers.Shared(), "own__echo", nil)
	require.Contains(t, res.Content, mcp.ErrDown.Error())
}

// A program that does not go is killed, also in the middle of a call.
func TestStubbornProgram(t *testing.T) {
	servers, err := mcp.Connect(t.Context(), mcp.Options{Servers: []mcp.Server{own(t, "stubborn")}, Limits: mcp.Limits{Close: 20 * time.Millisecond}})
	require.NoError(t, err)
	pid := one(t, servers.Shared(), "own__pid", nil).Content
	w := newWorld(t, servers.Shared(), nil, enginetest.Call("c1", "own__hang", nil), enginetest.Say("done"))
	ended := make(chan *engine.Result)
	go func() {
		res, _ := w.thread.Run(t.Context(), w.spec, engine.Prompt("go"))
		ended <- res
	}()
	for len(enginetest.Select[engine.ToolStarted](w.rec.Events())) == 0 {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, servers.Close(context.Background()))
	gone(t, pid)
	require.NoError(t, (<-ended).Err)
	require.True(t, w.results()[0].IsError)
	require.Contains(t, w.results()[0].Content, mcp.ErrLost.Error())
}

// A crash ends the call that was under way with a clear error, and nothing is run twice.
// The next call finds a new process; one that crashes again and again is left alone for
// a while.
func TestCrash(t *testing.T) {
	enginetest.CheckLeaks(t)
	news := newNotices()
	servers := connect(t, mcp.Options{Servers: []mcp.Server{own(t, "plain")}, Notify: news.add})
	first := one(t, servers.Shared(), "own__pid", nil).Content
	res := one(t, servers.Shared(), "own__crash", nil)
	require.True(t, res.IsError)
	require.Contains(t, res.Content, mcp.ErrLost.Error())
	require.Contains(t, res.Content, "exit status 7")
	require.Contains(t, res.Content, "out of memory")
	news.await(t, mcp.ServerEnded, 1)
	gone(t, first)
	second := one(t, servers.Shared(), "own__pid", nil)
	require.False(t, second.IsError, second.Content)
	require.NotEqual(t, first, second.Content)
	news.await(t, mcp.ServerBack, 1)

	one(t, servers.Shared(), "own__crash", nil)
	news.await(t, mcp.ServerEnded, 2)
	res = one(t, servers.Shared(), "own__pid", nil)
	require.Contains(t, res.Content, mcp.ErrDown.Error())
	require.Contains(t, res.Content, "started again in")
}

// What cannot be a server is an error that tells why, and leaves no process behind.
func TestNoServers(t *testing.T) {
	enginetest.CheckLeaks(t)
	for name, c := range map[string]struct {
		change func(*mcp.Server)
		says   string
	}{
		"dead":    {func(s *mcp.Server) { s.Env[modeVar] = "dead" }, "exit status 3; its last words: no licence[31m found"},
		"garbage": {func(s *mcp.Server) { s.Env[modeVar] = "garbage" }, "invalid character"},
		"deaf":    {func(s *mcp.Server) { s.Env[modeVar], s.ConnectTimeout = "deaf", 100*time.Millisecond }, "was not ready within 100ms"},
		"flood":   {func(s *mcp.Server) { s.Env[modeVar] = "flood" }, "exceeded the configured maximum line length"},
		"missing": {func(s *mcp.Server) { s.Command = "/there/is/none" }, "no such file"},
		"dir":     {func(s *mcp.Server) { s.Dir = "/there/is/none" }, "there is no working directory"},
	} {
		t.Run(name, func(t *testing.T) {
			server := own(t, "plain")
			c.change(&server)
			_, err := mcp.Connect(t.Context(), mcp.Options{Servers: []mcp.Server{server}, Limits: mcp.Limits{Close: 20 * time.Millisecond, Message: 1 << 20}})
			require.ErrorIs(t, err, mcp.ErrDown)
			require.Contains(t, strings.ReplaceAll(err.Error(), "\n", " "), c.says)
		})
	}
}

// A spec with two servers and a delegate runs as it is written: each agent has the tools
// of its servers, and secrets come from the environment.
func TestSpecWithServers(t *testing.T) {
	enginetest.CheckLeaks(t)
	text := strings.NewReplacer("PROGRAM", strconv.Quote(os.Args[0]), "MODE", strconv.Quote(modeVar)).Replace(`[
	  {"id": "chief", "delegates": ["clerk"], "sections": {"mcp": {"servers": {
	    "one": {"command": PROGRAM, "env": {MODE: "plain"}, "env_from": {"KEY": "FIXPOINT_TEST_KEY"}},
	    "two": {"command": PROGRAM, "env": {MODE: "plain"}}}, "deny": ["two__crash"]}}},
	  {"id": "clerk", "model_id": "clerk", "sections": {"mcp": {"servers": {
	    "three": {"command": PROGRAM, "env": {MODE: "plain"}}}}}}]`)
	specs, err := engine.ParseSpecs("agents.json", []byte(text))
	require.NoError(t, err)
	t.Setenv("FIXPOINT_TEST_KEY", "hunter2")
	list, err := mcp.FromSpecs(os.LookupEnv, specs...)
	require.NoError(t, err)
	servers, err := mcp.Connect(t.Context(), mcp.Options{Servers: list})
	require.NoError(t, err)
	w := newWorld(t, servers, func(c *engine.Config) {
		c.Agents = specs[1:]
		c.Models = map[string]inference.Model{"clerk": enginetest.NewScript(
			enginetest.Call("c1", "three__echo", map[string]int{"n": 3}).And(enginetest.Call("c2", "one__echo", nil)), enginetest.Say("done"))}
	}, enginetest.Call("c1", "one__env", nil).And(enginetest.Call("c2", "two__echo", map[string]int{"n": 2}), enginetest.Call("c3", "two__crash", nil),
		enginetest.Call("c4", engine.DelegatePrefix+"clerk", map[string]string{"input": "go"})), enginetest.Say("done"))
	w.spec = specs[0]
	require.NoError(t, w.run(t).Err)
	got := map[string]inference.ToolResult{}
	for _, r := range w.results() {
		got[r.Name] = r
	}
	require.Contains(t, got["one__env"].Content, "KEY=hunter2")
	require.NotContains(t, got["one__env"].Content, "FIXPOINT_TEST_KEY")
	require.Equal(t, `{"n":2}`, got["two__echo"].Content)
	require.Equal(t, inference.OutcomeBlocked, got["two__crash"].Outcome)
	require.Equal(t, `{"n":3}`, got["three__echo"].Content)
	require.Equal(t, inference.OutcomeBlocked, got["one__echo"].Outcome)
	require.NoError(t, servers.Close(t.Context()))
}

// An agent can be a program that is a server.
func TestAgentAsProgram(t *testing.T) {
	enginetest.CheckLeaks(t)
	servers, err := mcp.Connect(t.Context(), mcp.Options{Servers: []mcp.Server{own(t, "agent")}})
	require.NoError(t, err)
	require.Equal(t, "at your service", one(t, servers.Shared(), "own__butler", map[string]string{"prompt": "hello"}).Content)
	require.NoError(t, servers.Close(t.Context()))
}
