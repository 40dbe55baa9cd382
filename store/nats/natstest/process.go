package natstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// The environment of a child process that is to be a server.
const (
	// childConfig names the server's configuration file.
	childConfig = "FIXPOINT_NATS_CONFIG"
	// Program names the nats-server to run instead of the one that is linked here.
	Program = "FIXPOINT_NATS_SERVER"
)

// Main must be called first in TestMain of a package that uses StartProcesses: child processes
// are the same program. It reports whether this is one; then the server has ended.
func Main() bool {
	config := os.Getenv(childConfig)
	if config == "" {
		return false
	}
	if err := serve(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func serve(config string) error {
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// Processes are a cluster of NATS servers in child processes.
type Processes struct {
	names   []string
	configs []string
	clients []int
	running []*exec.Cmd
}

// StartProcesses starts a cluster of n servers, which sync every write. They end with the
// test, and so do their files. The environment variable FIXPOINT_NATS_SERVER names another
// nats-server to run.
func StartProcesses(t testing.TB, n int) *Processes {
	t.Helper()
	folder := t.TempDir()
	ports, err := freePorts(2 * n)
	if err != nil {
		t.Fatal(err)
	}
	p := &Processes{clients: ports[:n], running: make([]*exec.Cmd, n)}
	var routes []string
	for _, port := range ports[n:] {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		config := fmt.Sprintf(`server_name: %s
listen: "127.0.0.1:%d"
jetstream { store_dir: %q, sync_interval: always, max_file_store: 8G, max_memory_store: 1G }
cluster { name: test, listen: "127.0.0.1:%d", routes: [%s] }
accounts {
	APP { jetstream: enabled, users: [{ user: app, password: app }] }
	SYS { users: [{ user: sys, password: sys }] }
}
system_account: SYS
no_auth_user: app
log_file: %q
`, name, p.clients[i], filepath.Join(folder, name), ports[n+i], strings.Join(routes, ", "), filepath.Join(folder, name+".log"))
		path := filepath.Join(folder, name+".conf")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatalf("natstest: %v", err)
		}
		p.names, p.configs = append(p.names, name), append(p.configs, path)
	}
	t.Cleanup(func() {
		for i := range n {
			p.Kill(i)
		}
	})
	for i := range n {
		p.Start(t, i)
	}
	return p
}

// Start starts a server that does not run.
func (p *Processes) Start(t testing.TB, i int) {
	t.Helper()
	program := os.Getenv(Program)
	var cmd *exec.Cmd
	if program != "" {
		cmd = exec.Command(program, "-c", p.configs[i])
	} else {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childConfig+"="+p.configs[i])
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("natstest: %v", err)
	}
	p.running[i] = cmd
}

// Kill kills a server, as kill -9 does, and waits until it is gone.
func (p *Processes) Kill(i int) {
	if cmd := p.running[i]; cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		p.running[i] = nil
	}
}

// Index returns the number of the server of that name, or -1.
func (p *Processes) Index(name string) int {
	for i, n := range p.names {
		if n == name {
			return i
		}
	}
	return -1
}

// URL returns where all servers take connections, for the client.
func (p *Processes) URL() string { return p.url("") }

// SystemURL is URL with the user of the system account.
func (p *Processes) SystemURL() string { return p.url("sys:sys@") }

func (p *Processes) url(user string) string {
	var all []string
	for _, port := range p.clients {
		all = append(all, fmt.Sprintf("nats://%s127.0.0.1:%d", user, port))
	}
	return strings.Join(all, ",")
}
