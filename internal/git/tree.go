package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Modes of entries.
const (
	ModeFile       = "100644"
	ModeExecutable = "100755"
	ModeLink       = "120000"
	ModeSubmodule  = "160000"
)

// Entry is a file in a tree or an index.
type Entry struct {
	Mode string // "" for one that is not there
	ID   string // of the object
	Path string // with slashes
}

// Change is a path that differs between two trees.
type Change struct {
	Path        string
	Before, Now Entry
}

// Head returns the commit that HEAD is at, "" on a branch without commits, and the
// full name of the branch, "" when HEAD is detached.
func (r *Repo) Head(ctx context.Context) (commit, branch string, err error) {
	branch, err = quiet(r.line(ctx, Call{Args: []string{"symbolic-ref", "-q", "HEAD"}}))
	if err == nil {
		commit, err = quiet(r.line(ctx, Call{Args: []string{"rev-parse", "--verify", "-q", "HEAD^{commit}"}}))
	}
	return commit, branch, err
}

// quiet takes exit status 1 for "there is none".
func quiet(out string, err error) (string, error) {
	var exit *ExitError
	if errors.As(err, &exit) && exit.Code == 1 {
		return "", nil
	}
	return out, err
}

// TreeOf returns the tree of a commit; that of "" is the empty one.
func (r *Repo) TreeOf(ctx context.Context, commit string) (string, error) {
	if commit == "" {
		return r.line(ctx, Call{Args: []string{"hash-object", "-w", "-t", "tree", "--stdin"}})
	}
	return r.line(ctx, Call{Args: []string{"rev-parse", "--verify", commit + "^{tree}"}})
}

// WorkTree returns a tree of what is tracked and of what "git add --all" in the
// directory would add, as it would: ignored files are left out and filters apply. It
// adds objects and leaves the index alone.
func (r *Repo) WorkTree(ctx context.Context) (tree string, err error) {
	err = Scratch(func(dir string) error {
		index := filepath.Join(dir, "index")
		if err := r.copyIndex(index); err != nil {
			return err
		}
		if err := r.addAll(ctx, index); err != nil {
			return err
		}
		tree, err = r.line(ctx, Call{Args: []string{"write-tree"}, Index: index})
		return err
	})
	return tree, err
}

// addAll is "git add --all" into an index, without the two things that git refuses:
// nested repositories that have no commit are passed over, and what a sparse checkout
// would not have is added all the same.
func (r *Repo) addAll(ctx context.Context, index string) error {
	args, paths := []string{"add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"}, ".\x00"
	for try := 0; ; try++ {
		_, err := r.Git(ctx, Call{Args: args, Index: index, Stdin: strings.NewReader(paths)})
		var exit *ExitError
		switch {
		case !errors.As(err, &exit) || try == 2:
			return err
		case strings.Contains(exit.Detail, "sparse-checkout"):
			args = append(args, "--sparse")
		case strings.Contains(exit.Detail, "does not have a commit checked out"):
			out, err := r.Git(ctx, Call{Args: []string{"ls-files", "-z", "--full-name", "--others", "--exclude-standard"}, Index: index})
			if err != nil {
				return err
			}
			for path := range strings.SplitSeq(string(out), "\x00") {
				if nested, is := strings.CutSuffix(path, "/"); is {
					paths += ":(top,exclude,literal)" + nested + "\x00"
				}
			}
		default:
			return err
		}
	}
}

