//go:build unix

package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

// configure writes settings. Those of Options are for tests: small, and quick to start.
func (s *Server) configure(settings map[string]string) error {
	all := map[string]string{
		"listen_addresses": "", "port": port, "unix_socket_directories": s.dir,
		"max_connections": "200", "shared_buffers": "64MB", "max_wal_senders": "8", "wal_level": "replica",
		"cluster_name": s.name, "logging_collector": "off", "restart_after_crash": "on",
	}
	maps.Copy(all, settings)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	return s.write("fixpoint.conf", b.String(), "\ninclude 'fixpoint.conf'\n")
}

// write writes a file of settings into the data folder, and makes sure that the server's
// own file includes it.
func (s *Server) write(name, text, include string) error {
	main := filepath.Join(s.data(), "postgresql.conf")
	have, err := os.ReadFile(main)
	if err == nil && !bytes.Contains(have, []byte(include)) {
		err = s.put(main, string(have)+include)
	}
	if err == nil {
		err = s.put(filepath.Join(s.data(), name), text)
	}
	if err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	return nil
}

func (s *Server) put(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	who, err := s.credential()
	if err == nil && who != nil {
		err = os.Chown(path, int(who.Uid), int(who.Gid))
	}
	return err
}

// Set adds a setting and makes the server read it, without a restart.
func (s *Server) Set(name, value string) error {
	file := filepath.Join(s.data(), "later.conf")
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("postgrestest: %w", err)
	}
	line := fmt.Sprintf("%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	if err := s.write("later.conf", string(have)+line, "\ninclude 'later.conf'\n"); err != nil {
		return err
	}
	return s.signal(syscall.SIGHUP)
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

// Standby makes a server that follows this one, and starts it. The primary's
// synchronous_standby_names decides whether commits wait for it; see Name.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	standby, err := newServer(s.options)
	if err != nil {
		return nil, err
	}
	if err := standby.Follow(ctx, s); err != nil {
		return nil, errors.Join(err, standby.Close())
	}
	return standby, nil
}

// Follow makes a server that does not run a standby of another one, with a copy of its data,
// and starts it. Its own data are gone.
func (s *Server) Follow(ctx context.Context, primary *Server) error {
	s.mu.Lock()
	running := s.process != nil
	s.mu.Unlock()
	if running {
		return errors.New("postgrestest: the server runs; kill or stop it first")
	}
	if err := os.RemoveAll(s.data()); err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	err := s.tool(ctx, "pg_basebackup", "--pgdata", s.data(), "--host", primary.dir, "--port", port, "--username", "fixpoint",
		"--wal-method", "stream", "--checkpoint", "fast", "--no-sync")
	if err == nil {
		err = s.configure(s.options.Settings)
	}
	if err == nil {
		err = s.write("standby.conf", fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=fixpoint application_name=%s'\nhot_standby = on\n",
			primary.dir, port, s.name), "\ninclude_if_exists 'standby.conf'\n")
	}
	if err == nil {
		err = s.put(filepath.Join(s.data(), "standby.signal"), "")
	}
	if err == nil {
		err = s.Run(ctx)
	}
	return err
}

// Promote makes a standby the primary.
func (s *Server) Promote(ctx context.Context) error {
	return s.tool(ctx, "pg_ctl", "promote", "--pgdata", s.data(), "--wait", "--timeout", "60")
}

// signal sends the postmaster a signal.
func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("postgrestest: the server does not run")
	}
	if err := syscall.Kill(s.process.pid, sig); err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	return nil
}

// Kill kills the postmaster and all its processes, with no chance to write anything more.
func (s *Server) Kill() error {
	return s.end(func(p *process) error {
		// It must not start others while it is being looked at.
		if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
			return err
		}
		all := children(p.pid)
		for _, child := range all {
			_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended meanwhile
		}
		if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
			return err
		}
		// One that is still in the middle of a write must not meet the next server.
		for _, child := range all {
			for syscall.Kill(child, 0) == nil {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	})
}

// KillBackend kills one of the processes that serve connections, chosen by a number, which
// makes the server break off all the others and recover. It returns false when there is none.
func (s *Server) KillBackend(n int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return false, errors.New("postgrestest: the server does not run")
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "args=").Output()
	if err != nil {
		return false, fmt.Errorf("postgrestest: ps: %w", err)
	}
	var backends []int
	for line := range strings.Lines(string(out)) {
		var pid, of int
		if k, _ := fmt.Sscan(line, &pid, &of); k == 2 && of == s.process.pid && strings.Contains(line, " fixpoint postgres ") {
			backends = append(backends, pid)
		}
	}
	if len(backends) == 0 {
		return false, nil
	}
	return true, syscall.Kill(backends[n%len(backends)], syscall.SIGKILL)
}

// Stop ends the server as an administrator does, who breaks off what runs.
func (s *Server) Stop() error {
	return s.end(func(p *process) error { return syscall.Kill(p.pid, syscall.SIGINT) })
}

// Pause stops all processes of the server in the middle of what they do, as if its machine
// were cut off; Resume lets them go on.
func (s *Server) Pause() error { return s.all(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.all(syscall.SIGCONT) }

func (s *Server) all(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("postgrestest: the server does not run")
	}
	err := syscall.Kill(s.process.pid, sig)
	for _, child := range children(s.process.pid) {
		_ = syscall.Kill(child, sig)
	}
	if err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	return nil
}

// end ends the server and waits for that.
func (s *Server) end(how func(p *process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	err := how(p)
	// The shell's own wait is for the server; closing the pipe ends what else it runs.
	defer p.alive.Close()
	if err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		return fmt.Errorf("postgrestest: the server does not end:\n%s", p.log)
	}
	return nil
}

// children returns the processes of a parent.
func children(parent int) (pids []int) {
	out, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "ppid=").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		var pid, of int
		if n, _ := fmt.Sscan(line, &pid, &of); n == 2 && of == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Close kills the server and removes its folder.
func (s *Server) Close() error {
	err := s.Kill()
	if removed := os.RemoveAll(s.dir); removed != nil {
		err = errors.Join(err, fmt.Errorf("postgrestest: %w", removed))
	}
	return err
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
