package snapshots_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/snapshots"
)

// Going back to copies from before there was a repository removes nothing that the
// snapshot that undoes it does not have: no ignored file, and no repository.
func TestRepositoryMadeLaterLosesNothing(t *testing.T) {
	t.Parallel()
	w := newPlace(t, "copies", func(o *snapshots.Options, _ *engine.Config) { o.Exclude = []string{"*.out"} })
	w.put("a", "1")
	w.take()
	git(t, w.dir, "init", "-q", "--template=")
	w.put(".gitignore", "*.env\n")
	w.put("my.env", "the user's, and nowhere else")
	w.put("a", "2")
	git(t, w.dir, "add", "a")
	git(t, w.dir, "commit", "-qm", "one")
	users := w.users()
	done := w.restore("s1")
	require.Equal(t, users, w.users())
	require.Equal(t, map[string]string{"a": "file 1", "my.env": "file the user's, and nowhere else"}, w.files())
	w.restore(done.Before)
	require.Equal(t, map[string]string{"a": "file 2", ".gitignore": "file *.env\n", "my.env": "file the user's, and nowhere else"}, w.files())
}

// What was there, ignored, and came to be tracked did not come since.
func TestIgnoredAndTrackedLater(t *testing.T) {
	t.Parallel()
	w := newPlace(t, "git", nil)
	w.put(".gitignore", "*.o\n")
	w.put("x.o", "the user's")
	w.put("a", "1")
	w.take()
	git(t, w.dir, "add", "-f", "x.o")
	w.put("a", "2")
	w.restore("s1")
	require.Equal(t, map[string]string{".gitignore": "file *.o\n", "x.o": "file the user's", "a": "file 1"}, w.files())
}

// Names that are no UTF-8, very long, or look like options, patterns or each other.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newPlace(t, mode, nil)
			names := []string{"-rf", "--", ":(exclude)x", "!a", "*", "[a]", " ", "a ", "tab\there", "A", "Dir/x", "dir/x", "~",
				strings.Repeat("n", 255), strings.Repeat("d", 200) + "/" + strings.Repeat("ä", 120), "\xff\xfe/\xfd\n/\"", "deep" + strings.Repeat("/d", 60)}
			for i, name := range names {
				w.put(name, fmt.Sprint(i))
			}
			before := w.files()
			require.Equal(t, len(names), w.take().Files)
			for i, name := range names {
				if i%2 == 0 {
					w.remove(name)
				} else {
					w.put(name, "changed")
				}
			}
			w.remove("\xff\xfe")
			w.put("\xff\xfe", "now a file")
			changed := w.files()
			w.restore("s1")
			require.Equal(t, before, w.files())
			w.restore("s2")
			require.Equal(t, changed, w.files())
			w.remove("\xff\xfe")
			require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "\xff\xfe", "\xfc"), 0o755))
			require.Empty(t, w.restore("s2").Kept, "folders that hold nothing are not in the way")
			require.Equal(t, changed, w.files())
		})
	}
}

// Two workspaces in one repository, or with one place for copies, may have threads of
// the same name: neither overwrites or prunes what the other one has.
func TestThreadsOfTheSameName(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newPlace(t, mode, nil)
			w.put("one/a", "1")
			w.put("two/a", "2")
			store := filepath.Join(t.TempDir(), "store")
			var plugins [2]*snapshots.Plugin
			var threads [2]*engine.Thread
			for i, name := range []string{"one", "two"} {
				plugins[i] = snapshots.New(snapshots.Options{Dir: filepath.Join(w.dir, name), Store: store})
				config, _ := enginetest.Config(t, plugins[i])
				var err error
				threads[i], err = enginetest.Engine(t, config).NewThread("same")
				require.NoError(t, err)
				_, err = plugins[i].Take(t.Context(), threads[i])
				require.NoError(t, err)
			}
			if mode == "copies" {
				require.NoError(t, filepath.WalkDir(filepath.Join(store, "objects"), func(name string, e fs.DirEntry, err error) error {
					if !e.IsDir() {
						old(t, name)
					}
					return err
				}))
			}
			n, err := plugins[1].Forget(t.Context(), "same")
			require.NoError(t, err)
			require.Equal(t, 1, n)
			if mode == "git" {
				git(t, w.dir, "prune", "--expire=now")
			}
			w.put("one/a", "changed")
			_, err = plugins[0].Restore(t.Context(), threads[0], "s1")
			require.NoError(t, err)
			require.Equal(t, "file 1", w.files()["one/a"])
		})
	}
}

// Two plugins for one directory do one thing at a time too: a restoring is whole.
func TestTwoPlugins(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		w := newPlace(t, mode, nil)
		for i := range 20 {
			w.put(fmt.Sprint("f", i), "one")
		}
		one := w.files()
		w.take()
		for i := range 20 {
			w.put(fmt.Sprint("f", i), strings.Repeat("two", 1000))
		}
		two := w.files()
		w.take()
		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			p := w.again()
			wg.Go(func() { _, errs[i] = p.Restore(t.Context(), w.th, fmt.Sprint("s", i%2+1)) })
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		require.Contains(t, []map[string]string{one, two}, w.files())
	}
}

