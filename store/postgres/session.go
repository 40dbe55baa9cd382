package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ddd26017/fixpoint/store"
)

// oldestServer is the oldest version that has all that the statements use.
const oldestServer = 130000

// sessionSQL prepares a connection: what the statements rely on must not depend on how the
// role or the database is set up. It returns what an acknowledgement means there. The level
// of synchronous_commit that is wanted stands for the at sign.
//
// The plans are forced to go by the indexes, because a plan that was good for an empty queue
// is kept, and would be used when the queue is long.
const sessionSQL = `SELECT
    pg_is_in_recovery(),
    current_setting('transaction_read_only'),
    current_setting('server_version_num'),
    current_setting('fsync'),
    current_setting('full_page_writes'),
    current_setting('synchronous_standby_names'),
    set_config('synchronous_commit', CASE
        WHEN '@' <> '' THEN '@'
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

// identitySQL asks which database cluster this is, and on which timeline.
const identitySQL = `SELECT (pg_control_system()).system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`

// settings are those of a server that say what an acknowledgement means.
type settings struct {
	recovery, readOnly bool
	version            int
	fsync, fullPages   bool
	standbyNames       string
	commit             string // synchronous_commit of the session
}

// readSettings reads the answer to sessionSQL.
func readSettings(row [][]byte) (s settings, err error) {
	if len(row) < 7 {
		return s, fmt.Errorf("postgres: the server answered with %d settings", len(row))
	}
	on := func(i int) bool { return string(row[i]) == "on" || string(row[i]) == "t" }
	s = settings{recovery: on(0), readOnly: on(1), fsync: on(3), fullPages: on(4), standbyNames: string(row[5]), commit: string(row[6])}
	if s.version, err = strconv.Atoi(string(row[2])); err != nil {
		return s, fmt.Errorf("postgres: the server has the version %q: %w", row[2], err)
	}
	return s, nil
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
	id       uint64 // of the database cluster; 0: unknown
	timeline uint64 // the newest that was seen
	caps     atomic.Pointer[store.Caps]
}

// see refuses another database cluster than before, and one that is on an older timeline:
// that is a primary which another one has replaced.
func (s *server) see(id, timeline uint64) error {
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

// prepare makes a new connection ready, for the pool and for the one that listens. An error
// makes the driver try the next host.
func (j *Journal) prepare(ctx context.Context, conn *pgconn.PgConn) error {
	row, err := ask(ctx, conn, strings.ReplaceAll(sessionSQL, "@", j.commit))
	if err != nil {
		return fmt.Errorf("postgres: prepare a session: %w", err)
	}
	s, err := readSettings(row)
	if err == nil {
		err = s.check()
	}
	if err != nil {
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
	conn.CustomData()[warningsKey] = new(warnings)
	return nil
}

// ask runs a statement that has one row for an answer, as text.
func ask(ctx context.Context, conn *pgconn.PgConn, sql string) ([][]byte, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, errors.New("the server did not answer with one row")
	}
	return results[0].Rows[0], nil
}

// identity returns which database cluster this is and on which timeline, or zeros where
// the role may not know.
func identity(ctx context.Context, conn *pgconn.PgConn) (id, timeline uint64, err error) {
	row, err := ask(ctx, conn, identitySQL)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR" {
		return 0, 0, nil
	}
	if err == nil && len(row) != 2 {
		err = fmt.Errorf("the server answered with %d columns", len(row))
	}
	if err == nil {
		id, err = strconv.ParseUint(string(row[0]), 10, 64)
	}
	if err == nil {
		timeline, err = strconv.ParseUint(string(row[1]), 16, 32)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("postgres: prepare a session: %w", err)
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
