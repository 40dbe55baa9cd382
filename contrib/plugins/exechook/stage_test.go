//go:build unix

package exechook_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// stage is a directory with hook programs, and an engine with tools whose calls are
// counted.
type stage struct {
	t       *testing.T
	dir     string
	options exechook.Options
	plugins []engine.Plugin
	change  func(*engine.Config)
	plugin  *exechook.Plugin // of the last engine
	resolve gate.Resolver    // behind the plugin's own resolver; nil for no resolver at all
	spec    engine.AgentSpec

	mu      sync.Mutex
	ran     []string // tool and arguments, in the order of the calls
	notices []exechook.Notice
	rec     *enginetest.Recorder
}

func newStage(t *testing.T) *stage {
	enginetest.CheckLeaks(t)
	s := &stage{t: t, dir: t.TempDir(), spec: engine.AgentSpec{ID: "a"}}
	s.options.Dir = s.dir
	s.options.Notify = func(_ context.Context, n exechook.Notice) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notices = append(s.notices, n)
	}
	return s
}

// script writes a program and returns the command that runs it.
func (s *stage) script(name, body string) string {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(body), 0o600))
	return "sh ./" + name
}

// on adds a rule.
func (s *stage) on(e exechook.Event, matcher, command string, change ...func(*exechook.Rule)) {
	r := exechook.Rule{Event: e, Matcher: matcher, Command: command, File: "s.json", Line: 1 + len(s.options.Settings.Rules)}
	for _, c := range change {
		c(&r)
	}
	s.options.Settings.Rules = append(s.options.Settings.Rules, r)
}

func (s *stage) file(name string) string {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	require.NoError(s.t, err)
	return string(data)
}

// fifo makes a named pipe.
func (s *stage) fifo(name string) string {
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, syscall.Mkfifo(path, 0o600))
	return path
}

// watch returns a function that waits until no process has the pipe open any more.
func (s *stage) watch(name string) (allGone func()) {
	// Not by package os: its poller does not see on every system that the last writer went.
	fd, err := syscall.Open(s.fifo(name), syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(s.t, err)
	require.NoError(s.t, syscall.SetNonblock(fd, false))
	s.t.Cleanup(func() { _ = syscall.Close(fd) })
	return func() {
		done := make(chan error, 1)
		go func() {
			for buf := make([]byte, 64); ; {
				n, err := syscall.Read(fd, buf)
				if n == 0 || err != nil && !errors.Is(err, syscall.EINTR) {
					done <- err
					return
				}
			}
		}()
		select {
		case err := <-done:
			require.NoError(s.t, err)
		case <-time.After(20 * time.Second):
			require.Fail(s.t, "a process is left")
		}
	}
}

type toolArgs map[string]any

func (s *stage) tools(r *engine.Registrar) error {
	for _, name := range []string{"shell", "write_file", "mcp__disk__wipe", "fail"} {
		spec := inference.ToolSpec{Name: name, Kind: "exec", Schema: `{"type":"object","properties":{"command":{"type":"string"}}}`}
		r.Tool(engine.NewTool(spec, func(_ context.Context, pc *phase.Context, _ toolArgs) (engine.Output, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ran = append(s.ran, name+string(pc.Call().Args))
			if name == "fail" {
				return engine.Output{Content: "it broke", IsError: true}, nil
			}
			return engine.Output{Content: "did " + name, Details: `{"code":0}`}, nil
		}))
	}
	return nil
}

func (s *stage) engine(model inference.Model) *engine.Engine {
	p := exechook.New(s.options)
	s.plugin = p
	all := append([]engine.Plugin{p, engine.NewPlugin("tools", s.tools)}, s.plugins...)
	config, rec := enginetest.Config(s.t, all...)
	config.Model, s.rec = model, rec
	if s.resolve != nil {
		config.Resolver = p.Resolver(s.resolve)
	}
	if s.change != nil {
		s.change(&config)
	}
	return enginetest.Engine(s.t, config)
}

// play has the model give the answers, and then an end to the run.
func (s *stage) play(answers ...enginetest.Answer) *engine.Result {
	s.t.Helper()
	model := enginetest.NewScript(append(answers, enginetest.Say("done"))...)
	return s.run(s.t.Context(), model)
}

func (s *stage) run(ctx context.Context, model inference.Model) *engine.Result {
	s.t.Helper()
	res, err := s.engine(model).Run(ctx, s.spec, engine.Prompt("go"))
	require.NoError(s.t, err)
	return res
}

// resolved returns the last verdict about the call.
func (s *stage) resolved(call string) (last engine.GateResolved) {
	for _, e := range enginetest.Select[engine.GateResolved](s.rec.Events()) {
		if e.Call == call {
			last = e
		}
	}
	return last
}

// result returns what the model was told about the call.
func (s *stage) result(call string) inference.ToolResult {
	var found []inference.ToolResult
	for _, e := range enginetest.Select[engine.ToolFinished](s.rec.Events()) {
		if e.Call.ID == call {
			found = append(found, e.Result)
		}
	}
	require.Len(s.t, found, 1, "one result for each call")
	return found[0]
}

// bash has the model call the shell with that command.
func bash(id, command string) enginetest.Answer {
	return enginetest.Call(id, "shell", map[string]string{"command": command})
}

func timeout(d time.Duration) func(*exechook.Rule) {
	return func(r *exechook.Rule) { r.Timeout = d }
}

func failOpen(open bool) func(*exechook.Rule) {
	return func(r *exechook.Rule) { r.FailOpen = &open }
}

// lastRequest returns the texts of the messages of the model's last request.
func lastRequest(m *enginetest.Script) string {
	requests := m.Requests()
	var texts []string
	for _, msg := range requests[len(requests)-1].Messages {
		texts = append(texts, string(msg.Role)+": "+msg.Text)
	}
	return strings.Join(texts, "\n")
}

// signal returns a function that waits until somebody wrote to the pipe.
func (s *stage) signal(name string) (written func() error) {
	path := s.fifo(name)
	return func() error {
		_, err := os.ReadFile(path)
		return err
	}
}
