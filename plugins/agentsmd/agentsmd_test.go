package agentsmd_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/agentsmd"
)

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// agent is an engine with the plugin and a thread.
type agent struct {
	eng   *engine.Engine
	th    *engine.Thread
	model *enginetest.Script
	spec  engine.AgentSpec
}

func start(t *testing.T, fsys fs.FS, section string, answers ...enginetest.Answer) *agent {
	t.Helper()
	a := &agent{model: enginetest.NewScript(answers...), spec: engine.AgentSpec{ID: "a"}}
	if section != "" {
		a.spec.Sections = map[string]inference.JSON{agentsmd.Name: inference.JSON(section)}
	}
	config, _ := enginetest.Config(t, agentsmd.New(fsys))
	config.Model = a.model
	var err error
	a.eng, err = engine.New(config)
	require.NoError(t, err)
	a.th, err = a.eng.NewThread("")
	require.NoError(t, err)
	return a
}

func (a *agent) run(t *testing.T) *engine.Result {
	t.Helper()
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "read"},
		func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
			return engine.Text("ok"), nil
		})}
	res, err := a.th.Run(t.Context(), a.spec, in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	return res
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

func read(id string, args any) enginetest.Answer { return enginetest.Call(id, "read", args) }

// Capability G7. The guide of the directory comes first, those of folders once a
// call works there, each once per thread and again when it has changed.
func TestTold(t *testing.T) {
	fsys := fstest.MapFS{
		"AGENTS.md":       text("Be kind.\n"),
		"a/AGENTS.md":     text("In a."),
		"a/b/AGENTS.md":   text("In b."),
		"a/b/c/x.go":      text("package c"),
		"other/AGENTS.md": text("Never."),
	}
	a := start(t, fsys, "",
		read("c1", map[string]any{"path": "a/b/c/x.go"}), read("c2", map[string]any{"path": "./a/b"}), enginetest.Say("done"),
		enginetest.Say("again"), enginetest.Say("and again"))
	a.run(t)
	want := []string{"AGENTS.md says:\n\nBe kind.", "a/AGENTS.md says:\n\nIn a.", "a/b/AGENTS.md says:\n\nIn b."}
	require.Equal(t, want, a.told())
	first := a.model.Requests()[0]
	require.Equal(t, want[0], first.Messages[len(first.Messages)-1].Text, "the first request has the first guide")

	a.run(t)
	require.Equal(t, want, a.told(), "a second run does not repeat it")
	fsys["AGENTS.md"] = text("Be kinder.")
	a.run(t)
	require.Equal(t, append(want, "AGENTS.md says:\n\nBe kinder."), a.told())
}

func TestNothingToTell(t *testing.T) {
	for name, fsys := range map[string]fs.FS{
		"none":     fstest.MapFS{"x": text("y")},
		"empty":    fstest.MapFS{"AGENTS.md": text(" \n")},
		"a folder": fstest.MapFS{"AGENTS.md/x": text("y")},
	} {
		a := start(t, fsys, "", read("c1", map[string]any{"path": "x"}), read("c2", map[string]any{"path": "../../etc"}),
			read("c3", map[string]any{"path": 7}), read("c4", nil), enginetest.Say("done"))
		a.run(t)
		require.Empty(t, a.told(), name)
	}
}

func TestNamesAndSize(t *testing.T) {
	fsys := fstest.MapFS{"B.md": text("second"), "C.md": text(strings.Repeat("ä", 100)), "d/C.md": text("third")}
	a := start(t, fsys, `{"names": ["A.md", "C.md", "B.md"], "max_bytes": 7}`, read("c", map[string]any{"path": "d"}), enginetest.Say("done"))
	a.run(t)
	require.Equal(t, []string{"C.md says, cut to its beginning:\n\näää", "d/C.md says:\n\nthird"}, a.told())

	for _, s := range []string{`{"names": ["a/b"]}`, `{"names": [".."]}`, `{"names": [""]}`, `{"max_bytes": 0}`} {
		a.spec.Sections = map[string]inference.JSON{agentsmd.Name: inference.JSON(s)}
		require.ErrorIs(t, a.eng.Check(a.spec), engine.ErrSpec, s)
	}
}

// broken is a file system with a guide that cannot be read.
type broken struct{ fs.FS }

func (b broken) Open(name string) (fs.File, error) {
	if name == "AGENTS.md" {
		return nil, errors.New("the disk is gone")
	}
	return b.FS.Open(name)
}

// Fault of the disk: the run goes on without the guide, and a warning says so.
func TestUnreadableGuide(t *testing.T) {
	model := enginetest.NewScript(enginetest.Say("done"))
	config, rec := enginetest.Config(t, agentsmd.New(broken{fstest.MapFS{}}))
	config.Model = model
	eng, err := engine.New(config)
	require.NoError(t, err)
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	warnings := enginetest.Select[engine.Warning](rec.Events())
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0].Message, "the disk is gone")
}
