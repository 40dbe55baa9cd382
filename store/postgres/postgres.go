package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ddd26017/fixpoint/store"
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Schema is the name of the schema that holds the tables; "" is "fixpoint". Stores in
	// different schemas of one database have nothing in common.
	Schema string
	// Application is what the server calls the connections, where the connection string
	// does not say; "" is "fixpoint".
	Application string
	// MaxConns limits the connections of the pool, where the connection string does not say
	// pool_max_conns; 0 is 16. One more is used as soon as somebody listens.
	MaxConns int
	// Commit is the synchronous_commit of the sessions: "on", "remote_apply", "remote_write",
	// "local" or "off". "" is what the server has for the role, but at least "on".
	Commit string
	// MaxBytes limits each record, snapshot and effect body; 0 is 64 MiB. It is at most
	// 256 MiB.
	MaxBytes int
	// Patience is for how long a call tries again while the server cannot be reached or a
	// connection broke, as long as its context allows; 0 is 10 seconds, less than 0 is not
	// at all.
	Patience time.Duration
	// Timeout is after how long without an answer a connection is given up; 0 is 30 seconds.
	Timeout time.Duration
	// NoMigrate makes Open fail with ErrSchemaOlder rather than make tables, for roles that
	// may not.
	NoMigrate bool
}

const (
	defaultSchema   = "fixpoint"
	defaultConns    = 16
	defaultBytes    = 64 << 20
	mostBytes       = 256 << 20
	mostCommit      = 1000 << 20 // bytes of one message to the server, with room for what is around them
	defaultPatience = 10 * time.Second
	defaultTimeout  = 30 * time.Second
	connectTimeout  = 5 * time.Second
	closePatience   = 5 * time.Second
)

var commitLevels = []string{"", "on", "remote_apply", "remote_write", "local", "off"}

// Validate reports all that is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	if len(o.Schema) > 63 || !utf8.ValidString(o.Schema) || strings.ContainsRune(o.Schema, 0) || strings.HasPrefix(o.Schema, "pg_") {
		errs = append(errs, fmt.Errorf("postgres: Options.Schema is %q; want UTF-8 of at most 63 bytes that does not begin with pg_", o.Schema))
	}
	if !slices.Contains(commitLevels, o.Commit) {
		errs = append(errs, fmt.Errorf("postgres: Options.Commit is %q; want one of %q", o.Commit, commitLevels[1:]))
	}
	if o.MaxConns < 0 || o.MaxConns > 10_000 {
		errs = append(errs, fmt.Errorf("postgres: Options.MaxConns is %d; want 0 to 10000", o.MaxConns))
	}
	if o.MaxBytes < 0 || o.MaxBytes > mostBytes {
		errs = append(errs, fmt.Errorf("postgres: Options.MaxBytes is %d; want 0 to %d", o.MaxBytes, mostBytes))
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("postgres: Options.Timeout is %s; want 0 or more", o.Timeout))
	}
	return errors.Join(errs...)
}

// Journal is an open store. It implements [store.Journal], [store.Leaser],
// [store.Historian], [store.Queue] and [store.Notifier], and is safe for concurrent use.
// Open makes one; it must be closed.
type Journal struct {
	schema   string
	commit   string
	maxBytes int
	patience time.Duration
	timeout  time.Duration
	sql      statements
	server   server
	pool     *pgxpool.Pool
	failed   atomic.Int64 // when a connection broke last, in nanoseconds since 1970

	base context.Context // of all that runs; ends with Close
	stop context.CancelCauseFunc

	closing chan struct{} // closed by Close, at once

	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // that are under way
	changed chan struct{}  // closed and replaced by each change that somebody here waits for
	waiting int

	ear ear
}

var (
	_ store.Journal   = (*Journal)(nil)
	_ store.Leaser    = (*Journal)(nil)
	_ store.Historian = (*Journal)(nil)
	_ store.Queue     = (*Journal)(nil)
	_ store.Notifier  = (*Journal)(nil)
)

// Open connects to a database, by a URL or by keywords and values, makes or updates the
// tables, and reads what an acknowledged commit means there. Errors: ErrNotPrimary for a
// server that takes no writes, ErrSchemaNewer, ErrSchemaOlder, those of Options.Validate,
// and those of the connection.
func Open(ctx context.Context, dsn string, o Options) (*Journal, error) {
	config, err := parse(dsn, o)
	if err != nil {
		return nil, err
	}
	return New(ctx, config, o)
}