// A copy that was damaged is never given out for what was saved, and is made again when
// the content is saved again.
func TestDamagedCopies(t *testing.T) {
	t.Parallel()
	w := newPlace(t, "copies", nil)
	w.put("a", "the content")
	w.put("b", "1")
	w.take()
	var damaged string
	require.NoError(t, filepath.WalkDir(w.store, func(name string, e fs.DirEntry, err error) error {
		if !e.IsDir() {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			if string(text) == "the content" {
				damaged = name
			}
		}
		return err
	}))
	require.NotEmpty(t, damaged)
	for _, text := range []string{"the CONTENT", "the", ""} {
		require.NoError(t, os.WriteFile(damaged, []byte(text), 0o600))
		w.put("a", "mine, "+text)
		done, err := w.p.Restore(t.Context(), w.th, "s1")
		require.ErrorContains(t, err, "damaged")
		require.NotEmpty(t, done.Before)
		require.Equal(t, "file mine, "+text, w.files()["a"])
		require.Len(t, w.files(), 2, "no draft stays")
	}
	w.put("a", "the content")
	w.put("b", "2")
	w.take()
	w.put("a", "changed")
	w.restore("s1")
	require.Equal(t, "file the content", w.files()["a"])
}

// A git that fails in the middle of a restoring leaves each file old or new, no draft,
// and a snapshot of what was before, with which all of it is there again.
func TestGitFailsInTheMiddle(t *testing.T) {
	if runtime.GOOS == "windows" { // which has no sh scripts
		return
	}
	for _, script := range []string{`"$real" "$@" | head -c 500; exit 0`, `"$real" "$@" | head -c 500; exit 1`, `"$real" "$@" | head -c 500; kill -9 $$`, `exit 128`} {
		w := newPlace(t, "git", nil)
		text := map[bool]string{false: strings.Repeat("old", 50), true: strings.Repeat("new", 50)}
		for i := range 6 {
			w.put(fmt.Sprint("f", i), text[false])
		}
		w.take()
		for i := range 6 {
			w.put(fmt.Sprint("f", i), text[true])
		}
		w.put("came", "c")
		changed := w.files()
		path := os.Getenv("PATH")
		instead(t, "cat-file", script)
		done, err := w.p.Restore(t.Context(), w.th, "s1")
		require.Error(t, err)
		require.Equal(t, "s2", done.Before)
		for name, now := range w.files() {
			require.Contains(t, []string{"file " + text[false], "file " + text[true]}, now, name)
		}
		t.Setenv("PATH", path)
		w.restore(done.Before)
		require.Equal(t, changed, w.files())
	}
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

// Work trees of other kinds are as good as others.
func TestKindsOfRepositories(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, main, dir string){
		"worktree": func(t *testing.T, main, dir string) { git(t, main, "worktree", "add", "-q", dir) },
		"git file": func(t *testing.T, _, dir string) {
			git(t, dir, "init", "-q", "--template=", "--separate-git-dir", filepath.Join(t.TempDir(), "elsewhere"))
		},
		"sha256": func(t *testing.T, _, dir string) {
			git(t, dir, "init", "-q", "--template=", "--object-format=sha256")
		},
		"alternates": func(t *testing.T, main, dir string) { git(t, dir, "clone", "-q", "--shared", main, ".") },
		"filters": func(t *testing.T, _, dir string) {
			git(t, dir, "init", "-q", "--template=")
			git(t, dir, "config", "filter.up.clean", "tr a-z A-Z")
			git(t, dir, "config", "filter.up.smudge", "false")
			git(t, dir, "config", "filter.up.required", "true")
			git(t, dir, "config", "core.autocrlf", "true")
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("* filter=up text working-tree-encoding=UTF-16\nsub export-ignore\n"), 0o644))
		},
		"flags": func(t *testing.T, main, dir string) {
			git(t, dir, "clone", "-q", main, ".")
			for _, flag := range []string{"--assume-unchanged", "--skip-worktree"} {
				git(t, dir, "update-index", flag, "base")
			}
		},
		"bisecting": func(t *testing.T, main, dir string) {
			git(t, dir, "clone", "-q", main, ".")
			git(t, dir, "bisect", "start")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			main, dir := t.TempDir(), filepath.Join(t.TempDir(), "work")
			require.NoError(t, os.Mkdir(dir, 0o755))
			git(t, main, "init", "-q", "--template=")
			require.NoError(t, os.WriteFile(filepath.Join(main, "base"), []byte("base\r\n"), 0o644))
			git(t, main, "add", ".")
			git(t, main, "commit", "-qm", "one")
			prepare(t, main, dir)
			w := newPlace(t, "none", func(o *snapshots.Options, _ *engine.Config) { o.Dir = dir })
			w.dir = dir
			w.put("base", "mixed\r\nlines\n\x00")
			w.put("sub/x", "x")
			before := w.files()
			w.take()
			w.put("base", "changed")
			w.remove("sub")
			w.put("came", "c")
			status := git(t, dir, "--no-optional-locks", "status", "--porcelain")
			require.NotEmpty(t, w.restore("s1").Changes)
			delete(before, ".git")
			after := w.files()
			delete(after, ".git")
			require.Equal(t, before, after)
			w.restore("s2")
			require.Equal(t, status, git(t, dir, "--no-optional-locks", "status", "--porcelain"))
		})
	}
}

