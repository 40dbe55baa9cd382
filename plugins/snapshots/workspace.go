package snapshots

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/internal/git"
)

// file is a regular file or symbolic link.
type file struct {
	Path string // with slashes, relative to the workspace
	Mode string // as git has it
	ID   string // of its content
	Size int64
}

// store keeps the content of snapshots. Its ids are equal for equal content.
type store interface {
	name() string
	// covered returns the paths that a snapshot could hold, whether or not there are
	// such files, in any order and perhaps repeatedly.
	covered(ctx context.Context) ([]string, error)
	// removable returns those of them that a restoring may remove.
	removable(ctx context.Context) ([]string, error)
	// identify fills in the ids of files and with keep keeps their content.
	identify(ctx context.Context, files []file, keep bool) error
	// tree keeps a list of files.
	tree(ctx context.Context, files []file) (string, error)
	// list returns the files of a tree.
	list(ctx context.Context, tree string) ([]file, error)
	// contents calls fn with the content of each file, in order.
	contents(ctx context.Context, files []file, fn func(f file, content io.Reader) error) error
	// newest returns the highest number of a snapshot of the thread that is kept, or 0.
	newest(ctx context.Context, thread string) (int, error)
	// keep holds on to a snapshot, and prune lets go of those of the thread that are
	// not among the given ones and not newer than them.
	keep(ctx context.Context, thread string, s Snapshot) error
	prune(ctx context.Context, thread string, but []Snapshot) (int, error)
}

// workspace is the directory that snapshots are of, open.
type workspace struct {
	opts  Options
	root  *os.Root
	store store
}

// open opens the workspace with the store of that name, or with "" the one that new
// snapshots go to. The lock is held.
func (p *Plugin) open(ctx context.Context, name string) (*workspace, error) {
	root, err := os.OpenRoot(p.opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("snapshots: cannot open the workspace: %w", err)
	}
	w := &workspace{opts: p.opts, root: root}
	if name != copies {
		repo, err := git.Open(ctx, p.opts.Dir)
		switch {
		case err == nil:
			w.store = &gitStore{repo: repo, root: root, refs: refs + place(p.opts.Dir) + "/"}
			return w, nil
		case name == inGit, !errors.Is(err, git.ErrNoRepository) && !errors.Is(err, git.ErrNoGit):
			return nil, errors.Join(err, root.Close())
		}
	}
	if p.opts.Store == "" {
		return nil, errors.Join(ErrNoStore, root.Close())
	}
	w.store = &copyStore{dir: p.opts.Store, root: root, excluded: w.excluded, opts: p.opts}
	return w, nil
}

func (w *workspace) close() { _ = w.root.Close() } // it was only read

// place stands for a directory: threads of the same name may have snapshots in one
// repository, or one place for copies, of different directories.
func place(dir string) string {
	sum := sha256.Sum256([]byte(real(dir)))
	return hex.EncodeToString(sum[:8])
}

// excluded reports whether a path, or a folder on the way to it, is excluded. What is
// named .git always is: it is a repository, or leads to one.
func (w *workspace) excluded(name string) bool {
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if strings.EqualFold(path.Base(name[:i]), ".git") {
			return true
		}
		for _, pattern := range w.opts.Exclude {
			of := name[:i]
			if !strings.Contains(pattern, "/") {
				of = path.Base(of)
			}
			if ok, _ := path.Match(pattern, of); ok { // complete found it to be well formed
				return true
			}
		}
	}
	return false
}

// scans is how often a scan is tried, since files may vanish under it.
const scans = 3

// scan returns the files of the workspace that are covered, and those of also that
// are there, by path, with their ids. With keep the store has their content.
func (w *workspace) scan(ctx context.Context, also []file, keep bool) (files []file, err error) {
	for range scans {
		files, err = w.scanOnce(ctx, also, keep)
		if err == nil || errors.Is(err, ErrTooLarge) || ctx.Err() != nil {
			break
		}
	}
	return files, err
}

func (w *workspace) scanOnce(ctx context.Context, also []file, keep bool) ([]file, error) {
	paths, err := w.store.covered(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range also {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	var files []file
	var total int64
	folders := map[string]bool{}
	for _, name := range slices.Compact(paths) {
		if w.excluded(name) {
			continue
		}
		f, ok, err := w.look(name, folders)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		files, total = append(files, f), total+f.Size
		if len(files) > w.opts.Limits.Files || total > w.opts.Limits.Bytes {
			return nil, tooLarge(w.opts.Limits)
		}
	}
	return files, w.store.identify(ctx, files, keep)
}

func tooLarge(l Limits) error {
	return fmt.Errorf("%w for a snapshot: the limits are %d files and %d bytes; exclude what need not be in it, or raise Options.Limits", ErrTooLarge, l.Files, l.Bytes)
}

// look returns the file of that path if there is one that a snapshot can hold: not a
// folder, nor anything that a link on the way leads to. It remembers folders.
func (w *workspace) look(name string, folders map[string]bool) (f file, ok bool, err error) {
	if is, err := w.within(path.Dir(name), folders); !is {
		return f, false, err
	}
	info, err := w.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil
	}
	if err != nil {
		return f, false, fmt.Errorf("snapshots: cannot look at %s: %w", name, err)
	}
	f = file{Path: name, Size: info.Size()}
	switch mode := info.Mode(); {
	case mode.IsRegular() && mode.Perm()&0o100 != 0:
		f.Mode = git.ModeExecutable
	case mode.IsRegular():
		f.Mode = git.ModeFile
	case mode.Type() == fs.ModeSymlink:
		f.Mode = git.ModeLink
	default:
		return f, false, nil
	}
	return f, true, nil
}

// within reports whether dir is a folder that no link leads to.
func (w *workspace) within(dir string, folders map[string]bool) (bool, error) {
	if dir == "." {
		return true, nil
	}
	if is, known := folders[dir]; known {
		return is, nil
	}
	is, err := w.within(path.Dir(dir), folders)
	if is {
		info, failed := w.root.Lstat(dir)
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) { // what is in there would seem to be gone
			return false, fmt.Errorf("snapshots: cannot look at %s: %w", dir, failed)
		}
		is = failed == nil && info.IsDir()
	}
	if err == nil {
		folders[dir] = is
	}
	return is, err
}

// entries returns what is in a folder, whose name need not be UTF-8.
func entries(root *os.Root, dir string) ([]fs.DirEntry, error) {
	folder, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	all, err := folder.ReadDir(-1)
	return all, errors.Join(err, folder.Close())
}

// byPath orders files.
func byPath(a, b file) int { return cmp.Compare(a.Path, b.Path) }
