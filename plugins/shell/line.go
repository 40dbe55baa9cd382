package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// reporting makes the shell tell, as its last act, where it ends: between two zero
// bytes, which no path has, on a descriptor that is not for output.
const reporting = `trap '{ printf "\0%s\0" "$(pwd -P)" >&3; } 2>/dev/null' EXIT; `

// longPath is more than such a report takes.
const longPath = 16 << 10

// errLimit tells a line's own limit from that of its run.
var errLimit = errors.New("shell: the line took too long")

// line is a command line to run.
type line struct {
	sh, text, dir string
	env           []string
	keep          int  // bytes of output
	report        bool // where it ends, if that is possible
}

// outcome is what became of a line.
type outcome struct {
	output ends
	code   int    // -1 when it did not exit by itself
	how    string // it ended, in words
	killed bool   // at its limit
	place  string // where it ended; "" if that is not known
}

// run runs the line. It fails if the line cannot be started, or when ctx ends.
func (l line) run(ctx context.Context, limit time.Duration) (o outcome, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	out, err := newTap(l.keep)
	if err != nil {
		return o, err
	}
	told, err := newTap(longPath)
	if err != nil {
		out.finish()
		return o, err
	}
	cmd := exec.CommandContext(ctx, l.sh, "-c", l.text)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.dir, l.env, out.in, out.in
	if l.report && canReport {
		cmd.Args[2] = reporting + l.text
		cmd.ExtraFiles = []*os.File{told.in} // descriptor 3
	}
	ownGroup(cmd)
	var stopped atomic.Bool
	cmd.Cancel = func() error {
		stopped.Store(true)
		return killGroup(cmd)
	}
	if err = cmd.Start(); err == nil {
		_ = cmd.Wait()     // its state tells how it ended
		_ = killGroup(cmd) // what it left behind; usually there is nothing
	}
	o.output, o.place = out.finish(), told.finish().place()
	switch {
	case err != nil:
		return o, fmt.Errorf("shell: cannot start sh: %w", err)
	case stopped.Load() && !errors.Is(context.Cause(ctx), errLimit):
		return o, context.Cause(ctx)
	}
	o.killed, o.code, o.how = stopped.Load(), cmd.ProcessState.ExitCode(), cmd.ProcessState.String()
	return o, nil
}
