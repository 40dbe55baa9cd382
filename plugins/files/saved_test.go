package files_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/files"
	"github.com/ddd26017/fixpoint/state"
)

func TestEditFile(t *testing.T) {
	dir := folder(t, map[string]string{"run.sh": "#!/bin/sh\necho one\necho two\n", "overlap": "aaa", "bin": "a\x00b", "b/": ""})
	require.NoError(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o750))
	p := open(t, dir, files.Options{})
	e, text := data[files.Edited](t, p, files.EditTool, m{"path": "./run.sh", "old": "echo two\n", "new": "echo zwei\n"})
	require.Equal(t, files.Edited{Path: "run.sh", Line: 3, Bytes: 29}, e)
	require.Equal(t, "edited run.sh, line 3", text)
	data[files.Edited](t, p, files.EditTool, m{"path": "run.sh", "old": "echo one\n", "new": ""})
	got, err := os.ReadFile(filepath.Join(dir, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, "#!/bin/sh\necho zwei\n", string(got))
	info, err := os.Stat(filepath.Join(dir, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode().Perm(), "permissions stay")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4, "no draft is left")

	for args, want := range map[string]string{
		`{"path":"run.sh","old":"Echo","new":"x"}`:    "does not have the text",
		`{"path":"run.sh","old":"e","new":"x"}`:       "in more than one place, in lines 2 and 2",
		`{"path":"run.sh","old":"i","new":"x"}`:       "in more than one place, in lines 1 and 2",
		`{"path":"overlap","old":"aa","new":"x"}`:     "in more than one place",
		`{"path":"run.sh","old":"","new":"x"}`:        "old must be a text",
		`{"path":"run.sh","old":"echo","new":"echo"}`: "new another one",
		`{"path":"nope","old":"a","new":"b"}`:         "there is no such file",
		`{"path":"b","old":"a","new":"b"}`:            "it is a folder",
		`{"path":"bin","old":"a","new":"b"}`:          "not a text file",
		`{"path":"../x","old":"a","new":"b"}`:         "inside it",
	} {
		r := use(t, p, files.EditTool, inference.JSON(args))
		require.True(t, r.IsError, args)
		require.Contains(t, r.Content, want)
	}
	small := open(t, dir, files.Options{Limits: files.Limits{FileBytes: 3}})
	require.Contains(t, use(t, small, files.EditTool, m{"path": "run.sh", "old": "echo", "new": "x"}).Content, "the limit is 3 B")
	require.Contains(t, use(t, small, files.EditTool, m{"path": "overlap", "old": "aaa", "new": "aaaa"}).Content, "4 B is too much")
}

// An edit must not reach through a link, nor what is excluded.
func TestEditOutOfBounds(t *testing.T) {
	dir, outside := folder(t, garden), folder(t, map[string]string{"x": "one"})
	require.NoError(t, os.Symlink(filepath.Join(outside, "x"), filepath.Join(dir, "link")))
	p := open(t, dir, files.Options{})
	for _, name := range []string{"link", ".env", ".git/config", "node_modules/x/y.js", "../" + filepath.Base(outside) + "/x"} {
		require.True(t, use(t, p, files.EditTool, m{"path": name, "old": "one", "new": "two"}).IsError, name)
	}
	text, err := os.ReadFile(filepath.Join(outside, "x"))
	require.NoError(t, err)
	require.Equal(t, "one", string(text))
}

var (
	notes  = state.NewLog("test.notes", state.Options[string]{})
	noted  = phase.NewAction[string]("test.noted", phase.AfterToolExecute)
	noting = engine.NewPlugin("noting", func(r *engine.Registrar) error {
		r.Key(notes)
		r.Action(noted.Handle(func(_ context.Context, _ *phase.Context, s string) (cmd phase.Command, err error) {
			cmd.Update(notes.Append(s))
			return cmd, nil
		}))
		return nil
	})
)

