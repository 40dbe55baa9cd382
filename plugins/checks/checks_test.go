package checks_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/state"
)

var (
	later = state.NewCell("test.later", state.Options[bool]{})
	acted = state.NewCell("test.acted", state.Options[bool]{})
	act   = phase.NewAction[string]("test.act", phase.RunEnd)
)

// agent is an engine with the plugin, a tool that writes a file, and at run_end a hook in
// tier 0 that schedules an action and one in tier 1 that notes that it ran.
type agent struct {
	t     *testing.T
	dir   string
	log   string // each command adds a line to it
	model *enginetest.Script
	th    *engine.Thread
	spec  engine.AgentSpec
	ctx   context.Context
}

func newAgent(t *testing.T, repository bool, settings map[string]any, configure func(*engine.Config), answers ...enginetest.Answer) *agent {
	t.Helper()
	for name, value := range map[string]string{"HOME": t.TempDir(), "XDG_CONFIG_HOME": t.TempDir(), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		t.Setenv(name, value)
	}
	a := &agent{t: t, dir: t.TempDir(), log: filepath.Join(t.TempDir(), "log"), ctx: t.Context()}
	if repository {
		cmd := exec.CommandContext(t.Context(), "git", "init", "-q")
		cmd.Dir = a.dir
		require.NoError(t, cmd.Run())
	}
	t.Setenv("CHECK_LOG", a.log)
	t.Setenv("SOME_TOKEN", "secret")
	for name, v := range map[string]any{"env": []string{"CHECK_LOG"}} {
		if _, given := settings[name]; !given {
			settings[name] = v
		}
	}
	a.section(settings)
	type args struct{ Path, Text string }
	work := engine.NewPlugin("work", func(r *engine.Registrar) error {
		r.Key(later, acted)
		r.Action(act.Handle(func(context.Context, *phase.Context, string) (cmd phase.Command, err error) {
			return *cmd.Update(acted.With(true)), nil
		}))
		r.Hook(phase.RunEnd, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			return *cmd.Schedule(act.New("")), nil
		}))
		r.Hook(phase.RunEnd, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			return *cmd.Update(later.With(true)), nil
		}), engine.Tier(1), engine.Writes(later))
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "put", Kind: "write"}, func(_ context.Context, _ *phase.Context, in args) (engine.Output, error) {
			return engine.Text("ok"), os.WriteFile(filepath.Join(a.dir, in.Path), []byte(in.Text), 0o644)
		}))
		return nil
	})
	config, _ := enginetest.Config(t, work, checks.New(checks.Options{Dir: a.dir}))
	a.model = enginetest.NewScript(answers...)
	config.Model = a.model
	if configure != nil {
		configure(&config)
	}
	var err error
	a.th, err = enginetest.Engine(t, config).NewThread("t")
	require.NoError(t, err)
	return a
}

func (a *agent) section(settings map[string]any) {
	text, err := json.Marshal(settings)
	require.NoError(a.t, err)
	a.spec = engine.AgentSpec{ID: "a", MaxRounds: a.spec.MaxRounds, Sections: map[string]inference.JSON{checks.Name: inference.JSON(text)}}
}

func (a *agent) run() *engine.Result {
	a.t.Helper()
	res, err := a.th.Run(a.ctx, a.spec, engine.Prompt("go"))
	require.NoError(a.t, err)
	return res
}

// ran returns how many commands have run.
func (a *agent) ran() int {
	text, err := os.ReadFile(a.log)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(a.t, err)
	return strings.Count(string(text), "\n")
}

// told returns the system messages of the thread.
func (a *agent) told() (out []string) {
	for _, m := range engine.Transcript.Get(a.th.Snapshot()).All() {
		if m.Role == inference.RoleSystem {
			out = append(out, m.Text)
		}
	}
	return out
}

func (a *agent) last() checks.Verdict { return checks.Last.Get(a.th.Snapshot()) }

func (a *agent) laterTier() bool { return later.Get(a.th.Snapshot()) }

func put(id, path, text string) enginetest.Answer {
	return enginetest.Call(id, "put", map[string]string{"Path": path, "Text": text})
}

