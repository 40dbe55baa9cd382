//go:build unix

// Package servers starts servers of the stores that processes share, for the checks that
// are about several processes, and opens those stores by an address that a parent can
// give to its children.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
	"github.com/ddd26017/fixpoint/store/postgres"
	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
)

// The kinds of servers.
const (
	Postgres = "postgres"
	NATS     = "nats"
)

// Kinds are all of them.
var Kinds = []string{Postgres, NATS}

// Store is what the checks need of a store; both have it.
type Store interface {
	store.Journal
	store.Leaser
	store.Historian
	store.Queue
	store.Notifier
}

// Server is a Postgres server in processes of its own, or NATS servers in this one. Close
// ends it.
type Server struct {
	postgres *postgrestest.Server
	nats     *natstest.Servers
	replicas int
}

// Start starts a server of a kind. NATS keeps its files in dir, and has so many servers.
func Start(ctx context.Context, kind, dir string, replicas int) (*Server, error) {
	var err error
	s := &Server{replicas: max(replicas, 1)}
	switch kind {
	case Postgres:
		s.postgres, err = postgrestest.Start(ctx, postgrestest.Options{})
	case NATS:
		s.nats, err = natstest.New(filepath.Join(dir, "nats"), s.replicas, func(*server.Options) {})
	default:
		err = fmt.Errorf("servers: there is no kind %q; want one of %q", kind, Kinds)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the server, and drops what it kept.
func (s *Server) Close() error {
	if s.postgres != nil {
		return s.postgres.Close()
	}
	s.nats.Close()
	return nil
}

// Postgres returns the server of Postgres, nil if this is another.
func (s *Server) Postgres() *postgrestest.Server { return s.postgres }

// Address leads to one store on the server.
func (s *Server) Address(name string) Address {
	if s.postgres != nil {
		return Address{Kind: Postgres, URL: s.postgres.DSN(), Name: name}
	}
	return Address{Kind: NATS, URL: s.nats.URL(), Name: name, Replicas: s.replicas}
}

// Endpoint is where the server takes connections, for a proxy: the first one of several.
func (s *Server) Endpoint() (network, address string) {
	if s.postgres != nil {
		return "unix", filepath.Join(s.postgres.Dir(), ".s.PGSQL.5432")
	}
	first, _, _ := strings.Cut(s.nats.URL(), ",")
	u, err := url.Parse(first)
	if err != nil {
		return "tcp", first
	}
	return "tcp", u.Host
}

// Address is where a store is.
type Address struct {
	Kind     string `json:"kind"`
	URL      string `json:"url"`
	Name     string `json:"name"` // of the schema or stream
	Replicas int    `json:"replicas,omitempty"`
}

// Via returns the address of the same store behind a proxy.
func (a Address) Via(proxy net.Addr) Address {
	host, port, _ := net.SplitHostPort(proxy.String())
	if a.Kind == Postgres {
		a.URL = fmt.Sprintf("host=%s port=%s user=fixpoint dbname=postgres sslmode=disable", host, port)
	} else {
		a.URL = "nats://" + net.JoinHostPort(host, port)
	}
	return a
}

// Open opens the store.
func (a Address) Open(ctx context.Context) (Store, error) {
	switch a.Kind {
	case Postgres:
		return postgres.Open(ctx, a.URL, postgres.Options{Schema: a.Name})
	case NATS:
		return nats.Open(ctx, a.URL, nats.Options{
			Stream: strings.ToUpper(a.Name), Replicas: a.Replicas, AssumeSynced: true,
			// Those behind a proxy must not go around it.
			Connect: []client.Option{client.IgnoreDiscoveredServers()},
		})
	}
	return nil, errors.New("servers: " + strconv.Quote(a.Kind) + " is no kind of server")
}
