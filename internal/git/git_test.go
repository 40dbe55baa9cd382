package git_test

import (
	"context"
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

// isolate keeps the configuration of whoever runs the tests out of them.
func isolate(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

// run runs git as a user would.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=user", "-c", "user.email=user@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

func TestOpen(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	_, err := git.Open(t.Context(), dir)
	require.ErrorIs(t, err, git.ErrNoRepository)
	run(t, dir, "init", "-q")
	put(t, dir, ".gitignore", "out/\n")
	put(t, dir, "out/x", "x")
	put(t, dir, "in/x", "x")
	r, err := git.Open(t.Context(), filepath.Join(dir, "in"))
	require.NoError(t, err)
	require.Equal(t, "in/", r.Prefix())
	require.Equal(t, "HEAD", filepath.Base(strings.TrimSpace(run(t, r.Top(), "rev-parse", "--git-path", "HEAD"))))
	_, err = git.Open(t.Context(), filepath.Join(dir, "out"))
	require.ErrorIs(t, err, git.ErrNoRepository, "what the repository ignores is not its own")
	_, err = git.Open(t.Context(), filepath.Join(dir, ".git"))
	require.ErrorIs(t, err, git.ErrNoRepository)

	commit, branch, err := r.Head(t.Context())
	require.NoError(t, err)
	require.Empty(t, commit)
	require.Contains(t, branch, "refs/heads/")
	t.Setenv("PATH", t.TempDir())
	_, err = git.Open(t.Context(), dir)
	require.ErrorIs(t, err, git.ErrNoGit)
}

// What an environment says about another repository does not count, and what could be a
// secret is not handed on.
func TestEnvironment(t *testing.T) {
	isolate(t)
	other, dir := t.TempDir(), t.TempDir()
	run(t, other, "init", "-q")
	run(t, dir, "init", "-q")
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, "index"))
	t.Setenv("SOME_TOKEN", "secret")
	r, err := git.Open(t.Context(), dir)
	require.NoError(t, err)
	require.NotContains(t, r.Dir(), filepath.Base(other)+"/.git")
	for _, v := range git.Environment() {
		name, _, _ := strings.Cut(v, "=")
		require.NotContains(t, []string{"GIT_DIR", "GIT_INDEX_FILE", "SOME_TOKEN"}, name)
	}
	require.Contains(t, git.Environment("SOME_TOKEN"), "SOME_TOKEN=secret", "unless it is asked for")
}

func TestTrees(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			isolate(t)
			dir := t.TempDir()
			run(t, dir, "init", "-q", "--object-format="+format)
			put(t, dir, "sub/a", "one\r\ntwo\n")
			put(t, dir, "sub/\"odd\" \n name\xff", "odd")
			put(t, dir, "b", "b")
			r, err := git.Open(t.Context(), filepath.Join(dir, "sub"))
			require.NoError(t, err)
			none, err := r.TreeOf(t.Context(), "")
			require.NoError(t, err)
			first, err := r.WorkTree(t.Context())
			require.NoError(t, err)
			changes, err := r.Diff(t.Context(), none, first)
			require.NoError(t, err)
			require.Len(t, changes, 2, "b is not below the directory opened")
			require.Equal(t, "sub/\"odd\" \n name\xff", changes[0].Path)
			require.Empty(t, changes[0].Before.Mode)
			require.NoFileExists(t, filepath.Join(dir, ".git", "index"))

			paths, err := r.Covered(t.Context())
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"a", "\"odd\" \n name\xff"}, paths)
			ids, err := r.Blobs(t.Context(), paths, true)
			require.NoError(t, err)
			got := map[string]string{}
			require.NoError(t, r.Contents(t.Context(), ids, func(i int, content io.Reader) error {
				text, err := io.ReadAll(content)
				got[paths[i]] = string(text)
				return err
			}))
			require.Equal(t, map[string]string{"a": "one\r\ntwo\n", "\"odd\" \n name\xff": "odd"}, got)
			stop := errors.New("stop")
			require.ErrorIs(t, r.Contents(t.Context(), ids, func(int, io.Reader) error { return stop }), stop)
			require.ErrorContains(t, r.Contents(t.Context(), []string{strings.Repeat("1", len(ids[0]))}, func(int, io.Reader) error { return nil }), "missing")

			tree, err := r.Tree(t.Context(), first, []git.Entry{{Path: "sub/a"}, {Mode: git.ModeExecutable, ID: ids[0], Path: "sub/a/c"}})
			require.NoError(t, err, "a file becomes a folder")
			listed, err := r.List(t.Context(), tree)
			require.NoError(t, err)
			require.Len(t, listed, 2)
			require.Equal(t, git.ModeExecutable, listed[1].Mode)

			commit, err := r.Commit(t.Context(), tree, "", "hello\n", git.Identity{Name: "n", Email: "e", Date: "@1 +0000"})
			require.NoError(t, err)
			require.NoError(t, r.Update(t.Context(), "refs/fixpoint/x", commit, "", "why"))
			require.Error(t, r.Update(t.Context(), "refs/fixpoint/x", commit, "", "why"), "it exists")
			require.NoError(t, r.Update(t.Context(), "refs/fixpoint/x", commit, commit, "why"))
			require.Equal(t, "1 n e hello", run(t, dir, "log", "-1", "--format=%at %an %ae %s", "refs/fixpoint/x"))
			require.NoError(t, r.Stage(t.Context(), "", []git.Entry{{Mode: git.ModeFile, ID: ids[0], Path: "new"}}))
			staged, err := r.Staged(t.Context(), none)
			require.NoError(t, err)
			require.Len(t, staged, 1)
			require.Equal(t, ids[0], staged[0].Now.ID)
		})
	}
}

// A program that does not end is killed with all that it started.
func TestKilledAsAWhole(t *testing.T) {
	if runtime.GOOS == "windows" { // which has no process groups
		return
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	done := make(chan error, 1)
	go func() {
		done <- git.Process{Args: []string{"sh", "-c", "sleep 1000 & echo up; wait"}, Dir: t.TempDir(), Stdout: in, Stderr: in}.Run(ctx)
	}()
	line := make([]byte, 3)
	_, err = io.ReadFull(out, line)
	require.NoError(t, err)
	why := errors.New("enough")
	cancel(why)
	require.ErrorIs(t, <-done, why)
	require.NoError(t, in.Close())
	require.NoError(t, out.SetReadDeadline(time.Now().Add(time.Minute)))
	rest, err := io.ReadAll(out)
	require.NoError(t, err, "its child is gone too, or the pipe would be open")
	require.Empty(t, rest)
}

func TestProcess(t *testing.T) {
	var exit *git.ExitError
	tail := &git.Tail{Limit: 4}
	err := git.Process{Args: []string{"sh", "-c", "echo 123456 >&2; exit 3"}, Stdout: tail, Stderr: tail}.Run(t.Context())
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.Code)
	require.Equal(t, "[3 bytes before this were left out]\n456\n", tail.String())
	require.ErrorIs(t, git.Process{Args: []string{"no-such-program-anywhere"}}.Run(t.Context()), exec.ErrNotFound)
	require.Error(t, git.Process{}.Run(t.Context()))
}
