package git_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/git"
)

func open(t *testing.T, dir string) *git.Repo {
	t.Helper()
	r, err := git.Open(t.Context(), dir)
	require.NoError(t, err)
	return r
}

// paths returns the paths of a tree.
func paths(t *testing.T, r *git.Repo, tree string) (all []string) {
	t.Helper()
	listed, err := r.List(t.Context(), tree)
	require.NoError(t, err)
	for _, l := range listed {
		all = append(all, l.Path)
	}
	return all
}

// A file that was changed in the very moment in which the index was written, to another
// content of the same size, is seen to have changed however much later one looks.
func TestChangedAsTheIndexWasWritten(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	run(t, dir, "config", "core.trustctime", "false")
	then := time.Now().Add(-time.Minute).Truncate(time.Second)
	set := func(name string) { require.NoError(t, os.Chtimes(filepath.Join(dir, name), then, then)) }
	put(t, dir, "a", "one")
	set("a")
	run(t, dir, "add", "a")
	set(".git/index")
	r := open(t, dir)
	before, err := r.WorkTree(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("two"), 0o644))
	set("a")
	require.Contains(t, run(t, dir, "--no-optional-locks", "status", "--porcelain"), "AM a", "git itself sees it")
	after, err := r.WorkTree(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, before, after)
}

// What makes "git add --all" give up is passed over or added.
func TestWorkTreeThatGitDoesNotAdd(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	put(t, dir, "in/a", "a")
	put(t, dir, "out/b", "b")
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-qm", "one")
	run(t, dir, "sparse-checkout", "set", "in")
	put(t, dir, "out/new", "new")
	put(t, dir, "in/* [x]/x", "nested")
	put(t, dir, "in/plain", "plain")
	run(t, filepath.Join(dir, "in/* [x]"), "init", "-q")
	tree, err := open(t, dir).WorkTree(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"in/a", "in/plain", "out/b", "out/new"}, paths(t, open(t, dir), tree))
	tree, err = open(t, filepath.Join(dir, "in")).WorkTree(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"in/a", "in/plain", "out/b"}, paths(t, open(t, dir), tree))
}

// Temporary files are never part of the work tree, also when they are in it.
func TestTemporaryFilesInTheWorkTree(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	put(t, dir, "a", "a")
	t.Setenv("TMPDIR", dir)
	r := open(t, dir)
	tree, err := r.WorkTree(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, paths(t, r, tree))
	require.NoError(t, git.Scratch(func(string) error {
		covered, err := r.Covered(t.Context())
		require.Equal(t, []string{"a"}, covered)
		return err
	}))
}

// A name that git silently leaves out of an index is an error.

// Contents are those of the objects that are asked for.
func TestReplacedObjects(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	put(t, dir, "a", "one")
	put(t, dir, "b", "another")
	r := open(t, dir)
	ids, err := r.Blobs(t.Context(), []string{"a", "b"}, true)
	require.NoError(t, err)
	run(t, dir, "replace", ids[0], ids[1])
	require.NoError(t, r.Contents(t.Context(), ids[:1], func(_ int, content io.Reader) error {
		text, err := io.ReadAll(content)
		require.Equal(t, "one", string(text))
		return err
	}))
}

// instead has calls of a git command answered by a script, where "$real" is git.
func instead(t *testing.T, command, script string) {
	t.Helper()
	real, err := exec.LookPath("git")
	require.NoError(t, err)
	dir := t.TempDir()
	text := "#!/bin/sh\nreal='" + real + "'\nfor a in \"$@\"; do if [ \"$a\" = " + command + " ]; then\n" + script + "\nfi; done\nexec \"$real\" \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "git"), []byte(text), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// Output that ends early, and a listing that lacks what could not be read, are errors
// also when git says that all went well.
func TestHalfAnAnswer(t *testing.T) {
	if runtime.GOOS == "windows" { // which has no sh scripts
		return
	}
	isolate(t)
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	put(t, dir, "a", strings.Repeat("content", 100))
	r := open(t, dir)
	ids, err := r.Blobs(t.Context(), []string{"a"}, true)
	require.NoError(t, err)
	instead(t, "cat-file", `"$real" "$@" | head -c 300; exit 0`)
	err = r.Contents(t.Context(), ids, func(_ int, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
	require.True(t, errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
	instead(t, "ls-files", `echo "warning: could not open directory 'd/': Permission denied" >&2`)
	_, err = r.Covered(t.Context())
	require.ErrorContains(t, err, "'d/'")
}

func TestUnderWay(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	r := open(t, dir)
	require.Empty(t, r.UnderWay())
	put(t, dir, ".git/sequencer/todo", "pick x\n")
	require.Contains(t, r.UnderWay(), "cherry-picks")
}

// A name that git silently leaves out of an index is an error.
func TestNames(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	put(t, dir, "a", "a")
	r := open(t, dir)
	ids, err := r.Blobs(t.Context(), []string{"a"}, true)
	require.NoError(t, err)
	for _, name := range []string{"git~1", "d/.GIT/x", ".git/x"} {
		_, err = r.Tree(t.Context(), "", []git.Entry{{Mode: git.ModeFile, ID: ids[0], Path: "a"}, {Mode: git.ModeFile, ID: ids[0], Path: name}})
		require.ErrorIs(t, err, git.ErrName)
		require.ErrorContains(t, err, name)
	}
}
