package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// tree is a directory without what is excluded and without anything that is
// neither a regular file nor a folder. All reading goes through it.
type tree struct {
	root    *os.Root
	fsys    fs.FS
	exclude []string
	hide    map[string]bool
}

// Open opens a file or folder.
func (t *tree) Open(name string) (fs.File, error) {
	if err := t.visible("open", name); err != nil {
		return nil, err
	}
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !info.IsDir() {
		return f, nil
	}
	entries, err := t.ReadDir(name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &folder{File: f, entries: entries}, nil
}

// ReadDir lists a folder, sorted by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := t.visible("readdir", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(t.fsys, name)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return t.excluded(path.Join(name, e.Name())) || !plain(e.Type())
	})
	return entries, err
}

func plain(mode fs.FileMode) bool { return mode.IsDir() || mode.IsRegular() }

// excluded reports whether the last element of name, or name itself, is excluded.
func (t *tree) excluded(name string) bool {
	if t.hide[name] {
		return true
	}
	return slices.ContainsFunc(t.exclude, func(pattern string) bool {
		of := name
		if !strings.Contains(pattern, "/") {
			of = path.Base(name)
		}
		ok, _ := path.Match(pattern, of) // Open found it to be well formed
		return ok && of != "."
	})
}

// visible returns nil when name, and every folder on the way to it, can be seen.
// A symbolic link cannot, since it could lead to what is excluded.
func (t *tree) visible(op, name string) error {
	fail := func(err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	if name == "." {
		return nil
	}
	for end := 0; end < len(name); end++ {
		rest := strings.IndexByte(name[end:], '/')
		if rest < 0 {
			rest = len(name) - end
		}
		end += rest
		if t.excluded(name[:end]) {
			return fail(fs.ErrNotExist)
		}
		info, err := t.root.Lstat(name[:end])
		if err != nil {
			return err
		}
		if !plain(info.Mode()) {
			return fail(fs.ErrNotExist)
		}
	}
	return nil
}

// folder is an open folder that lists only what is visible.
type folder struct {
	fs.File
	entries []fs.DirEntry
	next    int
}

// ReadDir returns the next entries, as fs.ReadDirFile has it.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	left := f.entries[f.next:]
	if n > 0 {
		if len(left) == 0 {
			return nil, io.EOF
		}
		left = left[:min(n, len(left))]
	}
	f.next += len(left)
	return slices.Clone(left), nil
}

// errEnough ends a walk that has seen as much as it may.
var errEnough = errors.New("files: walked far enough")

// walk calls fn for the files below a folder in order of their paths, and for
// the folder below too with info nil. It reports whether files were left out
// because there are too many. What vanishes or cannot be read is passed over.
func (p *Plugin) walk(ctx context.Context, start string, fn func(name string, info fs.FileInfo) error) (more bool, err error) {
	seen := 0
	err = fs.WalkDir(p.tree, start, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == start:
			return err
		case err != nil:
			return nil
		case e.IsDir():
			return fn(name, nil)
		case seen == p.limits.Entries:
			return errEnough
		}
		seen++
		info, err := e.Info()
		if err != nil {
			return nil
		}
		return fn(name, info)
	})
	if errors.Is(err, errEnough) {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w %q: there is no such file or folder; %s shows what there is", ErrPath, start, ListTool)
	}
	return false, err
}
