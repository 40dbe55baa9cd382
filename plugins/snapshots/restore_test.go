package snapshots_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/snapshots"
)

// users returns all of a repository that is the user's: every file of it that is no
// object and no ref of a snapshot, byte by byte, and what git says.
func (w *place) users() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	top := filepath.Join(w.dir, ".git")
	require.NoError(w.t, filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(top, name)
		switch rel = filepath.ToSlash(rel); {
		case err != nil:
			return err
		case e.IsDir() && (rel == "objects" || rel == "refs/fixpoint"):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		text, err := os.ReadFile(name)
		out[rel] = string(text)
		return err
	}))
	return out
}

func (w *place) status() string {
	return git(w.t, w.dir, "--no-optional-locks", "status", "--porcelain", "--branch", "--ignored") + git(w.t, w.dir, "stash", "list") + git(w.t, w.dir, "branch", "-av")
}

// Capability G7. Taking, comparing, restoring and pruning touch nothing of the user's:
// no index, HEAD, branch, stash, hook, log or setting, whatever state they are in.
func TestUsersRepository(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *place){
		"unborn":        func(*place) {},
		"unborn staged": func(w *place) { git(t, w.dir, "add", "a", "sub") },
		"committed":     func(w *place) { git(t, w.dir, "add", "."); git(t, w.dir, "commit", "-qm", "one") },
		"all at once": func(w *place) {
			git(t, w.dir, "add", ".")
			git(t, w.dir, "commit", "-qm", "one")
			w.put("a", "stashed")
			git(t, w.dir, "stash")
			w.put("a", "staged")
			w.put("new", "staged")
			git(t, w.dir, "add", "a", "new")
			w.put("a", "staged and changed")
			w.remove("sub/b")
			git(t, w.dir, "checkout", "-q", "--detach")
			git(t, w.dir, "config", "core.logAllRefUpdates", "always")
			git(t, w.dir, "config", "core.autocrlf", "true")
			git(t, w.dir, "config", "core.splitIndex", "true")
		},
		"merging": func(w *place) {
			git(t, w.dir, "add", ".")
			git(t, w.dir, "commit", "-qm", "one")
			git(t, w.dir, "checkout", "-qb", "other")
			w.put("a", "theirs")
			git(t, w.dir, "commit", "-qam", "theirs")
			git(t, w.dir, "checkout", "-q", "-")
			w.put("a", "ours")
			git(t, w.dir, "commit", "-qam", "ours")
			git(t, w.dir, "merge", "-q", "--no-commit", "-s", "ours", "other")
			git(t, w.dir, "read-tree", "-m", "HEAD~1", "HEAD", "other") // leaves a conflict in the index
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlace(t, "git", nil)
			w.put(".gitignore", "*.o\n")
			w.put("a", "one\n")
			w.put("sub/b", "two\n")
			w.put("x.o", "object")
			prepare(w)
			for _, hook := range []string{"reference-transaction", "post-checkout", "pre-commit", "post-index-change"} {
				w.put(".git/hooks/"+hook, "#!/bin/sh\necho ran >> \"$(git rev-parse --git-dir)/hook-ran\"\n")
				require.NoError(t, os.Chmod(filepath.Join(w.dir, ".git/hooks", hook), 0o755))
			}
			users, status, files := w.users(), w.status(), w.files()

			w.take()
			require.Equal(t, users, w.users())
			w.put("a", "agent\r\n")
			w.put("deep/er/c", "new")
			w.remove("sub")
			w.take()
			_, err := w.p.Diff(t.Context(), w.th.Snapshot(), "s1", "")
			require.NoError(t, err)
			w.restore("s1")
			_, err = w.p.Prune(t.Context(), w.th, 1)
			require.NoError(t, err)
			require.Equal(t, users, w.users())
			require.Equal(t, files, w.files())
			require.Equal(t, status, w.status())
			require.Equal(t, 1, strings.Count(git(t, w.dir, "for-each-ref", "refs/fixpoint"), "\n"))
		})
	}
}

