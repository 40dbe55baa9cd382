//go:build unix

package postgrestest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

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
