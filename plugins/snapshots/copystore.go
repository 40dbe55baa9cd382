package snapshots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/internal/git"
)

// copies is the name of the store of copies.
const copies = "copies"

// grace is how long a copy that no snapshot has is safe from pruning: somebody may be
// taking a snapshot with it.
const grace = time.Hour

// copyStore keeps each content once, as objects/ab/cdef by its SHA-256. A tree is a
// list of files and itself a content; refs/PLACE/THREAD/ID holds the tree's id.
type copyStore struct {
	dir      string
	root     *os.Root // of the workspace
	excluded func(string) bool
	opts     Options
}

func (c *copyStore) name() string { return copies }

// covered returns all files that are not excluded.
func (c *copyStore) covered(ctx context.Context) ([]string, error) {
	var paths []string
	for due := []string{"."}; len(due) > 0; {
		dir := due[len(due)-1]
		due = due[:len(due)-1]
		found, err := entries(c.root, dir)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist): // it vanished
			continue
		case err != nil:
			return nil, fmt.Errorf("snapshots: cannot list the workspace: %w", err)
		}
		for _, e := range found {
			name := path.Join(dir, e.Name())
			switch {
			case c.excluded(name):
			case e.IsDir():
				due = append(due, name)
			case !e.Type().IsRegular() && e.Type() != fs.ModeSymlink:
			case len(paths) > c.opts.Limits.Files:
				return nil, tooLarge(c.opts.Limits)
			default:
				paths = append(paths, name)
			}
		}
	}
	return paths, nil
}

func (c *copyStore) removable(ctx context.Context) ([]string, error) { return c.covered(ctx) }

func (c *copyStore) identify(ctx context.Context, files []file, keep bool) error {
	for i := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.one(&files[i], keep); err != nil {
			return fmt.Errorf("snapshots: cannot copy %s: %w", files[i].Path, err)
		}
	}
	return nil
}

func (c *copyStore) one(f *file, keep bool) error {
	if f.Mode == git.ModeLink {
		target, err := c.root.Readlink(f.Path)
		if err != nil {
			return err
		}
		f.ID, f.Size, err = c.put(strings.NewReader(target), keep)
		return err
	}
	in, err := c.root.Open(f.Path)
	if err != nil {
		return err
	}
	f.ID, f.Size, err = c.put(in, keep)
	return errors.Join(err, in.Close())
}

// put returns the id and the size of a content and with keep sees to it that the store
// has it. If the content changes meanwhile, they are of what was last read.
func (c *copyStore) put(in io.ReadSeeker, keep bool) (id string, size int64, err error) {
	sum := sha256.New()
	if size, err = io.Copy(sum, in); err != nil {
		return "", 0, err
	}
	id = hex.EncodeToString(sum.Sum(nil))
	if !keep {
		return id, size, nil
	}
	now := time.Now() // of the disk, which pruning compares it with
	if info, err := os.Stat(c.object(id)); err == nil && info.Size() == size && os.Chtimes(c.object(id), now, now) == nil {
		return id, size, nil
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	sum.Reset()
	err = write(filepath.Join(c.dir, "objects"), func(out io.Writer) (string, error) {
		size, err = io.Copy(io.MultiWriter(out, sum), in)
		id = hex.EncodeToString(sum.Sum(nil))
		return c.object(id), err
	})
	return id, size, err
}

func (c *copyStore) object(id string) string { return filepath.Join(c.dir, "objects", id[:2], id[2:]) }

// write makes a file that is there as a whole or not at all, under the name that fill
// returns. The draft is in dir, on the same disk.
func write(dir string, fill func(io.Writer) (name string, err error)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	draft, err := os.CreateTemp(dir, ".draft-")
	if err != nil {
		return err
	}
	name, err := fill(draft)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = os.Rename(draft.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

func (c *copyStore) tree(_ context.Context, files []file) (string, error) {
	id, _, err := c.put(bytes.NewReader(encode(files)), true)
	return id, err
}

// encode writes a list of files, one a line.
func encode(files []file) []byte {
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "%s %s %d %s\n", f.Mode, f.ID, f.Size, strconv.Quote(f.Path))
	}
	return b.Bytes()
}

// decode reads what encode wrote and nothing else.
func decode(text []byte) ([]file, error) {
	var files []file
	for n, line := range slices.Collect(bytes.Lines(text)) {
		bad := fmt.Errorf("snapshots: line %d of a list of files is unreadable", n+1)
		whole, ended := bytes.CutSuffix(line, []byte("\n"))
		fields := strings.SplitN(string(whole), " ", 4)
		if !ended || len(fields) != 4 || len(fields[1]) != hex.EncodedLen(sha256.Size) {
			return nil, bad
		}
		f := file{Mode: fields[0], ID: fields[1]}
		var err error
		if f.Size, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
			return nil, bad
		}
		if f.Path, err = strconv.Unquote(fields[3]); err != nil {
			return nil, bad
		}
		if _, err := hex.DecodeString(f.ID); err != nil || !local(f.Path) {
			return nil, bad
		}
		if f.Mode != git.ModeFile && f.Mode != git.ModeExecutable && f.Mode != git.ModeLink {
			return nil, bad
		}
		files = append(files, f)
	}
	if !bytes.Equal(encode(files), text) {
		return nil, errors.New("snapshots: a list of files is not as it was written")
	}
	return files, nil
}

