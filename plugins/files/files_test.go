package files_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/files"
)

// folder makes a directory with the given files; a name that ends in a slash is a
// folder.
func folder(t testing.TB, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(at, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
	return dir
}

func open(t testing.TB, dir string, o files.Options) *files.Plugin {
	t.Helper()
	p, err := files.Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(t.Context())) })
	return p
}

// use has the model call a tool and returns the result that it gets.
func use(t testing.TB, p engine.Plugin, tool string, args any) inference.ToolResult {
	t.Helper()
	config, rec := enginetest.Config(t, p)
	config.Model = enginetest.NewScript(enginetest.Call("c1", tool, args), enginetest.Say("done"))
	eng, err := engine.New(config)
	require.NoError(t, err)
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	done := enginetest.Select[engine.ToolFinished](rec.Events())
	require.Len(t, done, 1)
	return done[0].Result
}

// data has a tool called that must succeed, and decodes its details.
func data[T any](t testing.TB, p engine.Plugin, tool string, args any) (T, string) {
	t.Helper()
	r := use(t, p, tool, args)
	require.Equal(t, inference.OutcomeOK, r.Outcome, r.Content)
	var out T
	require.NoError(t, r.Details.Decode(&out))
	return out, r.Content
}

type m = map[string]any

var garden = map[string]string{
	"a.go":                "package a // one\n",
	"b/c.go":              "package c\n\nvar One = 1\n",
	"b/d.md":              "# Title\none ONE\n",
	"b/empty.txt":         "",
	"Makefile":            "all:\n",
	".git/config":         "secret one\n",
	".env":                "one\n",
	"node_modules/x/y.js": "one\n",
	"bin":                 "one\x00two",
	"void/":               "",
}

func TestListFiles(t *testing.T) {
	p := open(t, folder(t, garden), files.Options{})
	l, text := data[files.Listing](t, p, files.ListTool, m{})
	require.Equal(t, []files.File{{"Makefile", 5}, {"a.go", 17}, {"b/c.go", 23}, {"b/d.md", 16}, {"b/empty.txt", 0}, {"bin", 7}}, l.Files)
	require.Equal(t, files.Listing{Path: ".", Files: l.Files, Total: 6, Bytes: 68, Folders: 2, Kinds: []files.Kind{
		{".go", 2, 40}, {".md", 1, 16}, {".txt", 1, 0}, {"Makefile", 1, 5}, {"bin", 1, 7}}}, l)
	require.Contains(t, text, "6 files, 68 B in 2 folders\n")
	require.Contains(t, text, "    23 B  b/c.go\n")

	l, text = data[files.Listing](t, p, files.ListTool, m{"sort": "size", "limit": 1, "pattern": "*.*"})
	require.Equal(t, []files.File{{"b/c.go", 23}}, l.Files)
	require.Equal(t, 4, l.Total)
	require.Contains(t, text, "and 3 more")

	l, _ = data[files.Listing](t, p, files.ListTool, m{"path": "./b/"})
	require.Equal(t, "b", l.Path)
	require.Equal(t, 3, l.Total)
	require.Zero(t, l.Folders)

	l, _ = data[files.Listing](t, p, files.ListTool, m{"path": "void"})
	require.NotNil(t, l.Files)
	require.Empty(t, l.Files)

	require.Contains(t, use(t, p, files.ListTool, m{"pattern": "["}).Content, "pattern")
	require.Contains(t, use(t, p, files.ListTool, m{"sort": "date"}).Content, "path or size")
}

func TestListFilesStopsAtTheLimit(t *testing.T) {
	p := open(t, folder(t, garden), files.Options{Limits: files.Limits{Entries: 2, Listed: 1}})
	l, text := data[files.Listing](t, p, files.ListTool, m{"limit": 50})
	require.True(t, l.Truncated)
	require.Equal(t, 2, l.Total)
	require.Len(t, l.Files, 1, "a call cannot raise the limit")
	require.Contains(t, text, "more files than could be looked at")
}

func TestSearchText(t *testing.T) {
	p := open(t, folder(t, garden), files.Options{})
	f, text := data[files.Found](t, p, files.SearchTool, m{"pattern": "[Oo]ne"})
	require.Equal(t, files.Found{Pattern: "[Oo]ne", Total: 3, Files: 3, Searched: 5, Skipped: 1, Matches: []files.Match{
		{"a.go", 1, "package a // one"}, {"b/c.go", 3, "var One = 1"}, {"b/d.md", 2, "one ONE"}}}, f)
	require.Contains(t, text, "3 lines in 3 of 5 files\na.go:1: package a // one\n")

	f, _ = data[files.Found](t, p, files.SearchTool, m{"pattern": "ONE", "ignore_case": true, "glob": "*.md", "path": "b"})
	require.Equal(t, 1, f.Total)
	f, _ = data[files.Found](t, p, files.SearchTool, m{"pattern": "a.", "literal": true})
	require.Zero(t, f.Total)
	f, text = data[files.Found](t, p, files.SearchTool, m{"pattern": "package", "limit": 1})
	require.Len(t, f.Matches, 1)
	require.Contains(t, text, "and 1 more")
	f, _ = data[files.Found](t, p, files.SearchTool, m{"pattern": "one", "path": "a.go"})
	require.Equal(t, 1, f.Total, "a file can be searched too")

	require.Contains(t, use(t, p, files.SearchTool, m{"pattern": "("}).Content, "no regular expression")
	require.Contains(t, use(t, p, files.SearchTool, m{"pattern": ""}).Content, "say what to look for")
	require.Contains(t, use(t, p, files.SearchTool, m{"pattern": "x", "glob": "["}).Content, "glob")
}

