//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options configures servers. The zero value is ready to use.
type Options struct {
	// Binaries is the folder of initdb and postgres; "" is the newest that
	// /usr/lib/postgresql holds, or else that of the initdb on PATH.
	Binaries string
	// User is who runs the programs when the caller is root; "" is "postgres".
	User string
	// Settings are added to postgresql.conf.
	Settings map[string]string
	// Log is where the servers write, at the same time; nil: their last lines are in errors
	// only.
	Log io.Writer
}

// ErrNoBinaries is returned when the programs of Postgres are not found.
var ErrNoBinaries = errors.New("postgrestest: no initdb and postgres found; install postgresql, or set Options.Binaries")

// Server is one that Start or Standby has made. It is safe for concurrent use.
type Server struct {
	options Options
	dir     string // of everything; the data are in its folder data
	name    string

	mu      sync.Mutex
	process *process // nil: it does not run
}

// process is a postmaster and what watches it.
type process struct {
	cmd   *exec.Cmd
	alive io.Closer // what keeps it alive: its end tells the shell to end the postmaster
	pid   int       // of the postmaster
	ended chan struct{}
	log   *tail
}

// The socket is in the server's own folder, so all may have the same port.
const port = "5432"

// Start makes a server and starts it.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	err = s.tool(ctx, "initdb", "--pgdata", s.data(), "--username", "fixpoint", "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")
	if err == nil {
		err = s.configure(o.Settings)
	}
	if err == nil {
		err = s.Run(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newServer(o Options) (*Server, error) {
	if o.Binaries == "" {
		dir, err := findBinaries()
		if err != nil {
			return nil, err
		}
		o.Binaries = dir
	}
	if o.User == "" {
		o.User = "postgres"
	}
	// Not the temporary folder of a test: only the caller can enter that.
	dir, err := os.MkdirTemp("", "pg-")
	if err != nil {
		return nil, fmt.Errorf("postgrestest: %w", err)
	}
	s := &Server{options: o, dir: dir, name: filepath.Base(dir)}
	who, err := s.credential()
	if err == nil && who != nil {
		err = os.Chown(dir, int(who.Uid), int(who.Gid))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("postgrestest: %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

// findBinaries returns the folder of the newest version that Debian's packages installed.
func findBinaries() (string, error) {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.SortFunc(folders, func(a, b string) int { return version(a) - version(b) })
	if n := len(folders); n > 0 {
		return filepath.Dir(folders[n-1]), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", ErrNoBinaries
	}
	if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		return "", fmt.Errorf("postgrestest: %w", err)
	}
	return filepath.Dir(initdb), nil
}

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// credential says as whom the programs run; nil: as the caller.
func (s *Server) credential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	who, err := user.Lookup(s.options.User)
	if err != nil {
		return nil, fmt.Errorf("postgrestest: Postgres does not run as root; set Options.User: %w", err)
	}
	uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("postgrestest: user %s: %w", s.options.User, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Name is what a standby calls itself, for synchronous_standby_names.
func (s *Server) Name() string { return s.name }

// Dir is the folder of the server; its socket is there.
func (s *Server) Dir() string { return s.dir }

// DSN returns a connection string.
func (s *Server) DSN() string { return MultiDSN(s) }

// MultiDSN returns a connection string that leads to the one of several servers that takes
// writes.
func MultiDSN(servers ...*Server) string {
	var hosts, ports []string
	for _, s := range servers {
		hosts, ports = append(hosts, s.dir), append(ports, port)
	}
	return fmt.Sprintf("host=%s port=%s user=fixpoint dbname=postgres sslmode=disable target_session_attrs=read-write",
		strings.Join(hosts, ","), strings.Join(ports, ","))
}

// command prepares one of the programs.
func (s *Server) command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	who, err := s.credential()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + s.options.Binaries + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: who}
	return cmd, nil
}

// tool runs a program to its end.
func (s *Server) tool(ctx context.Context, name string, args ...string) error {
	cmd, err := s.command(ctx, filepath.Join(s.options.Binaries, name), args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("postgrestest: %s: %w\n%s", name, err, out)
	}
	return nil
}

// Run starts a server that was killed or stopped, and returns when it takes connections.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return nil
	}
	// A server that was killed has left it behind, and it says that all is ready.
	if err := os.Remove(filepath.Join(s.data(), "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("postgrestest: %w", err)
	}
	log := &tail{also: s.options.Log}
	// The shell ends the server when the pipe is closed, which happens when this process ends.
	const script = `"$@" & server=$!; (read -r _; kill -QUIT $server) <&3 >/dev/null 2>&1 & watch=$!; wait $server; kill $watch`
	cmd, err := s.command(context.WithoutCancel(ctx), "/bin/sh", "-c", script, "sh", filepath.Join(s.options.Binaries, "postgres"), "-D", s.data())
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	defer read.Close()
	cmd.ExtraFiles = []*os.File{read}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		_ = write.Close()
		return fmt.Errorf("postgrestest: %w", err)
	}
	p := &process{cmd: cmd, alive: write, ended: make(chan struct{}), log: log}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	if err := s.await(ctx, p); err != nil {
		_ = write.Close()
		<-p.ended
		return err
	}
	s.process = p
	return nil
}

// await waits until a server takes connections.
func (s *Server) await(ctx context.Context, p *process) error {
	for {
		if pid, ready := s.status(); ready {
			p.pid = pid
			return nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("postgrestest: the server did not start:\n%s", p.log)
		case <-ctx.Done():
			return fmt.Errorf("postgrestest: the server did not start in time: %w\n%s", context.Cause(ctx), p.log)
		}
	}
}

// status reads the postmaster's file, which says its pid in the first line and how it is
// in the eighth.
func (s *Server) status() (pid int, ready bool) {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) < 8 {
		return 0, false
	}
	pid, _ = strconv.Atoi(lines[0])
	state := strings.TrimSpace(lines[7])
	return pid, state == "ready" || state == "standby" && pid > 0
}

// tail keeps the end of what is written to it.
type tail struct {
	also io.Writer
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const most = 4096
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text = append(t.text, p...); len(t.text) > most {
		t.text = append(t.text[:0], t.text[len(t.text)-most:]...)
	}
	if t.also != nil {
		_, _ = t.also.Write(p)
	}
	return len(p), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
