package exechook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"
)

// patience is how long a program's children may go on writing to its output after the
// program itself has ended or was killed.
const patience = 500 * time.Millisecond

var errDeadline = errors.New("exechook: the command's time is over")

// launch is a program to run.
type launch struct {
	argv    []string
	dir     string
	env     []string
	stdin   []byte
	limit   int // bytes kept of each output
	timeout time.Duration
}

// ended is how a program ended. Cause is empty when it exited by itself with 0 or 2.
type ended struct {
	code           int
	cause          Cause
	detail         string
	stdout, stderr capture
}

// run runs the program and returns when it and all that is in its process group is
// gone.
func (l launch) run(ctx context.Context) (e ended) {
	bounded, cancel := context.WithTimeoutCause(ctx, l.timeout, errDeadline)
	defer cancel()
	cmd := exec.CommandContext(bounded, l.argv[0], l.argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = l.dir, l.env, patience
	cmd.Stdin = bytes.NewReader(l.stdin)
	e.stdout.limit, e.stderr.limit = l.limit, l.limit
	cmd.Stdout, cmd.Stderr = &e.stdout, &e.stderr
	ownGroup(cmd)
	if info, err := os.Stat(l.dir); l.dir != "" && (err != nil || !info.IsDir()) {
		e.cause, e.detail = StartFailed, "there is no working directory "+l.dir
		return e
	}
	if err := cmd.Start(); err != nil {
		e.cause, e.detail = startCause(err), err.Error()
		if ctx.Err() != nil {
			e.cause, e.detail = Cancelled, context.Cause(ctx).Error()
		}
		return e
	}
	// The error says nothing that the process's state and the context do not: a pipe
	// that a child held too long, or one that the program did not read to its end.
	_ = cmd.Wait()
	killGroup(cmd)
	state := cmd.ProcessState
	switch {
	case state.Exited():
		e.code = state.ExitCode()
		e.cause, e.detail = exitCause(e.code)
	case ctx.Err() != nil:
		e.cause, e.detail = Cancelled, context.Cause(ctx).Error()
	case bounded.Err() != nil:
		e.cause, e.detail = TimedOut, fmt.Sprintf("it did not end within %v and was killed", l.timeout)
	default:
		e.cause, e.detail = Crashed, "it ended by "+state.String()
	}
	return e
}

// with returns a launch of another program in the same place, without any input.
func (l launch) with(argv []string) launch {
	l.argv, l.stdin = argv, nil
	return l
}

// refuses runs the program and reports whether it ended by itself with an error.
func (l launch) refuses(ctx context.Context) bool {
	e := l.run(ctx)
	return e.code == 2 || e.cause == Exited
}

func startCause(err error) Cause {
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrPermission):
		return NotExecutable
	}
	return StartFailed
}

// exitCause tells the codes that shells exit with for a program that they could not
// run from those of programs.
func exitCause(code int) (Cause, string) {
	switch code {
	case 0, 2:
		return "", ""
	case 126:
		return NotExecutable, "the shell could not execute it (exit status 126)"
	case 127:
		return NotFound, "the shell did not find it (exit status 127)"
	}
	return Exited, fmt.Sprintf("it exited with status %d, which is neither 0 nor 2", code)
}

// capture keeps the first bytes of an output and counts the rest. Writing never fails,
// so that a program that writes much is not disturbed.
type capture struct {
	limit int
	kept  []byte
	total int
}

func (c *capture) Write(p []byte) (int, error) {
	c.total += len(p)
	c.kept = append(c.kept, p[:min(len(p), c.limit-len(c.kept))]...)
	return len(p), nil
}

func (c *capture) cut() bool { return c.total > len(c.kept) }

// text returns what was kept, trimmed, and says how much was not.
func (c *capture) text() string {
	kept := c.kept
	if c.cut() {
		for n := 0; n < utf8.UTFMax && len(kept) > 0 && !utf8.Valid(kept[max(0, len(kept)-utf8.UTFMax):]); n++ {
			kept = kept[:len(kept)-1] // a character that was cut in two
		}
	}
	s := strings.TrimSpace(strings.ToValidUTF8(string(kept), "\uFFFD"))
	if c.cut() {
		s += fmt.Sprintf("\n[cut: %d of %d bytes]", len(c.kept), c.total)
	}
	return s
}