// A restoring that is given up in the middle tells the way back.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		w := newPlace(t, mode, nil)
		w.put("a", "1")
		w.take()
		w.put("a", "2")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done, err := w.p.Restore(ctx, w.th, "s1")
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, done.Before, "before anything was done")
		require.Equal(t, map[string]string{"a": "file 2"}, w.files())
	}
}

// Restorings in tools that run at the same time each have a way back of their own.
func TestParallelRestorings(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		w := newPlace(t, mode, func(_ *snapshots.Options, c *engine.Config) {
			restore := func(call, id string) enginetest.Answer {
				return enginetest.Call(call, snapshots.RestoreTool, map[string]string{"id": id})
			}
			c.Model = enginetest.NewScript(restore("r1", "s1").And(restore("r2", "s2")), enginetest.Say("done"))
		})
		w.spec.ToolExecution = engine.ToolsParallel
		w.put("x", "1")
		w.take()
		w.put("x", "2")
		w.take()
		w.put(".gitignore", "x\n")
		w.put("x", "the user's, ignored now")
		before := w.files()
		require.NoError(t, w.run().Err)
		require.NotEqual(t, before, w.files())
		found := false
		for _, s := range w.list()[2:] {
			w.restore(s.ID)
			found = found || w.files()["x"] == before["x"]
		}
		require.True(t, found, "%s: %v", mode, w.list())
	}
}

// A process that is killed in the middle of a restoring leaves each file old or new; the
// snapshot that it took before has a ref, and restoring once more removes its draft.
func TestKilledInTheMiddle(t *testing.T) {
	if runtime.GOOS == "windows" { // which has no sh scripts
		return
	}
	const at = "SNAPSHOTS_TEST_WORKSPACE"
	text := map[bool]string{false: strings.Repeat("old", 50), true: strings.Repeat("new", 50)}
	fill := func(w *place, changed bool) {
		for i := range 6 {
			w.put(fmt.Sprint("f", i), text[changed])
		}
	}
	if dir := os.Getenv(at); dir != "" { // the process that is to be killed
		w := newPlace(t, "none", func(o *snapshots.Options, _ *engine.Config) { o.Dir = dir })
		w.dir = dir
		fill(w, false)
		w.take()
		fill(w, true)
		instead(t, "cat-file", `"$real" "$@" | head -c 500; kill -9 $PPID; exit 1`)
		w.restore("s1")
		t.Fatal("it was not killed")
	}
	w := newPlace(t, "git", nil)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), at+"="+w.dir, "TMPDIR="+t.TempDir()) // which it does not clean up
	out, err := cmd.CombinedOutput()
	require.ErrorContains(t, err, "killed", "%s", out)
	for name, now := range w.files() {
		if !strings.HasSuffix(name, ".fixpoint-draft") {
			require.Contains(t, []string{"file " + text[false], "file " + text[true]}, now, name)
		}
	}
	refs := strings.Fields(git(t, w.dir, "for-each-ref", "--format=%(refname)", "refs/fixpoint"))
	require.Len(t, refs, 2)
	require.Equal(t, text[true], git(t, w.dir, "cat-file", "blob", refs[1]+":f0"), "the way back")
	tree := strings.TrimSpace(git(t, w.dir, "rev-parse", refs[0]+"^{tree}"))
	_, err = w.th.Submit(t.Context(), "test", *new(phase.Command).Update(snapshots.Taken.Put(1, snapshots.Snapshot{ID: "s1", Store: "git", Tree: tree})))
	require.NoError(t, err)
	require.Equal(t, "s3", w.restore("s1").Before)
	require.Len(t, w.files(), 6)
	require.Equal(t, "file "+text[false], w.files()["f0"])
}

// A file whose name git takes into no tree is never lost for that: there is no snapshot
// without it, and nothing is restored, until it is excluded.
func TestNameThatGitDoesNotTake(t *testing.T) {
	t.Parallel()
	exclude := snapshots.Options{}
	w := newPlace(t, "git", func(o *snapshots.Options, _ *engine.Config) { exclude = *o })
	w.put("a", "1")
	w.put("sub/.GIT/x", "left alone")
	w.take()
	w.put("git~1", "the user's")
	w.put("a", "2")
	before := w.files()
	_, err := w.p.Restore(t.Context(), w.th, "s1")
	require.ErrorContains(t, err, "git~1")
	require.Equal(t, before, w.files())
	exclude.Exclude = []string{"git~*"}
	_, err = snapshots.New(exclude).Restore(t.Context(), w.th, "s1")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "file 1", "git~1": "file the user's", "sub/.GIT/x": "file left alone"}, w.files())
}