// shell is a command that notes that it ran.
func shell(script string) map[string]any {
	return map[string]any{"name": "tests", "args": []string{"sh", "-c", `echo ran >> "$CHECK_LOG"; ` + script}}
}

func commands(list ...map[string]any) map[string]any { return map[string]any{"commands": list} }

// isGood passes when the file says that it is good.
var isGood = shell(`grep good file || { echo "token=$SOME_TOKEN, want good" >&2; exit 3; }`)

// Capability G2. A check that fails keeps every later tier from running at the end of
// the run, while what its own tier scheduled still happens; one that passes does not.
func TestFailedCheckStopsLaterTiers(t *testing.T) {
	for _, repository := range []bool{true, false} {
		for text, pass := range map[string]bool{"good": true, "bad": false} {
			a := newAgent(t, repository, commands(isGood), nil, put("c1", "file", text),
				enginetest.Say("done"), enginetest.Say("done"), enginetest.Say("done"), enginetest.Say("done"))
			res := a.run()
			require.NoError(t, res.Err)
			require.Equal(t, phase.ReasonNatural, res.Reason)
			require.Equal(t, pass, a.last().Passed())
			require.Equal(t, pass, a.laterTier())
			require.True(t, acted.Get(a.th.Snapshot()))
			require.Equal(t, 1, a.ran(), "the same files are not checked twice")
			if !pass {
				require.Len(t, a.told(), 3, "as often as attempts allows")
			}
		}
	}
}

// What failed is told to the model, which goes on and puts it right.
func TestModelIsTold(t *testing.T) {
	a := newAgent(t, true, commands(isGood, shell("true")), nil,
		put("c1", "file", "bad"), enginetest.Say("done"), put("c2", "file", "good"), enginetest.Say("now it is"))
	res := a.run()
	require.NoError(t, res.Err)
	require.Equal(t, "now it is", res.Text)
	require.Equal(t, []string{"Checks failed. Fix what they found.\n\ntests: exit status 3\ntoken=, want good"}, a.told(),
		"with what it said, and without what it must not know")
	requests := a.model.Requests()
	last := requests[2].Messages
	require.Equal(t, a.told()[0], last[len(last)-1].Text)
	require.True(t, a.laterTier())
	require.Equal(t, 4, a.ran())
}

// Nothing changed, nothing to check, also when it was changed and changed back.
func TestUnchanged(t *testing.T) {
	a := newAgent(t, true, commands(isGood), nil, enginetest.Call("c1", "none", nil), enginetest.Say("done"),
		put("c2", "file", "bad"), enginetest.Say("done"), put("c3", "file", "as it was"), enginetest.Say("done"))
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "file"), []byte("as it was"), 0o644))
	require.NoError(t, a.run().Err)
	require.Zero(t, a.ran())
	require.True(t, a.laterTier())
	require.NoError(t, a.run().Err)
	require.Equal(t, 1, a.ran())
	require.True(t, a.laterTier())
	require.Empty(t, a.last())

	a = newAgent(t, true, map[string]any{}, nil, put("c1", "file", "x"), enginetest.Say("done"))
	require.NoError(t, a.run().Err)
	require.True(t, a.laterTier(), "without commands there are no checks")
}

