//go:build servers

package postgres_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/postgres"
	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// shared is the server of all tests that do not harm it. Each test has a schema of its own.
var shared *postgrestest.Server

const (
	childDSN    = "FIXPOINT_POSTGRES_CHILD"
	childSchema = "FIXPOINT_POSTGRES_CHILD_SCHEMA"
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if dsn := os.Getenv(childDSN); dsn != "" {
		return child(ctx, dsn, os.Getenv(childSchema))
	}
	var err error
	shared, err = postgrestest.Start(ctx, postgrestest.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Close()
	return m.Run()
}

// child runs the workload of the kit in a process of its own.
func child(ctx context.Context, dsn, schema string) int {
	journal, err := postgres.Open(ctx, dsn, postgres.Options{Schema: schema})
	if err == nil {
		err = storetest.Serve(ctx, journal, os.Stdin, os.Stdout)
		_ = journal.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var schemas atomic.Int64

func newSchema() string { return fmt.Sprintf("schema %d", schemas.Add(1)) }

func open(t testing.TB, dsn string, o postgres.Options) *postgres.Journal {
	t.Helper()
	journal, err := postgres.Open(t.Context(), dsn, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = journal.Close() })
	return journal
}

// Capability B6, B7: the store half, on Postgres.
func TestConformance(t *testing.T) {
	t.Parallel()
	killer, err := pgxpool.New(t.Context(), shared.DSN())
	require.NoError(t, err)
	t.Cleanup(killer.Close)
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		schema := newSchema()
		o := postgres.Options{Schema: schema, Application: schema, MaxBytes: 1 << 20}
		journal := open(t, shared.DSN(), o)
		return storetest.Fixture{
			Journal: journal,
			Reopen: func(t *testing.T) store.Journal {
				_ = journal.Close()
				journal = open(t, shared.DSN(), o)
				return journal
			},
			Child: func(ctx context.Context, in io.Reader, out io.Writer) error {
				cmd := exec.CommandContext(ctx, os.Args[0])
				cmd.Env = append(os.Environ(), childDSN+"="+shared.DSN(), childSchema+"="+o.Schema)
				cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
				cmd.WaitDelay = time.Second
				return cmd.Run()
			},
			Break: func() {
				_, _ = killer.Exec(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", schema)
			},
		}
	})
}
