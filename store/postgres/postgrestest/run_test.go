//go:build servers && unix

package postgrestest_test

import (
	"bytes"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
)

// log is safe for several servers.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// show asks for a setting.
func show(t *testing.T, dsn, name string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&value))
	return value
}

func TestServers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var text log
	server, err := postgrestest.Start(ctx, postgrestest.Options{Settings: map[string]string{"work_mem": "5MB", "cluster_name": "it's"}, Log: &text})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	require.Equal(t, "5MB", show(t, server.DSN(), "work_mem"))
	require.Equal(t, "it's", show(t, server.DSN(), "cluster_name"))
	require.NoError(t, server.Run(ctx), "it runs")
	require.Error(t, server.Follow(ctx, server), "it runs")

	require.NoError(t, server.Set("work_mem", "6MB"))
	deadline := time.Now().Add(time.Minute)
	for show(t, server.DSN(), "work_mem") != "6MB" {
		require.True(t, time.Now().Before(deadline))
	}

	standby, err := server.Standby(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = standby.Close() })
	require.NotEqual(t, server.Name(), standby.Name())
	require.Equal(t, "on", show(t, "host="+standby.Dir()+" user=fixpoint dbname=postgres", "in_hot_standby"))

	for range 2 {
		require.NoError(t, server.Kill())
		require.NoError(t, server.Kill(), "it does not run")
		require.Error(t, server.Pause())
		require.Error(t, server.Set("work_mem", "7MB"))
		_, err = pgx.Connect(ctx, server.DSN())
		require.Error(t, err)
		require.NoError(t, server.Run(ctx))
		require.Equal(t, "off", show(t, server.DSN(), "in_hot_standby"))
	}
	require.NoError(t, server.Pause())
	require.NoError(t, server.Resume())

	conn, err := pgx.Connect(ctx, server.DSN())
	require.NoError(t, err)
	killed, err := server.KillBackend(0)
	require.NoError(t, err)
	require.True(t, killed)
	require.Error(t, conn.Ping(ctx))

	// A server that is told to end while it recovers from the death of a backend may not end.
	require.Eventually(t, func() bool {
		again, err := pgx.Connect(ctx, server.DSN())
		return err == nil && again.Close(ctx) == nil
	}, time.Minute, 20*time.Millisecond, "the server is up again")
	require.NoError(t, server.Stop())
	require.NoError(t, standby.Promote(ctx))
	require.Equal(t, "off", show(t, postgrestest.MultiDSN(server, standby), "in_hot_standby"))
	require.NoError(t, server.Follow(ctx, standby))
	require.Equal(t, "on", show(t, "host="+server.Dir()+" user=fixpoint dbname=postgres", "in_hot_standby"))

	require.NoError(t, server.Close())
	_, err = os.Stat(server.Dir())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Contains(t, text.String(), "ready to accept connections")
}
