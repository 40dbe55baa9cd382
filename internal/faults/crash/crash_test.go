package crash_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/crash"
)

func TestMain(m *testing.M) {
	child.Main(crash.Worker)
	os.Exit(m.Run())
}

// Capability B7. Capability A18. Processes that run agents are killed at any moment;
// what they acknowledged is there, what they finished is not done again, and what they
// promised to send is sent.
func TestKills(t *testing.T) {
	rep, err := crash.Run(t.Context(), crash.Options{Dir: t.TempDir(), Seed: 1, Kills: 15, Lanes: 4, Lines: 400})
	require.NoError(t, err)
	require.NoError(t, rep.Err())
	require.Equal(t, 15, rep.Kills)
	require.Zero(t, rep.Lost)
	require.Zero(t, rep.Repeated)
	require.Zero(t, rep.Missing)
	require.Greater(t, rep.Acks, 100)
	t.Logf("%+v", *rep)
}

// The check finds what a store loses that acknowledges commits before it keeps them.
func TestForgetfulStore(t *testing.T) {
	rep, err := crash.Run(t.Context(), crash.Options{Dir: t.TempDir(), Seed: 1, Kills: 4, Lanes: 4, Lines: 200, Forgetful: true})
	require.NoError(t, err)
	require.Positive(t, rep.Lost)
	require.ErrorContains(t, rep.Err(), "was acknowledged")
}
