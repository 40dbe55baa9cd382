package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ddd26017/fixpoint/store"
)

// oldestServer is the oldest version that has all that the statements use.
const oldestServer = 130000

// session prepares a connection: what the statements rely on must not depend on how the
// role or the database is set up. It returns what an acknowledgement means there.
//
// The plans are forced to go by the indexes, because a plan that was good for an empty queue
// is kept, and would be used when the queue is long.
const sessionSQL = `SELECT
    pg_is_in_recovery(),
    current_setting('transaction_read_only') = 'on',
    current_setting('server_version_num')::integer,
    current_setting('fsync') = 'on',
    current_setting('full_page_writes') = 'on',
    current_setting('synchronous_standby_names'),
    set_config('synchronous_commit', CASE
        WHEN $1::text <> '' THEN $1::text
        WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply'
        ELSE 'on' END, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('client_min_messages', 'warning', false),
    set_config('statement_timeout', '0', false),
    set_config('lock_timeout', '0', false),
    set_config('idle_in_transaction_session_timeout', '0', false),
    set_config('search_path', 'pg_catalog', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    set_config('jit', 'off', false)`

// settings are those of a server that say what an acknowledgement means.
type settings struct {
	recovery, readOnly bool
	version            int
	fsync, fullPages   bool
	standbyNames       string
	commit             string // synchronous_commit of the session
}

// check refuses a server that cannot be written to, or is too old.
func (s settings) check() error {
	switch {
	case s.recovery:
		return fmt.Errorf("%w: it is a standby; name all hosts in the connection string and add target_session_attrs=read-write", ErrNotPrimary)
	case s.readOnly:
		return fmt.Errorf("%w: default_transaction_read_only is on for this role or database", ErrNotPrimary)
	case s.version < oldestServer:
		return fmt.Errorf("postgres: the server has version %d, and the oldest that will do is %d", s.version/10000, oldestServer/10000)
	}
	return nil
}

// caps says what an acknowledgement means. Every level of synchronous_commit but off waits
// for the primary's own disk; on and remote_apply wait for those of the standbys too.
func (s settings) caps(maxBytes int) store.Caps {
	c := store.Caps{Synced: s.fsync && s.fullPages && s.commit != "off", Replicas: 1, MultiProcess: true, MaxBytes: maxBytes}
	if s.commit == "on" || s.commit == "remote_apply" {
		c.Replicas += standbysNeeded(s.standbyNames)
	}
	return c
}

// server remembers what connections have found.
type server struct {
	mu       sync.Mutex
	id       int64  // of the database cluster; 0: unknown
	timeline uint64 // the newest that was seen
	caps     atomic.Pointer[store.Caps]
}

// see refuses another database cluster than before, and one that is on an older timeline:
// that is a primary which another one has replaced.
func (s *server) see(id int64, timeline uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.id != 0 && id != 0 && s.id != id:
		return fmt.Errorf("%w: it is another database cluster than before", ErrNotPrimary)
	case timeline != 0 && timeline < s.timeline:
		return fmt.Errorf("%w: it is on timeline %d, and timeline %d was seen: another server was promoted in its place", ErrNotPrimary, timeline, s.timeline)
	}
	s.id, s.timeline = id, max(timeline, s.timeline)
	return nil
}

// prepare makes a new connection ready, for the pool and for the one that listens.
func (j *Journal) prepare(ctx context.Context, conn *pgx.Conn) error {
	var s settings
	var ignored string
	row := conn.QueryRow(ctx, sessionSQL, pgx.QueryExecModeExec, j.commit)
	targets := []any{&s.recovery, &s.readOnly, &s.version, &s.fsync, &s.fullPages, &s.standbyNames, &s.commit}
	for len(targets) < 19 {
		targets = append(targets, &ignored)
	}
	if err := row.Scan(targets...); err != nil {
		return fmt.Errorf("postgres: prepare a session: %w", err)
	}
	if err := s.check(); err != nil {
		return err
	}
	id, timeline, err := identity(ctx, conn)
	if err != nil {
		return err
	}
	if err := j.server.see(id, timeline); err != nil {
		return err
	}
	caps := s.caps(j.maxBytes)
	j.server.caps.Store(&caps)
	conn.PgConn().CustomData()[warningsKey] = new(warnings)
	return nil
}

// identity returns which database cluster this is and on which timeline, or zeros where
// the role may not know.
func identity(ctx context.Context, conn *pgx.Conn) (id int64, timeline uint64, err error) {
	var line string
	err = conn.QueryRow(ctx, "SELECT (pg_control_system()).system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)",
		pgx.QueryExecModeExec).Scan(&id, &line)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR" {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("postgres: prepare a session: %w", err)
	}
	timeline, err = strconv.ParseUint(line, 16, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("postgres: the server has the timeline %q: %w", line, err)
	}
	return id, timeline, nil
}

// warnings notes whether the server has warned. It does so in no other case than when a
// commit was made to stop waiting for its standbys, and then answers as if nothing were.
type warnings struct{ some atomic.Bool }

const warningsKey = "fixpoint warnings"

func onNotice(conn *pgconn.PgConn, n *pgconn.Notice) {
	if w, ok := conn.CustomData()[warningsKey].(*warnings); ok && n.SeverityUnlocalized == "WARNING" {
		w.some.Store(true)
	}
}

// warned reports whether the server has warned since it was asked last.
func warned(conn *pgx.Conn) bool {
	w, ok := conn.PgConn().CustomData()[warningsKey].(*warnings)
	return ok && w.some.Swap(false)
}
