package snapshots_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/snapshots"
)

// git runs git as a user would.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=user", "-c", "user.email=user@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// modes are the two places that snapshots can be in.
var modes = []string{"git", "copies"}

// place is a workspace with a plugin and a thread.
type place struct {
	t    testing.TB
	dir  string
	p    *snapshots.Plugin
	eng  *engine.Engine
	th   *engine.Thread
	rec  *enginetest.Recorder
	spec engine.AgentSpec

	opts  snapshots.Options
	store string // of the copies
}

// TestMain keeps the configuration of whoever runs the tests out of them.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"HOME": os.DevNull, "XDG_CONFIG_HOME": os.DevNull, "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func newPlace(t testing.TB, mode string, change func(*snapshots.Options, *engine.Config)) *place {
	t.Helper()
	w := &place{t: t, dir: t.TempDir(), spec: engine.AgentSpec{ID: "a"}}
	if mode == "git" {
		git(t, w.dir, "init", "-q", "--template=")
	}
	o := snapshots.Options{Dir: w.dir, Store: filepath.Join(t.TempDir(), "store"), Now: enginetest.NewClock(enginetest.Epoch()).Now}
	config, rec := enginetest.Config(t)
	config.Model = enginetest.NewScript(enginetest.Say("done"))
	if change != nil {
		change(&o, &config)
	}
	w.p, w.rec, w.opts, w.store = snapshots.New(o), rec, o, o.Store
	config.Plugins = append([]engine.Plugin{w.p}, config.Plugins...)
	w.eng = enginetest.Engine(t, config)
	var err error
	w.th, err = w.eng.NewThread("t")
	require.NoError(t, err)
	return w
}

// again returns another plugin for the same workspace.
func (w *place) again() *snapshots.Plugin { return snapshots.New(w.opts) }

func (w *place) put(name, text string) {
	w.t.Helper()
	name = filepath.Join(w.dir, filepath.FromSlash(name))
	require.NoError(w.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(w.t, os.WriteFile(name, []byte(text), 0o644))
}

func (w *place) remove(name string) {
	w.t.Helper()
	name = filepath.Join(w.dir, filepath.FromSlash(name))
	if _, err := os.Lstat(name); err == nil { // else there may be a file where a folder would be
		require.NoError(w.t, os.RemoveAll(name))
	}
}

// files returns all that is in the workspace, besides the repository, as "mode content".
func (w *place) files() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	require.NoError(w.t, filepath.WalkDir(w.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if e.IsDir() && e.Name() == ".git" {
				return fs.SkipDir
			}
			return err
		}
		rel, err := filepath.Rel(w.dir, name)
		require.NoError(w.t, err)
		rel = filepath.ToSlash(rel)
		info, err := e.Info()
		require.NoError(w.t, err)
		if info.Mode().Type() == fs.ModeSymlink {
			target, err := os.Readlink(name)
			require.NoError(w.t, err)
			out[rel] = "link " + target
			return nil
		}
		text, err := os.ReadFile(name)
		require.NoError(w.t, err)
		kind := "file "
		if info.Mode().Perm()&0o100 != 0 {
			kind = "exec "
		}
		out[rel] = kind + string(text)
		return nil
	}))
	return out
}

func (w *place) take() snapshots.Snapshot {
	w.t.Helper()
	s, err := w.p.Take(w.t.Context(), w.th)
	require.NoError(w.t, err)
	return s
}

func (w *place) restore(id string) snapshots.Restored {
	w.t.Helper()
	done, err := w.p.Restore(w.t.Context(), w.th, id)
	require.NoError(w.t, err)
	return done
}

func (w *place) list() []snapshots.Snapshot { return snapshots.List(w.th.Snapshot()) }

func (w *place) run() *engine.Result {
	w.t.Helper()
	res, err := w.th.Run(w.t.Context(), w.spec, engine.Prompt("go"))
	require.NoError(w.t, err)
	return res
}

func (w *place) section(text string) {
	w.spec.Sections = map[string]inference.JSON{snapshots.Name: inference.JSON(text)}
}

// writer is a plugin with a tool that writes a file, one that looks and one that fails.
func writer(dir func() string) engine.Plugin {
	type args struct {
		Path string `json:"path"`
		Text string `json:"text"`
	}
	return engine.NewPlugin("writer", func(r *engine.Registrar) error {
		r.Tool(
			engine.NewTool(inference.ToolSpec{Name: "put", Kind: "write"}, func(_ context.Context, _ *phase.Context, in args) (engine.Output, error) {
				return engine.Text("ok"), os.WriteFile(filepath.Join(dir(), in.Path), []byte(in.Text), 0o644)
			}),
			engine.NewTool(inference.ToolSpec{Name: "look", Kind: "read"}, func(_ context.Context, _ *phase.Context, in args) (engine.Output, error) {
				return engine.Output{}, errors.New("nothing to see")
			}))
		return nil
	})
}

func put(id, path, text string) enginetest.Answer {
	return enginetest.Call(id, "put", map[string]string{"path": path, "text": text})
}

// with returns a change of configuration for a run that writes.
func with(w **place, answers ...enginetest.Answer) func(*snapshots.Options, *engine.Config) {
	return func(_ *snapshots.Options, c *engine.Config) {
		c.Plugins = []engine.Plugin{writer(func() string { return (*w).dir })}
		c.Model = enginetest.NewScript(append(slices.Clone(answers), enginetest.Say("done"), enginetest.Say("done again"))...)
	}
}

// old makes a file look as if it had been there for a day.
func old(t *testing.T, name string) {
	day := time.Now().Add(-24 * time.Hour)
	require.NoError(t, os.Chtimes(name, day, day))
}
