package agentsmd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/agentsmd"
	"github.com/ddd26017/fixpoint/plugins/cwd"
	"github.com/ddd26017/fixpoint/state"
)

// where is a key such as plugins/cwd has.
var where = state.NewCell("test.where", state.Options[string]{Scope: state.ScopeThread, Initial: func() string { return "." }})

// mover has a tool that moves the thread, without an argument "path".
var mover = engine.NewPlugin("mover", func(r *engine.Registrar) error {
	r.Key(where)
	r.Tool(engine.NewTool(inference.ToolSpec{Name: "move"}, func(_ context.Context, _ *phase.Context, in struct{ To string }) (engine.Output, error) {
		out := engine.Text("ok")
		out.Command.Update(where.With(in.To))
		return out, nil
	}))
	return nil
})

func move(id, to string) enginetest.Answer {
	return enginetest.Call(id, "move", map[string]any{"To": to})
}

// following is an agent whose plugin follows the key, which is there or not.
func following(t *testing.T, plugins []engine.Plugin, answers ...enginetest.Answer) *agent {
	t.Helper()
	a := &agent{model: enginetest.NewScript(answers...), spec: engine.AgentSpec{ID: "a"}}
	config, _ := enginetest.Config(t, plugins...)
	config.Model = a.model
	var err error
	a.eng, err = engine.New(config)
	require.NoError(t, err)
	a.th, err = a.eng.NewThread("")
	require.NoError(t, err)
	return a
}

// By default a folder's guide is AGENTS.md, or else CLAUDE.md, or else GEMINI.md.
func TestDefaultNames(t *testing.T) {
	fsys := fstest.MapFS{
		"GEMINI.md": text("top gemini"), "CLAUDE.md": text("top claude"), "AGENTS.md": text("top agents"),
		"a/GEMINI.md": text("a gemini"), "a/CLAUDE.md": text("a claude"),
		"b/GEMINI.md": text("b gemini"),
	}
	a := start(t, fsys, "", read("1", map[string]any{"path": "a"}), read("2", map[string]any{"path": "b"}), enginetest.Say("done"))
	a.run(t)
	require.Equal(t, []string{"AGENTS.md says:\n\ntop agents", "a/CLAUDE.md says:\n\na claude", "b/GEMINI.md says:\n\nb gemini"}, a.told())
	a = start(t, fsys, `{"names": []}`, enginetest.Say("done"))
	a.run(t)
	require.Empty(t, a.told())
}

// Capability G7. A content is told once per thread, whatever the file is called and
// wherever it lies, also when both become known at the same time.
func TestSameContent(t *testing.T) {
	fsys := fstest.MapFS{
		"AGENTS.md": text("Be kind."), "a/CLAUDE.md": text("Be kind.\n"), "a/b/AGENTS.md": text("\nBe kind."),
		"c/AGENTS.md": text("Be brief."), "d/AGENTS.md": text("Be brief."), "d/e/AGENTS.md": text("Be quick."),
	}
	a := start(t, fsys, "",
		read("1", map[string]any{"path": "a/b"}),
		read("2", map[string]any{"path": "c"}).And(read("3", map[string]any{"path": "d/e"})),
		enginetest.Say("done"), enginetest.Say("again"), enginetest.Say("and again"))
	a.run(t)
	want := []string{"AGENTS.md says:\n\nBe kind.", "c/AGENTS.md says:\n\nBe brief.", "d/e/AGENTS.md says:\n\nBe quick."}
	require.Equal(t, want, a.told())

	fsys["CLAUDE.md"] = fsys["AGENTS.md"]
	delete(fsys, "AGENTS.md")
	a.run(t)
	require.Equal(t, want, a.told(), "under another name it is the same")
	fsys["CLAUDE.md"] = text("Be kinder.")
	a.run(t)
	require.Equal(t, append(want, "CLAUDE.md says:\n\nBe kinder."), a.told())
}

