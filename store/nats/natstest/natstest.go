package natstest

import (
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
	s := &Servers{}
	t.Cleanup(s.stop)
	folder := t.TempDir()
	routes := freePorts(t, n)
	for i := range n {
		o := &server.Options{
			ServerName: fmt.Sprintf("n%d", i+1),
			Host:       "127.0.0.1",
			Port:       server.RANDOM_PORT,
			HTTPHost:   "127.0.0.1",
			HTTPPort:   server.RANDOM_PORT,
			NoLog:      true,
			NoSigs:     true,
			JetStream:  true,
			StoreDir:   filepath.Join(folder, fmt.Sprintf("n%d", i+1)),
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
		started, err := server.NewServer(o)
		if err != nil {
			t.Fatalf("natstest: %v", err)
		}
		s.servers = append(s.servers, started)
		started.Start()
	}
	s.await(t)
	return s
}

func (s *Servers) await(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, one := range s.servers {
		if !one.ReadyForConnections(time.Until(deadline)) {
			t.Fatal("natstest: a server does not take connections")
		}
	}
	for !s.ready() {
		if time.Now().After(deadline) {
			t.Fatal("natstest: the servers do not find together")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// ready reports whether there is a leader that knows of all.
func (s *Servers) ready() bool {
	if len(s.servers) == 1 {
		return s.servers[0].JetStreamEnabled()
	}
	for _, one := range s.servers {
		if one.JetStreamIsLeader() {
			return len(one.JetStreamClusterPeers()) == len(s.servers)
		}
	}
	return false
}

func (s *Servers) stop() {
	for _, one := range s.servers {
		one.Shutdown()
	}
	for _, one := range s.servers {
		one.WaitForShutdown()
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
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("natstest: %v", err)
		}
		defer l.Close() // when all are known, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