// Every kind of file comes back as it was, and what is not covered stays.
func TestRestore(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newPlace(t, mode, func(o *snapshots.Options, _ *engine.Config) { o.Exclude = []string{"keep", "some/*/secret"} })
			w.put("plain", "a\r\nb\n\x00\xff")
			w.put("empty", "")
			w.put("dir/one", "1")
			w.put("dir/two", "2")
			w.put("becomes/folder", "f")
			w.put("odd \"name\"\n\\\xff", "odd")
			w.put("keep/this", "k")
			w.put("some/where/secret", "s")
			require.NoError(t, os.Chmod(filepath.Join(w.dir, "dir/two"), 0o755))
			require.NoError(t, os.Chmod(filepath.Join(w.dir, "plain"), 0o606))
			require.NoError(t, os.Symlink("dir/one", filepath.Join(w.dir, "link")))
			require.NoError(t, os.Symlink("/nowhere/at/all", filepath.Join(w.dir, "dangling")))
			require.NoError(t, os.Symlink("dir", filepath.Join(w.dir, "folderlink")))
			before := w.files()
			require.Equal(t, "s1", w.take().ID)
			require.Equal(t, "s1", w.take().ID, "nothing has changed")

			w.put("plain", "changed")
			w.remove("empty")
			w.remove("dir")
			w.put("dir", "now a file")
			w.remove("becomes")
			w.put("becomes", "now a file")
			w.remove("link")
			w.put("link", "now a file")
			w.remove("folderlink")
			w.put("folderlink/x/y", "now a folder")
			w.remove("dangling")
			require.NoError(t, os.Symlink("plain", filepath.Join(w.dir, "dangling")))
			w.put("keep/this", "k2")
			w.put("keep/that", "k3")
			w.put("some/where/secret", "s2")
			w.put("came/later", "l")
			changed := w.files()

			done := w.restore("s1")
			require.Equal(t, "s2", done.Before)
			require.Empty(t, done.Kept)
			require.NoDirExists(t, filepath.Join(w.dir, "came"))
			maps.Copy(before, map[string]string{"keep/this": "file k2", "keep/that": "file k3", "some/where/secret": "file s2"})
			require.Equal(t, before, w.files())
			info, err := os.Stat(filepath.Join(w.dir, "plain"))
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o606), info.Mode().Perm(), "other permissions are not the snapshot's")
			changes, err := w.p.Diff(t.Context(), w.th.Snapshot(), "s1", "")
			require.NoError(t, err)
			require.Empty(t, changes)
			changes, err = w.p.Diff(t.Context(), w.th.Snapshot(), "s2", "s1")
			require.NoError(t, err)
			require.Equal(t, done.Changes, changes)

			require.Equal(t, "s3", w.restore("s2").Before)
			require.Equal(t, changed, w.files(), "a restoring can be undone")
			_, err = w.p.Restore(t.Context(), w.th, "s7")
			require.ErrorIs(t, err, snapshots.ErrUnknown)
		})
	}
}

// A file is removed only when neither the rules of now nor those of the snapshot
// ignore it, and one that is ignored now is saved before it is overwritten.
func TestIgnoreRulesChange(t *testing.T) {
	t.Parallel()
	w := newPlace(t, "git", nil)
	w.put(".gitignore", "*.then\n")
	w.put("x.then", "the user's")
	w.put("y.now", "covered")
	w.take()
	w.put(".gitignore", "*.now\n")
	w.put("sub/.gitignore", "z\n")
	w.put("sub/z", "ignored when it is restored? no: its rules came later")
	w.put("new.now", "made and ignored now")
	w.put("y.now", "changed and ignored now")
	changed := w.files()
	done := w.restore("s1")
	require.Empty(t, done.Kept)
	require.Equal(t, map[string]string{
		".gitignore": "file *.then\n", "x.then": "file the user's", "y.now": "file covered",
		"new.now": changed["new.now"], "sub/z": changed["sub/z"],
	}, w.files())
	w.restore(done.Before)
	require.Equal(t, changed, w.files())
}

// What is not covered is never removed to make room.
func TestInTheWay(t *testing.T) {
	t.Parallel()
	w := newPlace(t, "git", nil)
	w.put(".gitignore", "*.o\nlinked\n")
	w.put("a", "file")
	w.put("linked/b", "file")
	git(t, w.dir, "add", "-f", "linked/b")
	w.put("c", "c")
	w.take()
	w.remove("a")
	w.put("a/x.o", "ignored")
	w.remove("linked")
	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(w.dir, "linked")))
	w.put("c", "changed")
	done := w.restore("s1")
	require.Equal(t, []string{"a", "linked/b"}, done.Kept)
	require.Equal(t, map[string]string{".gitignore": "file *.o\nlinked\n", "a/x.o": "file ignored", "c": "file c", "linked": "link " + outside}, w.files())
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is written through a link")
}

