package snapshots

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/internal/git"
)

// inGit is the name of the store in the repository of the workspace.
const inGit = "git"

// refs is where the refs of snapshots are, each at a commit without parents.
const refs = "refs/fixpoint/"

// gitStore keeps snapshots as objects of the repository.
type gitStore struct {
	repo *git.Repo
	root *os.Root
	refs string // where those of the workspace are
}

func (g *gitStore) name() string { return inGit }

func (g *gitStore) covered(ctx context.Context) ([]string, error) { return g.repo.Covered(ctx) }

// removable leaves out what is tracked although the rules ignore it: it may have been
// there before somebody had it tracked.
func (g *gitStore) removable(ctx context.Context) ([]string, error) {
	all, err := g.repo.Covered(ctx)
	if err != nil {
		return nil, err
	}
	forced, err := g.repo.Forced(ctx)
	if err != nil {
		return nil, err
	}
	not := make(map[string]bool, len(forced))
	for _, name := range forced {
		not[name] = true
	}
	return slices.DeleteFunc(all, func(name string) bool { return not[name] }), nil
}

// identify gives the ids that git would, had it no filters.
func (g *gitStore) identify(ctx context.Context, files []file, keep bool) error {
	if len(files) == 0 {
		return nil
	}
	return git.Scratch(func(dir string) error {
		paths := make([]string, len(files))
		for i, f := range files {
			paths[i] = f.Path
			if f.Mode != git.ModeLink {
				continue
			}
			// git would follow the link; what it is to keep is where the link leads.
			target, err := g.root.Readlink(f.Path)
			if err == nil {
				paths[i] = filepath.Join(dir, strconv.Itoa(i))
				err = os.WriteFile(paths[i], []byte(target), 0o600)
			}
			if err != nil {
				return fmt.Errorf("snapshots: cannot read the link %s: %w", f.Path, err)
			}
			files[i].Size = int64(len(target))
		}
		ids, err := g.repo.Blobs(ctx, paths, keep)
		for i, id := range ids {
			files[i].ID = id
		}
		return err
	})
}

func (g *gitStore) tree(ctx context.Context, files []file) (string, error) {
	entries := make([]git.Entry, len(files))
	for i, f := range files {
		entries[i] = git.Entry{Mode: f.Mode, ID: f.ID, Path: f.Path}
	}
	return g.repo.Tree(ctx, "", entries)
}

func (g *gitStore) list(ctx context.Context, tree string) ([]file, error) {
	listed, err := g.repo.List(ctx, tree)
	if err != nil {
		return nil, err
	}
	files := make([]file, len(listed))
	for i, e := range listed {
		files[i] = file{Path: e.Path, Mode: e.Mode, ID: e.ID, Size: e.Size}
	}
	slices.SortFunc(files, byPath)
	return files, nil
}

func (g *gitStore) contents(ctx context.Context, files []file, fn func(f file, content io.Reader) error) error {
	ids := make([]string, len(files))
	for i, f := range files {
		ids[i] = f.ID
	}
	return g.repo.Contents(ctx, ids, func(i int, content io.Reader) error { return fn(files[i], content) })
}

func (g *gitStore) keep(ctx context.Context, thread string, s Snapshot) error {
	by := git.Identity{Name: "fixpoint", Email: "snapshots@fixpoint.invalid", Date: fmt.Sprintf("@%d +0000", max(0, s.Time.Unix()))}
	commit, err := g.repo.Commit(ctx, s.Tree, "", fmt.Sprintf("Snapshot %s (%s)\n", s.ID, s.Why), by)
	if err != nil {
		return err
	}
	return g.repo.Update(ctx, g.refs+element(thread)+"/"+s.ID, commit, "", "")
}

func (g *gitStore) newest(ctx context.Context, thread string) (n int, err error) {
	_, ids, err := g.kept(ctx, thread)
	for _, id := range ids {
		n = max(n, number(id))
	}
	return n, err
}

// kept returns the ids of the snapshots of a thread that have refs, and where those are.
func (g *gitStore) kept(ctx context.Context, thread string) (at string, ids []string, err error) {
	at = g.refs + element(thread) + "/"
	out, err := g.repo.Git(ctx, git.Call{Args: []string{"for-each-ref", "--format=%(refname)", at}})
	for ref := range strings.FieldsSeq(string(out)) {
		if id := strings.TrimPrefix(ref, at); !strings.Contains(id, "/") {
			ids = append(ids, id)
		}
	}
	return at, ids, err
}

func (g *gitStore) prune(ctx context.Context, thread string, but []Snapshot) (int, error) {
	at, ids, err := g.kept(ctx, thread)
	if err != nil {
		return 0, err
	}
	var in strings.Builder
	n := 0
	for _, id := range ids {
		if !wanted(id, but) {
			fmt.Fprintf(&in, "delete %s\n", at+id)
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	_, err = g.repo.Git(ctx, git.Call{Args: []string{"update-ref", "--stdin"}, Stdin: strings.NewReader(in.String())})
	return n, err
}

// wanted reports whether the snapshot is among the given ones, oldest first, or newer
// than they are: then somebody is about to tell the thread of it.
func wanted(id string, but []Snapshot) bool {
	if slices.ContainsFunc(but, func(s Snapshot) bool { return s.ID == id }) {
		return true
	}
	return len(but) > 0 && number(id) > number(but[len(but)-1].ID)
}

func number(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "s"))
	if err != nil {
		return 0
	}
	return n
}

// element makes an id of a thread an element of a ref or path: itself when it is plain.
func element(id string) string {
	plain := len(id) > 0 && len(id) <= 100 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
	if plain && id[0] != '-' {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "x." + hex.EncodeToString(sum[:16])
}
