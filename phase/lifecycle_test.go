package phase_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

func newStore(t *testing.T) *state.Store {
	t.Helper()
	s, err := state.NewStore(state.Config{Keys: phase.Keys()})
	require.NoError(t, err)
	return s
}

func commit(t *testing.T, s *state.Store, cmd phase.Command) error {
	t.Helper()
	_, err := s.Commit(state.Batch{Owner: "x", Updates: cmd.Updates()})
	return err
}

func change(u phase.LifecycleUpdate) (cmd phase.Command) {
	cmd.Update(phase.RunLifecycle.With(u))
	return cmd
}

// Capability A13. A new thread has created a run and not begun it; an update changes
// what it names and nothing else.
func TestLifecycleUpdates(t *testing.T) {
	s := newStore(t)
	require.Equal(t, phase.Lifecycle{Status: phase.Created}, phase.RunLifecycle.Get(s.Snapshot()))
	require.NoError(t, commit(t, s, change(phase.LifecycleUpdate{Run: "r", Status: phase.Running})))
	require.NoError(t, commit(t, s, change(phase.LifecycleUpdate{Step: 2})))
	require.NoError(t, commit(t, s, change(phase.LifecycleUpdate{Continue: "more"})))
	want := phase.Lifecycle{Run: "r", Status: phase.Running, Step: 2, Continue: "more"}
	require.Equal(t, want, phase.RunLifecycle.Get(s.Snapshot()))
	require.NoError(t, commit(t, s, change(phase.LifecycleUpdate{})))
	require.Equal(t, want, phase.RunLifecycle.Get(s.Snapshot()))
	require.NoError(t, commit(t, s, change(phase.LifecycleUpdate{Granted: true})))
	want.Continue, want.Resumed = "", 1
	require.Equal(t, want, phase.RunLifecycle.Get(s.Snapshot()))
}

// Capability A13. The first end counts, whoever asks again.
func TestLifecycleFirstEndCounts(t *testing.T) {
	s := newStore(t)
	var cmd phase.Command
	cmd.EndRun("one", "first").EndRun("two", "second")
	require.NoError(t, commit(t, s, cmd))
	cmd = phase.Command{}
	cmd.EndRun("three", "third")
	require.NoError(t, commit(t, s, cmd))
	l := phase.RunLifecycle.Get(s.Snapshot())
	require.True(t, l.Ended)
	require.EqualValues(t, "one", l.Reason)
	require.Equal(t, "first", l.Detail)
}

// Capability A13. A wish to go on has a reason, also when none was given.
func TestLifecycleContinue(t *testing.T) {
	s := newStore(t)
	var cmd phase.Command
	cmd.Continue("")
	require.NoError(t, commit(t, s, cmd))
	require.NotEmpty(t, phase.RunLifecycle.Get(s.Snapshot()).Continue)
}

// Capability A13. Random updates never lead past the allowed moves of the status, and
// a refused one changes nothing.
func TestLifecycleRandomMoves(t *testing.T) {
	allowed := map[phase.RunStatus][]phase.RunStatus{
		phase.Created: {phase.Running},
		phase.Running: {phase.Waiting, phase.Done},
		phase.Waiting: {phase.Running, phase.Done},
	}
	all := []phase.RunStatus{phase.Created, phase.Running, phase.Waiting, phase.Done, "odd"}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		s := newStore(t)
		for range 10 {
			before := phase.RunLifecycle.Get(s.Snapshot())
			to := all[rnd.IntN(len(all))]
			err := commit(t, s, change(phase.LifecycleUpdate{Status: to, Step: 1 + rnd.IntN(5)}))
			after := phase.RunLifecycle.Get(s.Snapshot())
			fine := to == before.Status
			for _, a := range allowed[before.Status] {
				fine = fine || a == to
			}
			require.Equal(t, fine, err == nil, "%s to %s: %v", before.Status, to, err)
			if err == nil {
				require.Equal(t, to, after.Status)
			} else {
				require.Equal(t, before, after)
			}
		}
	}
}

// Capability A13. A run id begins the lifecycle anew.
func TestLifecycleNewRun(t *testing.T) {
	s := newStore(t)
	require.NoError(t, commit(t, s, change(phase.LifecycleUpdate{Run: "a", Status: phase.Running, Step: 4, End: "x", Continue: "y"})))
	require.NoError(t, commit(t, s, change(phase.LifecycleUpdate{Run: "b"})))
	require.Equal(t, phase.Lifecycle{Run: "b", Status: phase.Running}, phase.RunLifecycle.Get(s.Snapshot()))
}
