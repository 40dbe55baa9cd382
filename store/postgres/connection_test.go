//go:build servers

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/postgres"
	"github.com/ddd26017/fixpoint/store/postgres/postgrestest"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// admin is a connection of somebody else to the same database.
func admin(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func run1(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}

// wire is a connection that breaks after so many bytes.
type wire struct {
	net.Conn
	cut *cut
}

// cut says when the connection of a store breaks; the next one is a good one.
type cut struct {
	mu          sync.Mutex
	armed       bool
	write, read int // bytes that still pass; less than 0: all do
	broke       bool
}

func (c *cut) arm(write, read int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.broke, c.write, c.read = true, false, write, read
}

func (c *cut) disarm() (broke bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = false
	return c.broke
}

// pass returns how many of n bytes pass.
func (c *cut) pass(left *int, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed || *left < 0 {
		return n
	}
	if n > *left {
		n, c.broke, c.armed = *left, true, false
	}
	*left -= n
	return n
}

func (w wire) Write(p []byte) (int, error) {
	n := w.cut.pass(&w.cut.write, len(p))
	if n == len(p) {
		return w.Conn.Write(p)
	}
	n, _ = w.Conn.Write(p[:n])
	_ = w.Conn.Close()
	return n, io.ErrClosedPipe
}

func (w wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if passed := w.cut.pass(&w.cut.read, n); passed < n {
		_ = w.Conn.Close()
		return passed, io.ErrUnexpectedEOF
	}
	return n, err
}

func openOver(t *testing.T, c *cut, o postgres.Options) *postgres.Journal {
	config, err := pgxpool.ParseConfig(shared.DSN() + " pool_max_conns=1")
	require.NoError(t, err)
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return wire{conn, c}, nil
	}
	j, err := postgres.New(t.Context(), config, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// The connection breaks at every few bytes of a commit and of its answer. Whether it landed
// is unknown, or it is sure that it did not; a repeat gives one answer, and it lands once.
func TestConnectionBreaksAnywhere(t *testing.T) {
	t.Parallel()
	var c cut
	o := postgres.Options{Schema: newSchema(), Patience: -1}
	j := openOver(t, &c, o)
	check := open(t, shared.DSN(), o)
	warm := func() { // with the statements prepared, so that the cuts hit the commit itself
		for base := range uint64(2) {
			_, err := j.Append(t.Context(), kilobyte(fmt.Sprintf("warm %x", newID()), 0, 1))
			require.NoError(t, err, "%d", base)
		}
	}
	landed, unknown, total := 0, 0, 0
	try := func(write, read int) (broke bool) {
		warm()
		commit := store.Commit{
			ID: newID(), Thread: fmt.Sprintf("%d %d", write, read), Record: []byte("record"),
			Effects: []store.Effect{{Lane: "lane", Body: []byte("body")}},
		}
		c.arm(write, read)
		_, err := j.Append(t.Context(), commit)
		broke = c.disarm()
		if !broke {
			require.NoError(t, err)
			return false
		}
		total++
		require.Error(t, err)
		if errors.Is(err, store.ErrUnknownOutcome) {
			unknown++
		} else {
			image, err := check.Load(t.Context(), commit.Thread, 0)
			require.NoError(t, err)
			require.Zero(t, image.Revision, "it landed, and the error was no unknown outcome")
		}
		// What was sent may still be under way, so only the repeat tells.
		revision, err := check.Append(t.Context(), commit)
		require.NoError(t, err)
		require.Equal(t, uint64(1), revision)
		image, err := check.Load(t.Context(), commit.Thread, 0)
		require.NoError(t, err)
		require.Equal(t, commit.ID, image.LastID)
		require.Equal(t, uint64(1), image.Revision)
		landed++
		return true
	}
	for n := 0; try(n, -1); n += 23 {
	}
	for n := 0; try(-1, n); n += 7 {
	}
	d, err := check.Depth(t.Context(), "lane")
	require.NoError(t, err)
	require.Equal(t, landed+2, d.Due, "one effect a commit; the two that did not break included")
	require.Positive(t, unknown)
	t.Logf("breaks=%d unknown=%d", total, unknown)
}

// With patience the store itself repeats what was lost, whatever the call.
func TestConnectionBreaksAndCallsGoOn(t *testing.T) {
	t.Parallel()
	var c cut
	j := openOver(t, &c, postgres.Options{Schema: newSchema()})
	ctx := t.Context()
	calls := map[string]func() error{}
	lease, err := j.Acquire(ctx, "l", "me", time.Hour)
	require.NoError(t, err)
	revision := uint64(0)
	calls["append"] = func() error {
		_, err := j.Append(ctx, kilobyte("a", revision, 0))
		revision++
		return err
	}
	calls["acquire"] = func() (err error) {
		lease, err = j.Acquire(ctx, "l", "me", time.Hour)
		return err
	}
	calls["renew"] = func() (err error) {
		lease, err = j.Renew(ctx, lease, time.Hour)
		return err
	}
	calls["load"] = func() error {
		image, err := j.Load(ctx, "a", 0)
		if err == nil && image.Revision != revision {
			return fmt.Errorf("revision %d, want %d", image.Revision, revision)
		}
		return err
	}
	calls["threads"] = func() error { _, err := j.Threads(ctx, "", 10); return err }
	calls["prune"] = func() error { return j.Prune(ctx, "a", store.PrunePolicy{KeepSnapshots: 1}) }
	calls["delete"] = func() error { return j.Delete(ctx, "nobody") }
	calls["lanes"] = func() error { _, err := j.Lanes(ctx, ""); return err }
	calls["depth"] = func() error { _, err := j.Depth(ctx, "x"); return err }
	calls["dead"] = func() error { _, err := j.Dead(ctx, "x", 1); return err }
	calls["status"] = func() error { _, err := j.Status(ctx); return err }
	for name, call := range calls {
		broken := 0
		for _, at := range [][2]int{{10, -1}, {-1, 0}, {-1, 10}, {-1, 30}} {
			require.NoError(t, call(), name)
			c.arm(at[0], at[1])
			require.NoError(t, call(), name)
			if c.disarm() {
				broken++
			}
		}
		require.Positive(t, broken, name)
	}
}

// Connections are terminated at random while many write.
func TestTerminatedConnections(t *testing.T) {
	t.Parallel()
	o := postgres.Options{Schema: newSchema(), Application: newSchema()}
	j := open(t, shared.DSN(), o)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	killer := admin(t, shared.DSN())
	var terminated atomic.Int64
	group.Go(func() {
		for ctx.Err() == nil {
			tag, err := killer.Exec(context.WithoutCancel(ctx), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT 1", o.Application)
			if err == nil {
				terminated.Add(tag.RowsAffected())
			}
			pause(ctx, 10*time.Millisecond)
		}
	})
	var mu sync.Mutex
	var acks []storetest.Ack
	w := storetest.Work{Threads: []string{"a", "b", "c"}, Writers: 8, Commits: 40, Seed: 1}
	err := w.Run(t.Context(), j, func(a storetest.Ack) {
		mu.Lock()
		defer mu.Unlock()
		acks = append(acks, a)
	})
	cancel()
	group.Wait()
	require.NoError(t, err)
	require.Len(t, acks, 8*40)
	require.NoError(t, storetest.Check(t.Context(), j, acks))
	require.Positive(t, terminated.Load())
}

// A caller that leaves in the middle of a commit does not know what became of it. It goes on
// without the caller, and a repeat tells.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	o := postgres.Options{Schema: newSchema()}
	j := open(t, shared.DSN(), o)
	_, err := j.Append(t.Context(), kilobyte("t", 0, 0))
	require.NoError(t, err)
	other := admin(t, shared.DSN())
	tx, err := other.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM "+pgx.Identifier{o.Schema, "threads"}.Sanitize()+" FOR UPDATE")
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := kilobyte("t", 1, 1)
	record := append([]byte{}, c.Record...)
	_, err = j.Append(ctx, c)
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	clear(c.Record[:1])
	c.Record[0] = 0xff // it is the caller's again
	require.NoError(t, tx.Commit(t.Context()))
	image, err := j.Load(t.Context(), "t", 2)
	require.NoError(t, err)
	require.Equal(t, record, image.Tail[1].Record)
	revision, err := j.Append(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, uint64(2), revision)
}

// A notice is missed while the connection is made again, and later ones are heard.
func TestListenerConnectsAgain(t *testing.T) {
	t.Parallel()
	o := postgres.Options{Schema: newSchema(), Application: newSchema()}
	j := open(t, shared.DSN(), o)
	heard, err := j.Listen(t.Context(), "topic")
	require.NoError(t, err)
	other := admin(t, shared.DSN())
	for range 3 {
		tag, err := other.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", o.Application)
		require.NoError(t, err)
		require.Positive(t, tag.RowsAffected())
		deadline := time.Now().Add(time.Minute)
		for listening := true; listening; {
			_ = j.Notify(t.Context(), "topic", []byte("x")) // it is not sent again when its own connection is gone
			select {
			case data, open := <-heard:
				require.True(t, open)
				require.Equal(t, "x", string(data))
				listening = false
			case <-time.After(5 * time.Millisecond):
				require.True(t, time.Now().Before(deadline))
			}
		}
	}
	// Between stores, and not between schemas.
	same, apart := open(t, shared.DSN(), o), open(t, shared.DSN(), postgres.Options{Schema: newSchema()})
	for len(heard) > 0 {
		<-heard
	}
	require.NoError(t, apart.Notify(t.Context(), "topic", []byte("of others")))
	require.NoError(t, same.Notify(t.Context(), "topic", []byte("from another process")))
	for data := range heard {
		if string(data) != "x" {
			require.Equal(t, "from another process", string(data))
			break
		}
	}
}

// The hooks of a pool's configuration are for the connection that listens too.
func TestHooks(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(shared.DSN() + " user=nobody pool_max_conns=1")
	require.NoError(t, err)
	var before, after, notices atomic.Int64
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		before.Add(1)
		c.User = "fixpoint"
		return nil
	}
	config.AfterConnect = func(context.Context, *pgx.Conn) error {
		after.Add(1)
		return nil
	}
	config.ConnConfig.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { notices.Add(1) }
	j, err := postgres.New(t.Context(), config, postgres.Options{Schema: newSchema()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	require.Equal(t, []int64{1, 1}, []int64{before.Load(), after.Load()})
	heard, err := j.Listen(t.Context(), "topic")
	require.NoError(t, err)
	require.Equal(t, []int64{2, 2}, []int64{before.Load(), after.Load()})
	require.NoError(t, j.Notify(t.Context(), "topic", nil))
	require.Empty(t, <-heard)
	require.Zero(t, notices.Load())
}

// replicated is a primary, a standby that its commits wait for, and a store on both.
func replicated(t *testing.T, o postgres.Options) (primary, standby *postgrestest.Server, j *postgres.Journal) {
	primary = start(t, nil)
	standby, err := primary.Standby(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = standby.Close() })
	require.NoError(t, primary.Set("synchronous_standby_names", quoted(standby)))
	watch := admin(t, primary.DSN())
	for state := ""; state != "sync"; pause(t.Context(), 10*time.Millisecond) {
		err := watch.QueryRow(t.Context(), "SELECT coalesce(max(sync_state), '') FROM pg_stat_replication").Scan(&state)
		require.NoError(t, err)
	}
	return primary, standby, open(t, postgrestest.MultiDSN(primary, standby)+" connect_timeout=2", o)
}

// An administrator breaks off the wait for a standby. The server answers that all is well,
// which is no acknowledgement: it comes when the standby has the commit.
func TestWaitForStandbyIsBrokenOff(t *testing.T) {
	t.Parallel()
	o := postgres.Options{Application: newSchema()}
	primary, standby, j := replicated(t, o)
	require.Equal(t, 2, j.Caps().Replicas)
	status, err := j.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{1, 1, "on"}, []any{status.Needed, status.Connected(), status.Commit})
	require.NoError(t, standby.Pause())
	answered := make(chan error, 1)
	go func() {
		_, err := j.Append(t.Context(), kilobyte("t", 0, 0))
		answered <- err
	}()
	other := admin(t, primary.DSN())
	cancelled := 0
	for cancelled < 5 {
		tag, err := other.Exec(t.Context(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'SyncRep'", o.Application)
		require.NoError(t, err)
		cancelled += int(tag.RowsAffected())
		select {
		case err := <-answered:
			t.Fatalf("an answer without the standby: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	// It is seen before the standby has it, as the documentation says.
	image, err := j.Load(t.Context(), "t", 1)
	require.NoError(t, err)
	require.Equal(t, uint64(1), image.Revision)
	require.NoError(t, standby.Resume())
	require.NoError(t, <-answered)
}

// The primary is cut off, the standby promoted, and then the former primary comes back and
// takes writes too: the store leaves it alone.
func TestFormerPrimary(t *testing.T) {
	t.Parallel()
	primary, standby, j := replicated(t, postgres.Options{Timeout: 2 * time.Second, Patience: time.Minute})
	for base := range uint64(3) {
		_, err := j.Append(t.Context(), kilobyte("t", base, 0))
		require.NoError(t, err)
	}
	require.NoError(t, primary.Pause())
	answered := make(chan error, 1)
	go func() {
		_, err := j.Append(t.Context(), kilobyte("t", 3, 0))
		answered <- err
	}()
	require.NoError(t, standby.Promote(t.Context()))
	require.NoError(t, <-answered)
	require.NoError(t, primary.Resume())
	for base := uint64(4); base < 40; base++ {
		_, err := j.Append(t.Context(), kilobyte("t", base, 0))
		require.NoError(t, err)
		if base%10 == 0 { // new connections, which try the former primary first
			run1(t, admin(t, standby.DSN()), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fixpoint'")
		}
	}
	var revision int64
	err := admin(t, primary.DSN()).QueryRow(t.Context(), "SELECT revision FROM fixpoint.threads WHERE thread = 't'").Scan(&revision)
	require.NoError(t, err)
	require.LessOrEqual(t, revision, int64(4), "the former primary has at most what was under way when it was cut off")
	// A store that is led to the former primary alone gets no acknowledgement.
	zombie := open(t, primary.DSN(), postgres.Options{NoMigrate: true})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = zombie.Append(ctx, kilobyte("z", 0, 0))
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
}