// A run that ends without the model's doing is checked at its end; one that was
// cancelled or failed is not, and counts as unchecked.
func TestOtherEnds(t *testing.T) {
	for text, pass := range map[string]bool{"good": true, "bad": false} {
		a := newAgent(t, true, commands(isGood), nil, put("c1", "file", text))
		a.spec.MaxRounds = 1
		res := a.run()
		require.NoError(t, res.Err)
		require.Equal(t, phase.ReasonMaxRounds, res.Reason)
		require.Equal(t, 1, a.ran())
		require.Equal(t, pass, a.laterTier())
		require.Equal(t, pass, a.last().Passed())
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := enginetest.Say("done")
	stop.Wait = func(ctx context.Context) error { cancel(); return ctx.Err() }
	a := newAgent(t, true, commands(isGood), nil, put("c1", "file", "good"), stop)
	a.ctx = ctx
	require.Equal(t, phase.ReasonCancelled, a.run().Reason)
	require.Zero(t, a.ran())
	require.False(t, a.laterTier())
}

func TestEachStep(t *testing.T) {
	settings := commands(isGood)
	settings["at"] = "step"
	a := newAgent(t, true, settings, nil, put("c1", "file", "bad"), enginetest.Call("c2", "none", nil),
		put("c3", "file", "good"), enginetest.Say("done"))
	require.NoError(t, a.run().Err)
	require.Equal(t, 2, a.ran())
	require.Len(t, a.told(), 1)
	require.True(t, a.laterTier())
}

// A command may put things right itself; what it leaves is what was checked.
func TestFormatter(t *testing.T) {
	a := newAgent(t, true, commands(shell("echo formatted > file")), nil, put("c1", "file", "x"), enginetest.Say("done"))
	require.NoError(t, a.run().Err)
	require.Equal(t, 1, a.ran())
	require.True(t, a.laterTier())
}

// A command that does not end is killed: after its own time, or when the end of the run
// has no more.
func TestTooSlow(t *testing.T) {
	slow := shell("sleep 1000")
	slow["seconds"] = 0.1
	a := newAgent(t, true, commands(slow), nil, put("c1", "file", "x"), enginetest.Say("done"), enginetest.Say("done"), enginetest.Say("done"), enginetest.Say("done"))
	require.NoError(t, a.run().Err)
	require.Equal(t, "not done after 100ms", a.last().Failures[0].Status)
	require.False(t, a.laterTier())

	slow["seconds"] = 0
	a = newAgent(t, true, commands(slow), func(c *engine.Config) { c.Limits.Grace = 2 * time.Second }, put("c1", "file", "x"))
	a.spec.MaxRounds = 1
	require.NoError(t, a.run().Err)
	require.Contains(t, a.last().Failures[0].Status, "the end of a run")
	require.False(t, a.laterTier())
}

// What a command writes is bounded, and what cannot be run is a failure.
func TestBounded(t *testing.T) {
	settings := commands(shell("yes | head -c 100000; echo; echo the end; exit 1"), map[string]any{"args": []string{"no-such-program-anywhere"}},
		map[string]any{"args": []string{"true"}, "dir": "no/such/folder"})
	settings["max_bytes"], settings["attempts"] = 900, 1
	a := newAgent(t, false, settings, nil, put("c1", "file", "x"), enginetest.Say("done"), enginetest.Say("done"))
	require.NoError(t, a.run().Err)
	require.Len(t, a.told(), 1)
	require.Less(t, len(a.told()[0]), 2000)
	require.Contains(t, a.told()[0], "the end\n\nno-such-program-anywhere: ")
	require.Len(t, a.last().Failures, 3)
	require.False(t, a.laterTier())
}

// A workspace that cannot be looked at is not one that passed.
func TestUnreadableWorkspace(t *testing.T) {
	a := newAgent(t, true, commands(shell("true")), nil, put("c1", "file", "x"), enginetest.Say("done"), enginetest.Say("done"), enginetest.Say("done"), enginetest.Say("done"))
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, ".git", "index"), []byte("broken"), 0o644))
	require.NoError(t, a.run().Err)
	require.Zero(t, a.ran())
	require.Equal(t, "looking for changes", a.last().Failures[0].Command)
	require.False(t, a.laterTier())
}

func TestFaultySettings(t *testing.T) {
	config, _ := enginetest.Config(t, checks.New(checks.Options{Dir: t.TempDir()}))
	eng := enginetest.Engine(t, config)
	for _, s := range []string{
		`{"commands": [{}]}`, `{"commands": [{"args": [""]}]}`, `{"commands": [{"args": ["x"], "dir": "../y"}]}`,
		`{"commands": [{"args": ["x"], "seconds": -1}]}`, `{"commands": [{"args": ["x"], "seconds": 1e9}]}`, `{"commands": ["go vet"]}`,
		`{"at": "start"}`, `{"attempts": -1}`, `{"max_bytes": 0}`, `{"kinds": [""]}`, `{"env": [""]}`,
	} {
		spec := engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{checks.Name: inference.JSON(s)}}
		require.ErrorIs(t, eng.Check(spec), engine.ErrSpec, s)
	}
}
