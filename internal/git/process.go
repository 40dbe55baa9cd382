package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// lingering is how long a program that has ended, or was killed, may leave its output
// open through children of its own.
const lingering = 2 * time.Second

// inherited are the variables that a program gets from this one, where they are set.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ",
	"TMPDIR", "TMP", "TEMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
	// Where git finds its configuration; those that point at a repository are left out.
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES",
}

// Environment returns the part of this program's environment that programs inherit,
// and the variables of the given names besides, in the form that Process.Env takes.
func Environment(more ...string) []string {
	var env []string
	for _, name := range slices.Concat(inherited, more) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Process is a program to be run.
type Process struct {
	// Args are the program, looked up in PATH, and its arguments. There is no shell.
	Args []string
	// Dir is where it runs.
	Dir string
	// Env is its whole environment; nil means Environment().
	Env []string
	// Stdin is what it reads; nil means nothing.
	Stdin io.Reader
	// Stdout and Stderr receive what it writes; nil drops it. They may be the same
	// writer, which is then not called concurrently.
	Stdout, Stderr io.Writer
}

// Run runs the program to its end. It returns nil when the program succeeded, an
// *ExitError when it ended in another way by itself, the cause of ctx when that ended
// first, and otherwise why it could not be run.
func (p Process) Run(ctx context.Context) error {
	if len(p.Args) == 0 || p.Args[0] == "" {
		return errors.New("git: no program to run")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	cmd.Dir, cmd.Env = p.Dir, p.Env
	if cmd.Env == nil {
		cmd.Env = Environment()
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.Stdout, p.Stderr
	cmd.WaitDelay = lingering
	alone(cmd)
	cmd.Cancel = func() error { return kill(cmd.Process) }
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = kill(cmd.Process) // what the program left behind has its output, and nobody reads it any more
		err = nil
	}
	var exit *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit):
		return &ExitError{Program: p.Args[0], Code: exit.ExitCode(), Status: exit.String()}
	case err != nil:
		return fmt.Errorf("git: cannot run %s: %w", p.Args[0], err)
	default:
		return nil
	}
}

// ExitError says that a program ended without success.
type ExitError struct {
	Program string
	Code    int    // -1 when a signal ended it
	Status  string // in words
	Detail  string // what it wrote about it, if that was kept
}

func (e *ExitError) Error() string {
	if e.Detail != "" {
		return fmt.Sprintf("git: %s: %s: %s", e.Program, e.Status, e.Detail)
	}
	return fmt.Sprintf("git: %s: %s", e.Program, e.Status)
}

// Tail keeps the last bytes that were written to it. It is not safe for concurrent
// use; a Process that has it for both outputs uses it as it may be used.
type Tail struct {
	// Limit is how many bytes are kept.
	Limit   int
	kept    []byte
	dropped int64
}

// Write takes everything.
func (t *Tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.Limit; over > 0 {
		t.dropped += int64(over)
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

// String returns what was kept, as valid UTF-8, and says in a line of its own how much
// was dropped before it.
func (t *Tail) String() string {
	text := strings.ToValidUTF8(string(t.kept), "\uFFFD")
	if runtime.GOOS == "windows" {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	if t.dropped > 0 {
		return fmt.Sprintf("[%d bytes before this were left out]\n%s", t.dropped, text)
	}
	return text
}
