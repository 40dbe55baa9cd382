package mcp_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
)

// program is what the test binary does as a server's program.
func program(mode string) int {
	switch mode {
	case "dead":
		fmt.Fprintln(os.Stderr, "no licence\x1b[31m found")
		return 3
	case "garbage":
		fmt.Println("Welcome to my server!")
		time.Sleep(time.Hour)
	case "deaf":
		time.Sleep(time.Hour)
	case "flood":
		fmt.Print(`"`)
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	case "agent":
		eng, err := engine.New(engine.Config{Model: enginetest.NewScript(enginetest.Say("at your service"))})
		if err == nil {
			err = mcp.Serve(context.Background(), eng, engine.AgentSpec{ID: "butler"}, mcp.AgentOptions{})
		}
		if err != nil {
			return 1
		}
		return 0
	case "child": // what a program leaves behind
		time.Sleep(time.Hour)
	}
	s := newServer()
	add(s, "echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return say(string(r.Params.Arguments)), nil
	})
	add(s, "env", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		env := os.Environ()
		slices.Sort(env)
		return say(strings.Join(env, "\n")), nil
	})
	add(s, "pid", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return say(strconv.Itoa(os.Getpid())), nil
	})
	add(s, "crash", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(7)
		return nil, nil
	})
	add(s, "spawn", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{modeVar + "=child"}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return say(strconv.Itoa(cmd.Process.Pid)), nil
	})
	add(s, "hang", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		time.Sleep(time.Hour)
		return nil, nil
	})
	if mode == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
	if mode == "stubborn" {
		time.Sleep(time.Hour)
	}
	return 0
}

// own returns this test binary as a server.
func own(t *testing.T, mode string) mcp.Server {
	t.Helper()
	return mcp.Server{Name: "own", Command: os.Args[0], Env: map[string]string{modeVar: mode}}
}