// Capability G1. Each call that wrote or edited a file derives an event, and no other
// call does; other plugins take part through actions of theirs and through the key.
func TestSavedAndPatched(t *testing.T) {
	for _, how := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		dir := folder(t, garden)
		tools := open(t, dir, files.Options{
			OnSaved: func(s files.Save) []phase.Action {
				return []phase.Action{noted.New("saved " + s.Path + map[bool]string{true: " (new)"}[s.Created])}
			},
			OnPatched: func(c files.Patch) []phase.Action { return []phase.Action{noted.New("patched " + c.Path)} },
		})
		config, rec := enginetest.Config(t, tools, noting)
		config.Model = enginetest.NewScript(
			enginetest.Call("1", files.WriteTool, m{"path": "new/x", "content": "hello"}).
				And(enginetest.Call("2", files.WriteTool, m{"path": "a.go", "content": "package b\n"})).
				And(enginetest.Call("3", files.EditTool, m{"path": "b/d.md", "old": "Title", "new": "Name"})).
				And(enginetest.Call("4", files.EditTool, m{"path": "b/d.md", "old": "Nowhere", "new": "x"})).
				And(enginetest.Call("5", files.WriteTool, m{"path": ".env", "content": "x"})).
				And(enginetest.Call("6", files.ReadTool, m{"path": "Makefile"})),
			enginetest.Say("done"))
		eng, err := engine.New(config)
		require.NoError(t, err)
		th, err := eng.NewThread("")
		require.NoError(t, err)
		res, err := th.Run(t.Context(), engine.AgentSpec{ID: "a", ToolExecution: how}, engine.Prompt("go"))
		require.NoError(t, err)
		require.NoError(t, res.Err)
		require.Equal(t, []string{"saved new/x (new)", "saved a.go", "patched b/d.md"}, notes.Get(th.Snapshot()).Slice(), how)
		require.Equal(t, []string{"a.go", "b/d.md", "new/x"}, slices.Collect(files.Changed.All(th.Snapshot())), how)
		for _, e := range enginetest.Select[engine.ActionFinished](rec.Events()) {
			require.Equal(t, engine.ActionDone, e.Status)
		}
	}
}

// Edits of one file at the same time all count.
func TestParallelEdits(t *testing.T) {
	dir := folder(t, map[string]string{"x": "1 2 3 4 5 6 7 8\n"})
	config, _ := enginetest.Config(t, open(t, dir, files.Options{}))
	var calls enginetest.Answer
	for _, digit := range strings.Fields("1 2 3 4 5 6 7 8") {
		calls = calls.And(enginetest.Call(digit, files.EditTool, m{"path": "x", "old": digit, "new": "-" + strings.Repeat("x", int(digit[0]-'0'))}))
	}
	config.Model = enginetest.NewScript(calls, enginetest.Say("done"))
	eng, err := engine.New(config)
	require.NoError(t, err)
	_, err = eng.Run(t.Context(), engine.AgentSpec{ID: "a", ToolExecution: engine.ToolsParallel}, engine.Prompt("go"))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "x"))
	require.NoError(t, err)
	require.Equal(t, "-x -xx -xxx -xxxx -xxxxx -xxxxxx -xxxxxxx -xxxxxxxx\n", string(text))
}

// FuzzEdit compares edits with what package strings makes of the same texts.
func FuzzEdit(f *testing.F) {
	for _, seed := range [][3]string{{"abc\n", "b", "x"}, {"aaa", "aa", "b"}, {"a\r\nb", "\r\n", "\n"}, {"äö", "ö", ""}, {"", "a", "b"}, {"a\x00", "a", "b"}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	dir := f.TempDir()
	p := open(f, dir, files.Options{})
	f.Fuzz(func(t *testing.T, text, old, by string) {
		if !utf8.ValidString(old) || !utf8.ValidString(by) {
			return // no JSON has such texts
		}
		name := filepath.Join(dir, "x")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		r := use(t, p, files.EditTool, m{"path": "x", "old": old, "new": by})
		want := text
		if !r.IsError {
			require.Equal(t, strings.Index(text, old), strings.LastIndex(text, old), "the only place")
			want = strings.Replace(text, old, by, 1)
			require.NotEqual(t, text, want)
		}
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	})
}
