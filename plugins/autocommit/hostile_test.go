package autocommit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/plugins/autocommit"
)

// A file where the user had a folder, or the other way round, would take the user's
// changes with it.
func TestFoldersAndFilesOfTheUser(t *testing.T) {
	for name, c := range map[string]struct{ before, agent, paths string }{
		"deleted file":         {"rm b", "mkdir b; echo agent > b/x", "b/x"},
		"deleted files":        {"rm -r d", "echo agent > d", "d"},
		"staged file":          {"echo s > s; git add s; rm s", "mkdir s; echo agent > s/x", "s/x"},
		"staged files":         {"mkdir -p s/t; echo s > s/t/u; git add s; rm -r s", "echo agent > s", "s"},
		"staged file meantime": {"true", "echo s > s; git add s; rm s; mkdir s; echo agent > s/x", "s/x"},
		"only meant to be":     {"echo n > n; git add -N n; rm n", "mkdir n; echo agent > n/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t)
			run(t, dir, c.before)
			a := newAgent(t, dir, map[string]any{}, nil, c.agent)
			res := a.run()
			if c.paths == "" {
				require.Equal(t, autocommit.Committed, res.Status, res.Why)
				return
			}
			require.Equal(t, autocommit.Refused, res.Status, res.Why)
			require.Equal(t, []string{c.paths}, res.Paths)
			require.Equal(t, a.after, a.repo())
		})
	}
}

// A submodule is never replaced by what the agent put in its place.
func TestSubmoduleReplaced(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	run(t, dir, "git init -q sub; cd sub; git commit -qm s --allow-empty; cd ..; git add sub 2>/dev/null; git commit -qm sub")
	a := newAgent(t, dir, map[string]any{}, nil, "rm -rf sub; mkdir sub; echo x > sub/x; echo y > y")
	res := a.run()
	require.Equal(t, autocommit.Committed, res.Status, res.Why)
	require.Equal(t, []string{"y"}, res.Paths)
	require.Contains(t, a.git("ls-tree HEAD sub"), "160000 commit")
}

// A merge that is begun when the commit is made already keeps the branch where it is.
func TestMergeBegunMeanwhile(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	run(t, dir, `mkdir -p .git/hooks; printf '#!/bin/sh\ngit rev-parse HEAD > .git/MERGE_HEAD\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg`)
	a := newAgent(t, dir, map[string]any{"hooks": true}, nil, "echo agent > a")
	res := a.run()
	require.Equal(t, autocommit.Failed, res.Status)
	require.Contains(t, res.Why, "a merge was begun")
	require.Equal(t, "1", a.git("rev-list --count HEAD"))
}

// What the agent itself makes of its own files and folders is committed as it is.
func TestFoldersAndFilesOfTheAgent(t *testing.T) {
	t.Parallel()
	a := newAgent(t, repository(t), map[string]any{}, nil, "rm a; mkdir a; echo x > a/x; rm -r d; echo d > d; mkdir e; echo e > e/f; git add e")
	res := a.run()
	require.Equal(t, autocommit.Committed, res.Status, res.Why)
	require.Empty(t, a.git("status --porcelain"))
	require.Equal(t, "D\ta\nA\ta/x\nA\td\nD\td/c\nA\te/f", a.git("show --format= --name-status --no-renames HEAD"))
}

// Hostile names are committed under these very names, and cannot put lines into the message.
func TestNames(t *testing.T) {
	t.Parallel()
	a := newAgent(t, repository(t), map[string]any{}, nil, `printf x > "$(printf 'evil\n\nSigned-off-by: someone <s@example.com>')"`)
	res := a.run()
	require.Equal(t, autocommit.Committed, res.Status, res.Why)
	require.NotContains(t, a.git("log -1 --format='%(trailers)'"), "Signed-off-by")
	require.NotContains(t, a.git("log -1 --format=%B"), "\nSigned-off-by")

	names := []string{"-rf", "--", ":(exclude)x", "*", "tab\there", "\xff\xfe/\xfd\n/\"", strings.Repeat("n", 255), "A"}
	dir := repository(t)
	b := newAgent(t, dir, map[string]any{"hooks": true}, nil, "cp -r ../names/. .")
	from := filepath.Join(filepath.Dir(dir), "names")
	require.NoError(t, os.MkdirAll(from, 0o755))
	for _, name := range names {
		name = filepath.Join(from, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte("x"), 0o644))
	}
	res = b.run()
	require.Equal(t, autocommit.Committed, res.Status, res.Why)
	require.Equal(t, len(names), res.Files)
	require.Empty(t, b.git("status --porcelain"))
}

// A change that looks like none, as it came in the second in which the user committed,
// is committed too.
func TestChangedAtOnce(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	then := time.Now().Add(-time.Minute).Truncate(time.Second)
	run(t, dir, "git config core.trustctime false")
	for _, name := range []string{"a", ".git/index"} {
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), then, then))
	}
	run(t, dir, "git update-index --refresh")
	require.NoError(t, os.Chtimes(filepath.Join(dir, ".git/index"), then, then))
	a := newAgent(t, dir, map[string]any{}, nil, "touch -r a ../then; echo z > a; touch -r ../then a")
	require.Equal(t, autocommit.Committed, a.run().Status)
	require.Equal(t, "z", a.git("show HEAD:a"))
}

// A sparse checkout and work trees of their own are as good as others; what git is told
// to overlook is overlooked.
func TestKindsOfWorkTrees(t *testing.T) {
	for name, c := range map[string]struct{ prepare, in, agent, want, status string }{
		"sparse":           {"git sparse-checkout set d; mkdir -p e", "", "echo agent > d/c; mkdir -p e; echo new > e/new", "M\td/c\nA\te/new", ""},
		"worktree":         {"git worktree add -q ../tree", "../tree", "echo agent > a", "M\ta", ""},
		"assume-unchanged": {"git update-index --assume-unchanged b; echo mine > b", "", "echo agent > a; echo more >> b", "M\ta", ""},
		"split index":      {"git config core.splitIndex true; git update-index --split-index", "", "echo agent > a", "M\ta", ""},
		"nested":           {"true", "", "git init -q nested; echo x > nested/x; echo agent > a", "M\ta", "?? nested/"},
		"pathspec":         {"mkdir '*' ; echo s > '*/s'", "*", "echo agent > new; echo mine > ../d/c", "A\t*/new", " M d/c\n?? */s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t)
			run(t, dir, c.prepare)
			a := newAgent(t, filepath.Join(dir, c.in), map[string]any{}, nil, c.agent)
			res := a.run()
			require.Equal(t, autocommit.Committed, res.Status, res.Why)
			require.Empty(t, res.Why)
			top := a.git("rev-parse --show-toplevel")
			require.Equal(t, c.want, run(t, top, "git show --format= --name-status HEAD"))
			require.Equal(t, c.status, run(t, top, "git --no-optional-locks status --porcelain"))
		})
	}
}