func TestSearchCutsLongLinesAndSkipsLargeFiles(t *testing.T) {
	p := open(t, folder(t, map[string]string{
		"long.txt":  strings.Repeat("ä", 500) + "\n",
		"large.txt": strings.Repeat("ä\n", 2000),
	}), files.Options{Limits: files.Limits{FileBytes: 2000}})
	f, _ := data[files.Found](t, p, files.SearchTool, m{"pattern": "ä"})
	require.Equal(t, 1, f.Skipped)
	require.Equal(t, strings.Repeat("ä", 100), f.Matches[0].Text)
}

func TestReadFile(t *testing.T) {
	p := open(t, folder(t, garden), files.Options{})
	e, text := data[files.Excerpt](t, p, files.ReadTool, m{"path": "b/c.go"})
	require.Equal(t, files.Excerpt{Path: "b/c.go", Size: 23, From: 1, Lines: 3}, e)
	require.Equal(t, garden["b/c.go"], text)

	e, text = data[files.Excerpt](t, p, files.ReadTool, m{"path": "b/c.go", "from": 2, "lines": 1})
	require.Equal(t, files.Excerpt{Path: "b/c.go", Size: 23, From: 2, Lines: 1, More: true}, e)
	require.Equal(t, "\n", text)

	e, text = data[files.Excerpt](t, p, files.ReadTool, m{"path": "b/empty.txt"})
	require.Equal(t, files.Excerpt{Path: "b/empty.txt", From: 1}, e)
	require.Empty(t, text)

	for args, want := range map[string]string{
		`{"path":"b/c.go","from":9}`:   "fewer than 9 lines",
		`{"path":"b/c.go","lines":-1}`: "count from 1",
		`{"path":"nope"}`:              "there is no such file",
		`{"path":"b"}`:                 "it is a folder",
		`{"path":"bin"}`:               "not a text file",
	} {
		r := use(t, p, files.ReadTool, inference.JSON(args))
		require.True(t, r.IsError, args)
		require.Contains(t, r.Content, want)
	}
}

func TestReadFileIsBounded(t *testing.T) {
	p := open(t, folder(t, map[string]string{"x": strings.Repeat("äö\n", 50_000)}), files.Options{Limits: files.Limits{ReadBytes: 13}})
	e, text := data[files.Excerpt](t, p, files.ReadTool, m{"path": "x"})
	require.Equal(t, "äö\näö\nä", text)
	require.True(t, e.More)
	require.Equal(t, 3, e.Lines)
	one := open(t, folder(t, map[string]string{"x": strings.Repeat("y", 100_000)}), files.Options{})
	_, text = data[files.Excerpt](t, one, files.ReadTool, m{"path": "x"})
	require.Len(t, text, 64<<10, "one endless line")
}

func TestWriteFile(t *testing.T) {
	dir := folder(t, garden)
	p := open(t, dir, files.Options{})
	w, text := data[files.Written](t, p, files.WriteTool, m{"path": "new/deep/x.txt", "content": "hello\n"})
	require.Equal(t, files.Written{Path: "new/deep/x.txt", Bytes: 6}, w)
	require.Contains(t, text, "6 B")
	w, _ = data[files.Written](t, p, files.WriteTool, m{"path": "new/deep/x.txt", "content": "bye"})
	require.True(t, w.Replaced)
	got, err := os.ReadFile(filepath.Join(dir, "new/deep/x.txt"))
	require.NoError(t, err)
	require.Equal(t, "bye", string(got))
	left, err := os.ReadDir(filepath.Join(dir, "new/deep"))
	require.NoError(t, err)
	require.Len(t, left, 1, "no draft is left")

	for _, name := range []string{"b", "a.go/x", ".env", ".git/hooks/x", "node_modules/z", "../x", "/x", "."} {
		r := use(t, p, files.WriteTool, m{"path": name, "content": "x"})
		require.True(t, r.IsError, name)
	}
	small := open(t, dir, files.Options{Limits: files.Limits{FileBytes: 3}})
	require.Contains(t, use(t, small, files.WriteTool, m{"path": "y", "content": "1234"}).Content, "the limit is 3 B")
}

