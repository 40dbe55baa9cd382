package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// Covered returns the paths below the directory, relative to it, that are tracked or
// that git would add: of files that there may or may not be. Submodules and nested
// repositories may be among them, as may be a path twice.
func (r *Repo) Covered(ctx context.Context) ([]string, error) {
	said := Tail{Limit: detailLimit}
	out, err := r.Git(ctx, Call{Args: []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"}, Stderr: &said})
	if err == nil && strings.Contains(said.String(), "could not open directory") { // which git only warns of
		err = fmt.Errorf("git: cannot list all files: %s", strings.TrimSpace(said.String()))
	}
	if err != nil {
		return nil, err
	}
	return listed(out), nil
}

// Forced returns the paths below the directory, relative to it, that are tracked although
// they would be ignored.
func (r *Repo) Forced(ctx context.Context) ([]string, error) {
	out, err := r.Git(ctx, Call{Args: []string{"ls-files", "-z", "--cached", "--ignored", "--exclude-standard"}})
	return listed(out), err
}

// listed reads what ls-files writes with -z.
func listed(out []byte) (paths []string) {
	for path := range strings.SplitSeq(string(out), "\x00") {
		if path != "" && !strings.HasSuffix(path, "/") { // a nested repository
			paths = append(paths, path)
		}
	}
	return paths
}

// Blobs returns the ids of files as they are, byte by byte and without filters, and
// with keep adds them to the repository. Paths are relative to the directory, or absolute.
func (r *Repo) Blobs(ctx context.Context, paths []string, keep bool) ([]string, error) {
	args := []string{"hash-object", "--no-filters", "--stdin-paths"}
	if keep {
		args = append(args, "-w")
	}
	var in bytes.Buffer
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.dir, filepath.FromSlash(path)) // git itself would look for it from the top
		}
		in.WriteString(quote(path) + "\n")
	}
	out, err := r.Git(ctx, Call{Args: args, Stdin: &in})
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(out))
	if len(ids) != len(paths) {
		return nil, fmt.Errorf("git: hash-object gave %d ids for %d files", len(ids), len(paths))
	}
	return ids, nil
}

// quote writes a path as git reads one that stands alone on a line.
func quote(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(path) {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// unreplaced has objects read as they are, whatever "git replace" says.
var unreplaced = []string{"GIT_NO_REPLACE_OBJECTS=1"}

// Listed is a file of a tree and its size in bytes.
type Listed struct {
	Entry
	Size int64
}

// List returns the files of a tree, by path as git sorts them.
func (r *Repo) List(ctx context.Context, tree string) ([]Listed, error) {
	out, err := r.Git(ctx, Call{Args: []string{"ls-tree", "-r", "-l", "-z", "--full-tree", tree}, Env: unreplaced})
	if err != nil {
		return nil, err
	}
	return parseList(out)
}

// parseList reads what ls-tree -l writes with -z.
func parseList(out []byte) ([]Listed, error) {
	var all []Listed
	for len(out) > 0 {
		line, rest, ok := bytes.Cut(out, []byte{0})
		info, path, tab := strings.Cut(string(line), "\t")
		fields := strings.Fields(info)
		if !ok || !tab || path == "" || len(fields) != 4 {
			return nil, fmt.Errorf("git: cannot read a tree: %.100q", line)
		}
		out = rest
		if fields[1] != "blob" {
			continue
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil || size < 0 {
			return nil, fmt.Errorf("git: cannot read a tree: %.100q", line)
		}
		all = append(all, Listed{Entry: Entry{Mode: fields[0], ID: fields[2], Path: path}, Size: size})
	}
	return all, nil
}

// Contents calls fn with the content of each blob, in order. What fn does not read is
// passed over; its error ends it all. The content is that of the object itself, not of
// one that "git replace" put in its place.
func (r *Repo) Contents(ctx context.Context, ids []string, fn func(i int, content io.Reader) error) error {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := r.Git(ctx, Call{Args: []string{"cat-file", "--batch"}, Env: unreplaced, Stdin: strings.NewReader(strings.Join(ids, "\n") + "\n"), Stdout: in})
		done <- err
		_ = in.CloseWithError(err) // never fails
	}()
	err := readBlobs(bufio.NewReader(out), ids, fn)
	if err != nil {
		cancel(err)
	}
	_ = out.CloseWithError(err) // so that nothing waits to be read
	if ran := <-done; err == nil {
		err = ran
	}
	return err
}

// exactly reads so many bytes; fewer are an error and not an end.
type exactly struct {
	from io.Reader
	left int64
}

func (e *exactly) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.from.Read(b[:min(int64(len(b)), e.left)])
	e.left -= int64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readBlobs reads what cat-file --batch writes.
func readBlobs(out *bufio.Reader, ids []string, fn func(i int, content io.Reader) error) error {
	for i, id := range ids {
		line, err := out.ReadString('\n')
		if err != nil {
			return fmt.Errorf("git: object %s was not read: %w", id, err)
		}
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != id || fields[1] != "blob" {
			return fmt.Errorf("git: object %s is missing: %.100q", id, strings.TrimSpace(line))
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("git: object %s has no size: %.100q", id, line)
		}
		content := &exactly{out, size}
		if err := fn(i, content); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return fmt.Errorf("git: object %s was not read: %w", id, err)
		}
		if _, err := out.Discard(1); err != nil { // the end of a line
			return fmt.Errorf("git: object %s was not read: %w", id, err)
		}
	}
	return nil
}