// Submodules and nested repositories are theirs; and a folder within a repository is a
// workspace of its own.
func TestPartsOfRepositories(t *testing.T) {
	t.Parallel()
	w := newPlace(t, "git", nil)
	inner := filepath.Join(w.dir, "sub", "nested")
	w.put("sub/nested/x", "x")
	git(t, inner, "init", "-q")
	git(t, inner, "add", ".")
	git(t, inner, "commit", "-qm", "one")
	w.put("module/y", "y")
	git(t, filepath.Join(w.dir, "module"), "init", "-q")
	git(t, filepath.Join(w.dir, "module"), "add", ".")
	git(t, filepath.Join(w.dir, "module"), "commit", "-qm", "one")
	git(t, w.dir, "add", "module")
	w.put("outside", "o")
	w.put("sub/in", "i")
	require.Equal(t, 2, w.take().Files)
	part := snapshots.New(snapshots.Options{Dir: filepath.Join(w.dir, "sub")})
	th, err := w.eng.NewThread("A part, of its own")
	require.NoError(t, err)
	s, err := part.Take(t.Context(), th)
	require.NoError(t, err)
	require.Equal(t, 1, s.Files)
	for _, name := range []string{"sub/nested/x", "module/y", "outside", "sub/in"} {
		w.put(name, "changed")
	}
	done, err := part.Restore(t.Context(), th, s.ID)
	require.NoError(t, err)
	require.Equal(t, []snapshots.Change{{Path: "in", Kind: snapshots.Modified, Before: 7, After: 1}}, done.Changes)
	w.restore("s1")
	require.Equal(t, map[string]string{"sub/nested/x": "file changed", "module/y": "file changed", "outside": "file o", "sub/in": "file i"}, w.files())
}

// A workspace that becomes a repository keeps the snapshots from before.
func TestRepositoryMadeLater(t *testing.T) {
	t.Parallel()
	w := newPlace(t, "copies", nil)
	w.put("a", "1")
	require.Equal(t, "copies", w.take().Store)
	git(t, w.dir, "init", "-q")
	require.Equal(t, "git", w.take().Store)
	w.put("a", "2")
	w.put("b", "2")
	_, err := w.p.Diff(t.Context(), w.th.Snapshot(), "s1", "s2")
	require.ErrorIs(t, err, snapshots.ErrStores)
	w.restore("s1")
	require.Equal(t, map[string]string{"a": "file 1"}, w.files())
	w.restore("s3")
	require.Equal(t, map[string]string{"a": "file 2", "b": "file 2"}, w.files())
}

// A thread keeps as many snapshots as its section says, and pruning drops what nothing
// leads to: also a ref that a process left behind before it told the thread.
func TestPrune(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			store := filepath.Join(t.TempDir(), "store")
			w := newPlace(t, mode, func(o *snapshots.Options, c *engine.Config) {
				say := enginetest.Say("done")
				o.Store, c.Model = store, enginetest.NewScript(say, say, say, say, say)
			})
			w.section(`{"keep": 2}`)
			held := func() int {
				if mode == "git" {
					return strings.Count(git(t, w.dir, "for-each-ref", "refs/fixpoint/*/t/*"), "\n")
				}
				all, err := filepath.Glob(filepath.Join(store, "refs", "*", "t", "*"))
				require.NoError(t, err)
				return len(all)
			}
			for n := range 5 {
				w.put("a", fmt.Sprint(n))
				require.NoError(t, w.run().Err)
			}
			all := w.list()
			require.Len(t, all, 2)
			require.Equal(t, []string{"s4", "s5"}, []string{all[0].ID, all[1].ID})
			require.Equal(t, 3, held(), "one that was just forgotten stays until that is certain")
			if mode == "git" {
				of := path.Dir(strings.Fields(git(t, w.dir, "for-each-ref", "--format=%(refname)", "refs/fixpoint"))[0])
				git(t, w.dir, "update-ref", of+"/s2", of+"/s4")
			} else {
				of, err := filepath.Glob(filepath.Join(store, "refs", "*", "t"))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(of[0], "s2"), []byte(all[0].Tree), 0o600))
				require.NoError(t, filepath.WalkDir(filepath.Join(store, "objects"), func(name string, e fs.DirEntry, err error) error {
					if !e.IsDir() {
						old(t, name)
					}
					return err
				}))
			}
			n, err := w.p.Prune(t.Context(), w.th, 0)
			require.NoError(t, err)
			require.Equal(t, 3, n)
			require.Equal(t, 1, held())
			if mode == "copies" {
				copies := 0
				require.NoError(t, filepath.WalkDir(filepath.Join(store, "objects"), func(_ string, e fs.DirEntry, err error) error {
					if !e.IsDir() {
						copies++
					}
					return err
				}))
				require.Equal(t, 2, copies, "a file and its list")
			}
			w.put("a", "new")
			w.restore("s5")
			require.Equal(t, map[string]string{"a": "file 4"}, w.files())
			require.Equal(t, "s6", w.list()[1].ID, "numbers are not used again")
			n, err = w.p.Forget(t.Context(), "t")
			require.NoError(t, err)
			require.Equal(t, 2, n)
			require.Zero(t, held())
		})
	}
}

