package natstest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Servers are NATS servers in this process: one alone, or a cluster.
type Servers struct {
	servers []*server.Server
}

// Start starts n servers with JetStream, which sync every write, and waits until they can
// make streams of n replicas. They end with the test, and so do their files.
func Start(t testing.TB, n int) *Servers {
	t.Helper()
	return StartWith(t, n, func(*server.Options) {})
}

// StartWith is Start with changes to the options of each server.
func StartWith(t testing.TB, n int, change func(*server.Options)) *Servers {
	t.Helper()
	s, err := New(t.TempDir(), n, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// New is StartWith for programs that are no tests: the servers keep their files in folder,
// and end with Close.
func New(folder string, n int, change func(*server.Options)) (*Servers, error) {
	routes, err := freePorts(n)
	if err != nil {
		return nil, err
	}
	s := &Servers{}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		o := &server.Options{
			ServerName: name,
			Host:       "127.0.0.1",
			Port:       server.RANDOM_PORT,
			HTTPHost:   "127.0.0.1",
			HTTPPort:   server.RANDOM_PORT,
			NoLog:      true,
			NoSigs:     true,
			JetStream:  true,
			StoreDir:   filepath.Join(folder, name),
			SyncAlways: true,
			// The default is what a small disk has free.
			JetStreamMaxStore: 8 << 30, JetStreamMaxMemory: 1 << 30,
		}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: routes[i]}
			for _, port := range routes {
				o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
			}
		}
		change(o)
		one, err := server.NewServer(o)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("natstest: %w", err)
		}
		s.servers = append(s.servers, one)
		one.Start()
	}
	if err := s.await(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Servers) await() error {
	deadline := time.Now().Add(time.Minute)
	for _, one := range s.servers {
		if !one.ReadyForConnections(time.Until(deadline)) {
			return errors.New("natstest: a server does not take connections")
		}
	}
	for !s.ready() {
		if time.Now().After(deadline) {
			return errors.New("natstest: the servers do not find together")
		}
		<-time.After(10 * time.Millisecond)
	}
	return nil
}

// ready reports whether there is a leader that knows of all.
func (s *Servers) ready() bool {
	if len(s.servers) == 1 {
		return true // it is when it takes connections
	}
	for _, one := range s.servers {
		if one.JetStreamIsLeader() {
			return len(one.JetStreamClusterPeers()) == len(s.servers)
		}
	}
	return false
}

// Close ends the servers.
func (s *Servers) Close() {
	for _, one := range s.servers {
		one.Shutdown()
	}
	for _, one := range s.servers {
		one.WaitForShutdown()
	}
}

// EnableJetStream gives an account JetStream without limits, where StartWith set accounts.
func (s *Servers) EnableJetStream(t testing.TB, account string) {
	t.Helper()
	for _, one := range s.servers {
		a, err := one.LookupAccount(account)
		if err == nil {
			err = a.EnableJetStream(nil, nil)
		}
		if err != nil {
			t.Fatalf("natstest: %v", err)
		}
	}
}

// URL returns where all servers take connections, for the client.
func (s *Servers) URL() string {
	var all []string
	for _, one := range s.servers {
		all = append(all, one.ClientURL())
	}
	return strings.Join(all, ",")
}

// Monitors returns the base URLs of the monitoring endpoints.
func (s *Servers) Monitors() []string {
	var all []string
	for _, one := range s.servers {
		all = append(all, "http://"+one.MonitorAddr().String())
	}
	return all
}

// Disconnect closes all connections of clients, which then connect anew.
func (s *Servers) Disconnect() {
	for _, one := range s.servers {
		connections, err := one.Connz(&server.ConnzOptions{Limit: 10_000})
		if err != nil {
			continue
		}
		for _, c := range connections.Conns {
			_ = one.DisconnectClientByID(c.Cid)
		}
	}
}

// freePorts returns ports of this host that nobody listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("natstest: %w", err)
		}
		defer l.Close() // when all are known, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
