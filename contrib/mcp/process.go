package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxLine   = 1 << 10          // bytes of a line of standard error that are kept
	maxTail   = 8                // lines of it that an error shows
	writeTime = 10 * time.Second // for a process to take a message from its input
)

// DefaultEnv returns the names of the variables that a server's process inherits.
func DefaultEnv() []string {
	return []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
		"APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERPROFILE"}
}

func processEnv(extra map[string]string) (env []string) {
	for _, name := range DefaultEnv() {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range extra {
		env = append(env, name+"="+value) // of two with one name the later counts
	}
	return env
}

// process is a server's program. It is a transport that is used once.
type process struct {
	server  Server
	limits  Limits
	logger  *slog.Logger
	cmd     *exec.Cmd
	in, out *os.File
	tail    tail
	ended   chan struct{} // closed when the program and its group are gone
	forced  atomic.Bool   // we ended it
	once    sync.Once
}

func newProcess(s Server, l Limits, logger *slog.Logger) *process {
	return &process{server: s, limits: l, logger: logger, ended: make(chan struct{})}
}

// Connect starts the program.
func (p *process) Connect(ctx context.Context) (sdk.Connection, error) {
	if info, err := os.Stat(p.server.Dir); p.server.Dir != "" && (err != nil || !info.IsDir()) {
		close(p.ended)
		return nil, fmt.Errorf("there is no working directory %s", p.server.Dir)
	}
	p.cmd = exec.Command(p.server.Command, p.server.Args...)
	p.cmd.Dir, p.cmd.Env, p.cmd.WaitDelay = p.server.Dir, processEnv(p.server.Env), 500*time.Millisecond
	p.tail.logger, p.tail.server = p.logger, p.server.Name
	p.cmd.Stderr = &p.tail
	ownGroup(p.cmd)
	if err := p.start(); err != nil {
		close(p.ended)
		return nil, err
	}
	// Wait closes no pipe of ours, so what the program has written is still read.
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is in the ProcessState
		killGroup(p.cmd) // what it left behind
		// Somebody who left the group may still hold the output open.
		_ = p.out.SetReadDeadline(time.Now().Add(time.Second))
	}()
	t := &sdk.IOTransport{Reader: reader{p}, Writer: writer{p}, MaxLineLength: p.limits.Message}
	return t.Connect(ctx)
}

func (p *process) start() error {
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return errors.Join(err, childIn.Close(), in.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout, p.in, p.out = childIn, childOut, in, out
	err = p.cmd.Start()
	_, _ = childIn.Close(), childOut.Close() // the program has its own
	if err != nil {
		_, _ = in.Close(), out.Close() // nothing was written
	}
	return err
}

type reader struct{ *process }

func (r reader) Read(b []byte) (int, error) { return r.out.Read(b) }

func (r reader) Close() error { r.stop(); return nil }

type writer struct{ *process }

// Write gives up on a program that does not read, so that nobody waits for it for ever.
func (w writer) Write(b []byte) (int, error) {
	_ = w.in.SetWriteDeadline(time.Now().Add(writeTime)) // where a pipe has none, the end of the program ends the write
	return w.in.Write(b)
}

func (w writer) Close() error { return nil }

// stop closes the program's input, gives it time to end, then asks its whole group to, and
// kills it in the end.
func (p *process) stop() {
	p.once.Do(func() {
		_ = p.in.Close()
		if !within(p.ended, p.limits.Close) {
			p.forced.Store(true)
			if termGroup(p.cmd); !within(p.ended, p.limits.Close) {
				killGroup(p.cmd)
			}
			<-p.ended
		}
		_ = p.out.Close()
	})
}

// story tells how the program ended, and what it said last.
func (p *process) story() string {
	select {
	case <-p.ended:
	default:
		return ""
	}
	said := p.tail.text()
	how := ""
	if p.cmd != nil && p.cmd.ProcessState != nil && !p.forced.Load() {
		how = p.cmd.ProcessState.String()
	}
	if said == "" {
		return how
	}
	if how != "" {
		how += "; "
	}
	return how + "its last words: " + said
}

// tail keeps the last lines of an output and passes them on to a logger. Writing never
// fails, so that a program that writes much is not disturbed.
type tail struct {
	logger *slog.Logger
	server string

	mu    sync.Mutex
	lines []string
	line  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range p {
		if b != '\n' {
			if len(t.line) < maxLine {
				t.line = append(t.line, b)
			}
			continue
		}
		t.flush()
	}
	return len(p), nil
}

func (t *tail) flush() {
	line := strings.TrimSpace(plain(string(t.line), maxLine))
	t.line = t.line[:0]
	if line == "" {
		return
	}
	if t.logger != nil {
		t.logger.Debug("mcp: "+line, "server", t.server)
	}
	if len(t.lines) == maxTail {
		t.lines = slices.Delete(t.lines, 0, 1)
	}
	t.lines = append(t.lines, line)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	return strings.Join(t.lines, "\n")
}