// The tools cannot leave the directory or see what is excluded, whatever path
// they are given, links included.
func TestOutOfBounds(t *testing.T) {
	dir := folder(t, garden)
	outside := folder(t, map[string]string{"secret": "one"})
	for from, to := range map[string]string{
		"link": filepath.Join(outside, "secret"), "linkdir": outside, "inner": ".env", "innerdir": ".git",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, from)))
	}
	p := open(t, dir, files.Options{Hide: []string{"b/d.md"}})
	for _, name := range []string{
		"../" + filepath.Base(outside) + "/secret", outside + "/secret", "link", "linkdir/secret", "inner", "innerdir/config",
		".env", ".git/config", "b/../.env", "b/d.md", "node_modules/x/y.js", "", "a.go\x00",
	} {
		for _, tool := range []string{files.ReadTool, files.WriteTool} {
			args := m{"path": name}
			if tool == files.WriteTool {
				args["content"] = "overwritten"
			}
			require.True(t, use(t, p, tool, args).IsError, "%s %q", tool, name)
		}
	}
	f, _ := data[files.Found](t, p, files.SearchTool, m{"pattern": "one|secret"})
	require.Equal(t, 1, f.Files, "%v", f.Matches)
	text, err := os.ReadFile(filepath.Join(outside, "secret"))
	require.NoError(t, err)
	require.Equal(t, "one", string(text))
}

// The view for other plugins is a proper file system.
// A path that no file system takes is refused at once, and makes no folders.
func TestLongPaths(t *testing.T) {
	dir := folder(t, map[string]string{"a/b": "x"})
	p := open(t, dir, files.Options{Hide: []string{"hidden"}})
	long := strings.Repeat("a/", 300_000) + "b"
	for tool, args := range map[string]map[string]any{
		files.WriteTool: {"path": long, "content": "x"}, files.EditTool: {"path": long, "old": "x", "new": "y"},
		files.ReadTool: {"path": long}, files.ListTool: {"path": long}, files.SearchTool: {"path": long, "pattern": "x"},
	} {
		r := use(t, p, tool, args)
		require.True(t, r.IsError, tool)
		require.Contains(t, r.Content, "too long", tool)
		require.Less(t, len(r.Content), 1000, tool)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	r := use(t, p, files.ReadTool, map[string]any{"path": "./a/x/../b" + strings.Repeat("/.", 10_000)})
	require.False(t, r.IsError, "what counts is what is left of it")
	r = use(t, p, files.WriteTool, map[string]any{"path": "a\x00b", "content": "x"})
	require.Contains(t, r.Content, "unusable path")
}

func TestFS(t *testing.T) {
	p := open(t, folder(t, garden), files.Options{Hide: []string{"b/empty.txt"}})
	require.NoError(t, fstest.TestFS(p.FS(), "a.go", "b/c.go", "b/d.md", "Makefile", "bin", "void"))
	for _, hidden := range []string{".git", ".git/config", "b/empty.txt", "node_modules/x"} {
		_, err := fs.Stat(p.FS(), hidden)
		require.ErrorIs(t, err, fs.ErrNotExist, hidden)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, o := range []files.Options{{Exclude: []string{"["}}, {Limits: files.Limits{Matches: -1}}} {
		_, err := files.Open(t.TempDir(), o)
		require.ErrorIs(t, err, files.ErrOptions)
	}
	_, err := files.Open(filepath.Join(t.TempDir(), "nope"), files.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Two calls at the same time on one file leave one of the two texts, whole.
func TestParallelWrites(t *testing.T) {
	dir := t.TempDir()
	config, _ := enginetest.Config(t, open(t, dir, files.Options{}))
	var calls enginetest.Answer
	for i := range 8 {
		calls = calls.And(enginetest.Call(fmt.Sprint("c", i), files.WriteTool, m{"path": "x", "content": strings.Repeat(fmt.Sprint(i), 10_000)}))
	}
	config.Model = enginetest.NewScript(calls, enginetest.Say("done"))
	eng, err := engine.New(config)
	require.NoError(t, err)
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a", ToolExecution: engine.ToolsParallel}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	text, err := os.ReadFile(filepath.Join(dir, "x"))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat(string(text[:1]), 10_000), string(text))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// FuzzPath gives the tools any path: none may read or write outside.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a.go", "../up", "/etc/passwd", "b//c.go", "b/./../a.go", ".git/config", "x/../../y", "C:\\x", "\xff"} {
		f.Add(seed)
	}
	parent := folder(f, map[string]string{"in/a.go": "package a\n", "in/.git/config": "secret", "out/x": "secret"})
	p := open(f, filepath.Join(parent, "in"), files.Options{})
	f.Fuzz(func(t *testing.T, name string) {
		if r := use(t, p, files.ReadTool, m{"path": name}); !r.IsError {
			require.NotContains(t, r.Content, "secret")
		}
		use(t, p, files.WriteTool, m{"path": name, "content": "written"})
		for _, kept := range []string{"in/.git/config", "out/x"} {
			text, err := os.ReadFile(filepath.Join(parent, kept))
			require.NoError(t, err)
			require.Equal(t, "secret", string(text))
		}
		entries, err := os.ReadDir(parent)
		require.NoError(t, err)
		require.Len(t, entries, 2)
	})
}
