package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var (
	// ErrNoRepository is returned for a directory that is in no work tree, or is one
	// that the repository around it ignores.
	ErrNoRepository = errors.New("git: no work tree")
	// ErrNoGit is returned when the git program is not installed.
	ErrNoGit = errors.New("git: the git program is not installed")
	// ErrTooMuch is returned when git wrote more than is kept.
	ErrTooMuch = errors.New("git: too much output")
	// ErrName is returned for files whose names git takes into no tree, such as .GIT.
	ErrName = errors.New("git: a name that git does not take")
)

const (
	outputLimit = 64 << 20 // what Git returns at most
	detailLimit = 2 << 10  // what is kept of an error
)

// Repo is a directory within the work tree of a repository.
type Repo struct {
	dir    string
	top    string
	gitDir string
	prefix string
	none   string // the id that stands for no object
}

// Open returns the repository that dir is in. It fails with ErrNoRepository or
// ErrNoGit, or with what git says about a repository that it does not want to use.
func Open(ctx context.Context, dir string) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("git: cannot tell where %s is: %w", dir, err)
	}
	r := &Repo{dir: dir}
	out, err := r.Git(ctx, Call{Args: []string{"rev-parse", "--is-inside-work-tree", "--show-object-format", "--absolute-git-dir", "--show-toplevel", "--show-prefix"}})
	var exit *ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, ErrNoGit
	case errors.As(err, &exit) && (strings.Contains(exit.Detail, "not a git repository") || strings.Contains(exit.Detail, "must be run in a work tree")):
		return nil, fmt.Errorf("%w: %s", ErrNoRepository, dir)
	case err != nil:
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) != 6 || lines[0] != "true" {
		return nil, fmt.Errorf("%w: %s", ErrNoRepository, dir)
	}
	r.gitDir, r.top, r.prefix = lines[2], lines[3], lines[4]
	r.none = strings.Repeat("0", 40)
	if lines[1] == "sha256" {
		r.none = strings.Repeat("0", 64)
	}
	if r.prefix == "" {
		return r, nil
	}
	switch _, err := r.Git(ctx, Call{Args: []string{"check-ignore", "-q", "."}}); {
	case err == nil:
		return nil, fmt.Errorf("%w: %s is ignored by the one that it is in", ErrNoRepository, dir)
	case errors.As(err, &exit) && exit.Code == 1:
		return r, nil
	default:
		return nil, err
	}
}

// Top is the top directory of the work tree.
func (r *Repo) Top() string { return r.top }

// Dir is the repository's own directory for this work tree, ".git" mostly.
func (r *Repo) Dir() string { return r.gitDir }

// Prefix is the way from Top to the directory that was opened, with slashes and one at
// its end, or "".
func (r *Repo) Prefix() string { return r.prefix }

// Call is one call of git.
type Call struct {
	Args []string
	// Top runs it at the top of the work tree instead of the directory opened.
	Top bool
	// Index is the index file to use instead of the user's.
	Index string
	// Env are variables besides those of Environment.
	Env []string
	// Hooks lets the hooks of the repository run.
	Hooks bool
	// Unlogged makes no log for refs that have none.
	Unlogged bool
	Stdin    io.Reader
	Stdout   io.Writer // instead of what Git returns
	Stderr   io.Writer // also gets what an ExitError has as its detail
}

// settings keep git from doing anything on the side.
var settings = []string{
	"-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.splitIndex=false",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "advice.addEmbeddedRepo=false", "-c", "core.safecrlf=false", "-c", "core.quotePath=false",
}

// Git runs git and returns what it wrote. An error is an *ExitError with what git said.
func (r *Repo) Git(ctx context.Context, c Call) ([]byte, error) {
	args := append([]string{"git"}, settings...)
	if !c.Hooks {
		args = append(args, "-c", "core.hooksPath="+os.DevNull)
	}
	if c.Unlogged {
		args = append(args, "-c", "core.logAllRefUpdates=false")
	}
	p := Process{Args: append(args, c.Args...), Dir: r.dir, Stdin: c.Stdin, Stdout: c.Stdout}
	if c.Top {
		p.Dir = r.top
	}
	p.Env = append(Environment(), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_EDITOR=true")
	p.Env = append(p.Env, c.Env...)
	if c.Index != "" {
		p.Env = append(p.Env, "GIT_INDEX_FILE="+c.Index)
	}
	out, said := head{limit: outputLimit}, Tail{Limit: detailLimit}
	if p.Stdout == nil {
		p.Stdout = &out
	}
	p.Stderr = &said
	if c.Stderr != nil {
		p.Stderr = io.MultiWriter(&said, c.Stderr)
	}
	err := p.Run(ctx)
	var exit *ExitError
	if errors.As(err, &exit) {
		exit.Program, exit.Detail = "git "+c.Args[0], strings.TrimSpace(said.String())
	}
	if err == nil && out.over {
		err = fmt.Errorf("%w: git %s wrote more than %d bytes", ErrTooMuch, c.Args[0], outputLimit)
	}
	return out.Bytes(), err
}

// line is Git for a call that writes one line.
func (r *Repo) line(ctx context.Context, c Call) (string, error) {
	out, err := r.Git(ctx, c)
	return strings.TrimSpace(string(out)), err
}

// head keeps the first bytes that were written to it.
type head struct {
	bytes.Buffer
	limit int
	over  bool
}

func (h *head) Write(b []byte) (int, error) {
	n := min(len(b), h.limit-h.Len())
	h.over = h.over || n < len(b)
	_, _ = h.Buffer.Write(b[:n]) // a Buffer takes everything
	return len(b), nil
}

// Scratch calls fn with a temporary directory, which is removed afterwards. It has
// nothing but a file that makes git ignore it, in case it is within the work tree.
func Scratch(fn func(dir string) error) error {
	dir, err := os.MkdirTemp("", "fixpoint-git-")
	if err != nil {
		return fmt.Errorf("git: no temporary directory: %w", err)
	}
	err = os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600)
	if err == nil {
		err = fn(dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}
