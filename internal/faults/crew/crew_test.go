//go:build servers

package crew_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/crew"
	"github.com/ddd26017/fixpoint/internal/faults/servers"
)

func TestMain(m *testing.M) {
	child.Main(crew.Worker, crew.Approver)
	os.Exit(m.Run())
}

// count reads how much a test is to do.
func count(t *testing.T, variable string, short int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// onEach runs a test on a server of each kind.
func onEach(t *testing.T, test func(t *testing.T, o crew.Options)) {
	for _, kind := range servers.Kinds {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			dir := t.TempDir()
			server, err := servers.Start(ctx, kind, dir, 1)
			require.NoError(t, err)
			t.Cleanup(func() { _ = server.Close() })
			test(t, crew.Options{Dir: dir, Server: server, Name: "crew", Seed: 1, Lease: 2 * time.Second})
		})
	}
}

// Capability B6. Capability B7. Workers in three processes are killed at random under all
// their threads: every run ends, no call whose result was committed runs again, and every
// effect arrives.
func TestKills(t *testing.T) {
	onEach(t, func(t *testing.T, o crew.Options) {
		o.Threads = count(t, "FIXPOINT_CREW_THREADS", 60)
		seconds := count(t, "FIXPOINT_CREW_SECONDS", 8)
		rep, err := crew.Kill(t.Context(), crew.KillOptions{
			Options: o, Workers: 3, Duration: time.Duration(seconds) * time.Second, Pause: time.Second,
		})
		t.Logf("%+v", *rep)
		require.NoError(t, err)
		require.NoError(t, rep.Err())
		require.Positive(t, rep.Kills)
		require.GreaterOrEqual(t, rep.Runs, o.Threads)
		require.Zero(t, rep.Repeated)
		require.Zero(t, rep.Missing)
		require.Positive(t, rep.TakenUp)
	})
}

// Capability B6. A worker is cut off its server in the middle of its runs: it commits
// nothing more, another one takes over, and when the first one is back it is fenced off.
func TestCut(t *testing.T) {
	onEach(t, func(t *testing.T, o crew.Options) {
		o.Threads = 6
		rep, err := crew.Cut(t.Context(), crew.CutOptions{Options: o, Rounds: count(t, "FIXPOINT_CREW_CUTS", 2)})
		t.Logf("%+v", *rep)
		require.NoError(t, err)
		require.NoError(t, rep.Err())
		require.Zero(t, rep.Stale)
		require.Zero(t, rep.Repeated)
		require.Positive(t, rep.TakenOver)
		require.Positive(t, rep.Fenced)
	})
}

// Capability A14. Capability B7. Runs that wait for a person outlive their worker, are
// answered about by two processes at the same time, each answer twice, and are finished by
// a third: none is lost, and none goes on twice.
func TestApprove(t *testing.T) {
	onEach(t, func(t *testing.T, o crew.Options) {
		o.Threads = count(t, "FIXPOINT_CREW_APPROVALS", 20)
		rep, err := crew.Approve(t.Context(), o)
		t.Logf("%+v", *rep)
		require.NoError(t, err)
		require.NoError(t, rep.Err())
		require.Zero(t, rep.Lost)
		require.Zero(t, rep.Double)
		require.Equal(t, o.Threads, rep.Owners)
		require.Greater(t, rep.Deliveries, 2*o.Threads)
	})
}