// local reports whether a path, which need not be UTF-8, stays in the workspace.
func local(name string) bool {
	return name != "." && name != ".." && !strings.HasPrefix(name, "../") && !strings.HasPrefix(name, "/") && path.Clean(name) == name
}

func (c *copyStore) list(_ context.Context, tree string) ([]file, error) {
	if len(tree) != hex.EncodedLen(sha256.Size) {
		return nil, fmt.Errorf("snapshots: %.80q is no tree of copies", tree)
	}
	in, err := os.Open(c.object(tree))
	if err != nil {
		return nil, fmt.Errorf("snapshots: the copies are gone: %w", err)
	}
	text, err := io.ReadAll(checked(in, tree))
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, fmt.Errorf("snapshots: cannot read a list of files: %w", err)
	}
	return decode(text)
}

// checked reads a copy and fails at its end if it is not what it was.
func checked(in io.Reader, id string) io.Reader {
	sum := sha256.New()
	return io.MultiReader(io.TeeReader(in, sum), readerFunc(func([]byte) (int, error) {
		if hex.EncodeToString(sum.Sum(nil)) != id {
			return 0, errDamaged
		}
		return 0, io.EOF
	}))
}

var errDamaged = errors.New("snapshots: the copy is damaged")

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func (c *copyStore) contents(ctx context.Context, files []file, fn func(f file, content io.Reader) error) error {
	for _, f := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		in, err := os.Open(c.object(f.ID))
		if err != nil {
			return fmt.Errorf("snapshots: the copy of %s is gone: %w", f.Path, err)
		}
		if err := errors.Join(fn(f, checked(in, f.ID)), in.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (c *copyStore) refs(thread string) string {
	return filepath.Join(c.dir, "refs", place(c.opts.Dir), element(thread))
}

func (c *copyStore) keep(_ context.Context, thread string, s Snapshot) error {
	err := write(filepath.Join(c.dir, "refs"), func(out io.Writer) (string, error) {
		_, err := io.WriteString(out, s.Tree)
		return filepath.Join(c.refs(thread), s.ID), err
	})
	if err != nil {
		return fmt.Errorf("snapshots: cannot keep the snapshot: %w", err)
	}
	return nil
}

func (c *copyStore) newest(_ context.Context, thread string) (n int, err error) {
	kept, err := c.kept(thread)
	for _, e := range kept {
		n = max(n, number(e.Name()))
	}
	return n, err
}

func (c *copyStore) kept(thread string) ([]fs.DirEntry, error) {
	all, err := os.ReadDir(c.refs(thread))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("snapshots: cannot list the snapshots kept: %w", err)
	}
	return all, nil
}

func (c *copyStore) prune(ctx context.Context, thread string, but []Snapshot) (int, error) {
	kept, err := c.kept(thread)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range kept {
		if wanted(e.Name(), but) {
			continue
		}
		if err := os.Remove(filepath.Join(c.refs(thread), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, fmt.Errorf("snapshots: cannot forget a snapshot: %w", err)
		}
		n++
	}
	if n == 0 {
		return 0, nil
	}
	return n, c.sweep(ctx)
}

// sweep removes old copies that no snapshot of any thread has.
func (c *copyStore) sweep(ctx context.Context) error {
	needed := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(c.dir, "refs"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".draft-") {
			return err
		}
		tree, err := os.ReadFile(name)
		if err != nil || needed[string(tree)] {
			return err
		}
		needed[string(tree)] = true
		files, err := c.list(ctx, string(tree))
		for _, f := range files {
			needed[f.ID] = true
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("snapshots: no copy was removed, since not all snapshots can be read: %w", err)
	}
	objects := filepath.Join(c.dir, "objects")
	return filepath.WalkDir(objects, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || needed[filepath.Base(filepath.Dir(name))+e.Name()] {
			return err
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < grace {
			return err
		}
		return os.Remove(name)
	})
}