// parse reads a connection string; what it does not say is taken from the options.
func parse(dsn string, o Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: the connection string: %w", err) // the text of the error hides the password
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = defaultConns
		if o.MaxConns > 0 {
			config.MaxConns = int32(min(o.MaxConns, 10_000))
		}
	}
	return config, nil
}

// New is Open for callers that set up more than a connection string can, such as how to
// dial or where passwords come from. The configuration must come from
// [pgxpool.ParseConfig]; it is copied, and its pool is the store's own, because the sessions
// are set up as the statements need it. Options.MaxConns does not count.
func New(ctx context.Context, config *pgxpool.Config, o Options) (*Journal, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	j := newJournal(o)
	if err := j.connect(ctx, j.configure(config, o), o.NoMigrate); err != nil {
		j.stop(errClosed())
		return nil, err
	}
	return j, nil
}

func newJournal(o Options) *Journal {
	j := &Journal{
		schema:   o.Schema,
		commit:   o.Commit,
		maxBytes: o.MaxBytes,
		patience: o.Patience,
		timeout:  o.Timeout,
		closing:  make(chan struct{}),
		changed:  make(chan struct{}),
	}
	if j.schema == "" {
		j.schema = defaultSchema
	}
	if j.maxBytes == 0 {
		j.maxBytes = defaultBytes
	}
	if j.patience == 0 {
		j.patience = defaultPatience
	}
	if j.timeout == 0 {
		j.timeout = defaultTimeout
	}
	j.sql = newStatements(j.schema)
	j.base, j.stop = context.WithCancelCause(context.Background())
	j.server.caps.Store(&store.Caps{MultiProcess: true, MaxBytes: j.maxBytes})
	return j
}

// configure adds to a copy of the configuration what the store needs.
func (j *Journal) configure(config *pgxpool.Config, o Options) *pgxpool.Config {
	c := config.Copy()
	if _, said := c.ConnConfig.RuntimeParams["application_name"]; !said {
		c.ConnConfig.RuntimeParams["application_name"] = defaultSchema
		if o.Application != "" {
			c.ConnConfig.RuntimeParams["application_name"] = o.Application
		}
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connectTimeout
	}
	theirs, theirNotice := c.ConnConfig.ValidateConnect, c.ConnConfig.OnNotice
	c.ConnConfig.ValidateConnect = j.prepare
	if theirs != nil {
		c.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			if err := j.prepare(ctx, conn); err != nil {
				return err
			}
			return theirs(ctx, conn)
		}
	}
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	c.ConnConfig.OnNotice = onNotice
	if theirNotice != nil {
		c.ConnConfig.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
			onNotice(conn, n)
			theirNotice(conn, n)
		}
	}
	if c.PingTimeout == 0 {
		c.PingTimeout = connectTimeout
	}
	if c.ShouldPing == nil {
		// When one connection broke the others may be broken as well.
		c.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
			return p.IdleDuration > time.Second || time.Now().Add(-p.IdleDuration).UnixNano() < j.failed.Load()
		}
	}
	return c
}

// connect makes the pool, and makes sure that the server and the tables are what they
// have to be.
func (j *Journal) connect(ctx context.Context, config *pgxpool.Config, only bool) error {
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		pool.Close()
		return fmt.Errorf("postgres: connect: %w", err)
	}
	err = migrate(ctx, conn.Conn(), j.schema, only)
	conn.Release()
	if err != nil {
		pool.Close()
		return err
	}
	j.pool = pool
	j.ear.init(j, config)
	return nil
}

// Migrate makes or updates the tables of a store, with a role that may do so, for programs
// that open it with Options.NoMigrate. Only Schema counts among the options.
func Migrate(ctx context.Context, dsn string, o Options) error {
	j, err := Open(ctx, dsn, Options{Schema: o.Schema, MaxConns: 1})
	if err != nil {
		return err
	}
	return j.Close()
}

// Caps implements [store.Journal]. It tells of the settings that the newest connection
// found; see Status for those of now, and for the standbys.
func (j *Journal) Caps() store.Caps { return *j.server.caps.Load() }

// Close lets the calls that are under way come to an end for some seconds, and then
// breaks them off. It does not wait for a server that does not answer. A second call returns
// store.ErrClosed.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return errClosed()
	}
	j.closed = true
	close(j.closing)
	j.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		j.calls.Wait()
		close(ended)
	}()
	await(ended, closePatience)
	j.stop(errClosed())
	<-ended
	j.ear.close()
	left := make(chan struct{})
	go func() {
		j.pool.Close()
		close(left)
	}()
	await(left, closePatience)
	return nil
}

// await waits for a channel to be closed, but not longer than d.
func await(ended <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}