// copyIndex copies the user's index, if there is one, for what it knows about files
// that have not changed. The copy is as old as the index: git reads a file again that is
// not older than the index, since it may have changed without looking so.
func (r *Repo) copyIndex(to string) error {
	from, err := os.Open(filepath.Join(r.gitDir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("git: cannot read the index: %w", err)
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err == nil {
		var info fs.FileInfo
		info, err = from.Stat()
		if err == nil {
			_, err = io.Copy(file, from)
		}
		if err = errors.Join(err, file.Close()); err == nil {
			err = os.Chtimes(to, info.ModTime(), info.ModTime())
		}
	}
	return errors.Join(err, from.Close())
}

// Tree makes a tree of base, "" for none, with the entries put in, and those without a
// mode taken out. Paths are relative to the tree.
func (r *Repo) Tree(ctx context.Context, base string, entries []Entry) (tree string, err error) {
	err = Scratch(func(dir string) error {
		tree, err = r.TreeIn(ctx, filepath.Join(dir, "index"), base, entries)
		return err
	})
	return tree, err
}

// TreeIn is Tree with an index that stays. With the base "" it begins with what is in it.
func (r *Repo) TreeIn(ctx context.Context, index, base string, entries []Entry) (string, error) {
	if base != "" {
		if _, err := r.Git(ctx, Call{Args: []string{"read-tree", base}, Index: index}); err != nil {
			return "", err
		}
	}
	if err := r.Stage(ctx, index, entries); err != nil {
		return "", err
	}
	return r.line(ctx, Call{Args: []string{"write-tree"}, Index: index})
}

// Stage puts entries into an index, "" for the user's, and takes those without a mode
// out. Paths are relative to the top of the work tree. It fails with ErrName for those
// that git has in no index.
func (r *Repo) Stage(ctx context.Context, index string, entries []Entry) error {
	// Those that go come first: a file may become a folder, and a folder a file.
	var gone, put bytes.Buffer
	for _, e := range entries {
		if e.Mode == "" {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", r.none, e.Path)
		} else {
			fmt.Fprintf(&put, "%s %s\t%s\x00", e.Mode, e.ID, e.Path)
		}
	}
	said := Tail{Limit: detailLimit}
	_, err := r.Git(ctx, Call{Args: []string{"update-index", "-z", "--index-info"}, Top: true, Index: index, Stdin: io.MultiReader(&gone, &put), Stderr: &said})
	if err == nil && strings.Contains(said.String(), "Ignoring path ") { // and leaves the rest as it is
		err = fmt.Errorf("%w: %s", ErrName, strings.TrimSpace(said.String()))
	}
	return err
}

// Diff returns what differs from tree a to tree b, by path. Renames are a file that
// went and one that came.
func (r *Repo) Diff(ctx context.Context, a, b string) ([]Change, error) {
	out, err := r.Git(ctx, Call{Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", a, b}, Top: true})
	if err != nil {
		return nil, err
	}
	return parseRaw(out)
}

// Staged returns what differs from a tree to the user's index, by path. A file that is
// only meant to be added is not there yet.
func (r *Repo) Staged(ctx context.Context, tree string) ([]Change, error) {
	out, err := r.Git(ctx, Call{Args: []string{"diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-ext-diff", "--ita-invisible-in-index", tree}, Top: true})
	if err != nil {
		return nil, err
	}
	return parseRaw(out)
}

// parseRaw reads what diff-tree and diff-index write with -z.
func parseRaw(out []byte) ([]Change, error) {
	var all []Change
	for len(out) > 0 {
		info, rest, ok := bytes.Cut(out, []byte{0})
		path, rest, more := bytes.Cut(rest, []byte{0})
		fields := strings.Fields(string(info))
		if !ok || !more || len(path) == 0 || len(fields) != 5 || len(fields[0]) != 7 || fields[0][0] != ':' {
			return nil, fmt.Errorf("git: cannot read a difference: %.100q", info)
		}
		c := Change{Path: string(path)}
		c.Before = Entry{Mode: fields[0][1:], ID: fields[2], Path: c.Path}
		c.Now = Entry{Mode: fields[1], ID: fields[3], Path: c.Path}
		for _, e := range []*Entry{&c.Before, &c.Now} {
			if e.Mode == "000000" {
				e.Mode = ""
			}
		}
		all, out = append(all, c), rest
	}
	return all, nil
}