// model is what a workspace should hold: files by path, as place.files writes them.
type model map[string]string

// put makes a file, for which what is in its way goes.
func (m model) put(name, text string) {
	m.remove(name)
	for i := range name {
		if name[i] == '/' {
			delete(m, name[:i])
		}
	}
	m[name] = text
}

func (m model) remove(name string) {
	maps.DeleteFunc(m, func(other, _ string) bool { return other == name || strings.HasPrefix(other, name+"/") })
}

// covered returns the part of the model that snapshots hold.
func (m model) covered() model {
	c := maps.Clone(m)
	maps.DeleteFunc(c, func(name, _ string) bool { return strings.HasSuffix(name, ".out") })
	return c
}

// Capability G7. Any sequence of edits, snapshots and restorings leaves the workspace
// as a model says that just copies all files.
func FuzzModel(f *testing.F) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 60)
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		f.Add(seed%2 == 0, ops)
	}
	f.Fuzz(func(t *testing.T, inGit bool, ops []byte) {
		if runtime.GOOS == "windows" { // which has no modes and needs a right for links
			return
		}
		mode := modes[1]
		if inGit {
			mode = modes[0]
		}
		w := newPlace(t, mode, func(o *snapshots.Options, _ *engine.Config) { o.Exclude = []string{"*.out"} })
		names := []string{"a", "b", "a/x", "a/y", "b/x/z", "c", "c/d/e/f", "ä b"}
		free := []string{"k.out", "only/k.out"} // never in the way of the others
		is, saved := model{}, map[string]model{}
		now := func(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }
		room := func(name string) {
			is.remove(name)
			w.remove(name)
			for i := range name {
				if info, err := os.Lstat(now(name[:i])); name[i] == '/' && err == nil && !info.IsDir() {
					w.remove(name[:i])
				}
			}
		}
		for i := 0; i+1 < min(len(ops), 80); i += 2 {
			name, text := names[int(ops[i+1])%len(names)], fmt.Sprint(ops[i+1]/16)
			users := map[string]string{}
			if inGit {
				users = w.users()
			}
			switch ops[i] % 10 {
			case 0, 1, 2:
				room(name)
				w.put(name, text)
				is.put(name, "file "+text)
			case 3:
				room(name)
				w.put(name, text)
				require.NoError(t, os.Chmod(now(name), 0o755))
				is.put(name, "exec "+text)
			case 4:
				room(name)
				require.NoError(t, os.MkdirAll(filepath.Dir(now(name)), 0o755))
				require.NoError(t, os.Symlink(text, now(name)))
				is.put(name, "link "+text)
			case 5:
				w.remove(name)
				is.remove(name)
			case 6:
				name = free[int(ops[i+1])%len(free)]
				w.put(name, text)
				is.put(name, "file "+text)
			case 7:
				if inGit {
					git(t, w.dir, "add", "-A")
				}
				continue
			case 8:
				saved[w.take().ID] = is.covered()
			case 9:
				all := w.list()
				if len(all) == 0 {
					continue
				}
				to := all[int(ops[i+1])%len(all)].ID
				before := is.covered()
				done := w.restore(to)
				require.Empty(t, done.Kept)
				saved[done.Before] = before
				maps.DeleteFunc(is, func(name, _ string) bool { return !strings.HasSuffix(name, ".out") })
				maps.Copy(is, saved[to])
			}
			require.Equal(t, map[string]string(is), w.files(), "after operation %d of %v", i/2, ops)
			if inGit {
				require.Equal(t, users, w.users())
			}
		}
	})
}
