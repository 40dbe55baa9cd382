//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

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