// Capability G7. The guides of the working directory, and those above it, are told when
// the thread has moved there: by a call, by several calls of one step, or from outside.
func TestWorkingDirectory(t *testing.T) {
	fsys := fstest.MapFS{
		"AGENTS.md": text("top"), "a/AGENTS.md": text("in a"), "a/b/GEMINI.md": text("in b"),
		"c/AGENTS.md": text("in c"), "d/AGENTS.md": text("in d"), "e/AGENTS.md": text("never"),
	}
	a := following(t, []engine.Plugin{mover, agentsmd.New(fsys).Follow(where)},
		move("1", "a/b"), move("2", "c").And(move("3", "gone/away")), enginetest.Say("done"), enginetest.Say("again"), enginetest.Say("again"))
	a.run(t)
	want := []string{"AGENTS.md says:\n\ntop", "a/AGENTS.md says:\n\nin a", "a/b/GEMINI.md says:\n\nin b", "c/AGENTS.md says:\n\nin c"}
	require.Equal(t, want, a.told())

	for _, to := range []string{"d", "../e"} {
		var cmd phase.Command
		cmd.Update(where.With(to))
		_, err := a.th.Submit(t.Context(), "ui", cmd)
		require.NoError(t, err)
		a.run(t)
		require.Equal(t, append(want, "d/AGENTS.md says:\n\nin d"), a.told())
	}
	last := a.model.Requests()[3].Messages
	require.Equal(t, "d/AGENTS.md says:\n\nin d", last[len(last)-1].Text, "before the model is asked in the next run")
}

// Capability G1. Capability G7. With plugins/cwd the event of a changed directory and the
// guides that are told come from one key; what that plugin's tool is given is not taken
// for a path from the top.
func TestWithCwd(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{"AGENTS.md": "top", "a/b/AGENTS.md": "in a/b", "b/AGENTS.md": "never"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	place, err := cwd.New(root, cwd.Options{})
	require.NoError(t, err)
	change := func(id, to string) enginetest.Answer {
		return enginetest.Call(id, cwd.ChangeTool, map[string]any{"directory": to})
	}
	a := following(t, []engine.Plugin{place, agentsmd.New(os.DirFS(root)).Follow(cwd.Dir)}, change("1", "a"), change("2", "b"), enginetest.Say("done"))
	a.run(t)
	require.Equal(t, []string{
		"AGENTS.md says:\n\ntop", "The working directory is now a (before: .).",
		"The working directory is now a/b (before: a).", "a/b/AGENTS.md says:\n\nin a/b",
	}, a.told())
}

// An engine without the key is one without a working directory.
func TestKeyThatIsNotThere(t *testing.T) {
	a := following(t, []engine.Plugin{agentsmd.New(fstest.MapFS{"AGENTS.md": text("top")}).Follow(where)}, read("1", nil), enginetest.Say("done"))
	a.run(t)
	require.Equal(t, []string{"AGENTS.md says:\n\ntop"}, a.told())
}

// Whatever walk a thread takes through folders, each content that lies on its way is
// told, and none twice.
func TestWalk(t *testing.T) {
	folders := []string{".", "a", "a/b", "a/b/c", "d", "d/e"}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		fsys, guides := fstest.MapFS{"x": text("y")}, map[string]string{}
		for _, dir := range folders {
			for _, name := range []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"} {
				if rng.IntN(3) == 0 {
					content := fmt.Sprint("guide ", rng.IntN(6))
					fsys[path.Join(dir, name)] = text(content)
					if guides[dir] == "" {
						guides[dir] = content
					}
				}
			}
		}
		want := map[string]bool{guides["."]: true}
		var answers []enginetest.Answer
		for i := range 8 {
			to := folders[rng.IntN(len(folders))]
			if rng.IntN(2) == 0 {
				answers = append(answers, move(fmt.Sprint(i), to))
			} else {
				answers = append(answers, read(fmt.Sprint(i), map[string]any{"path": to}))
				if !visible(fsys, to) {
					to = path.Dir(to) // no folder there
				}
			}
			for dir := to; dir != "."; dir = path.Dir(dir) {
				want[guides[dir]] = true
			}
		}
		delete(want, "")
		a := following(t, []engine.Plugin{mover, agentsmd.New(fsys).Follow(where)}, append(answers, enginetest.Say("done"))...)
		a.run(t)
		got := map[string]bool{}
		for _, m := range a.told() {
			_, content, _ := strings.Cut(m, ":\n\n")
			require.False(t, got[content], "seed %d: twice: %s", seed, content)
			got[content] = true
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// visible reports whether the file system has a folder of that name.
func visible(fsys fstest.MapFS, dir string) bool {
	for name := range fsys {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}
