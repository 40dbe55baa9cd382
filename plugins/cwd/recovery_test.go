package cwd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/cwd"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Capability A18. Wherever the process ends, the directory changes, and others learn of
// it and the model is told exactly once.
func TestRecovery(t *testing.T) {
	p := place(t, dirs(t, "a"), cwd.Options{Then: follow})
	resumed := 0
	for n := 1; ; n++ {
		inner := memstore.New(memstore.Options{})
		broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
		require.NoError(t, err)
		build := func(j engine.Journal) *engine.Engine {
			e, err := engine.New(engine.Config{Plugins: []engine.Plugin{p, follower()}, Journal: j,
				Model: enginetest.NewScript(cd("1", "a"), enginetest.Say("done"))})
			require.NoError(t, err)
			return e
		}
		th, err := build(broken).NewThread("t")
		require.NoError(t, err)
		_, err = th.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
		require.NoError(t, err)
		if broken.Counts().Faults[faultstore.Crash] == 0 {
			require.Greater(t, resumed, 5, "the process has to end in many places")
			return
		}
		again, err := build(inner).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		if phase.RunLifecycle.Get(again.Snapshot()).Status != phase.Running {
			continue
		}
		resumed++
		res, err := again.Resume(t.Context(), engine.AgentSpec{ID: "a"}, engine.Input{})
		require.NoError(t, err)
		require.NoError(t, res.Err)
		require.Equal(t, "a", cwd.Dir.Get(again.Snapshot()), "crash at append %d", n)
		require.Equal(t, []cwd.Change{{Old: ".", New: "a"}}, changes.Get(again.Snapshot()).Slice(), "crash at append %d", n)
		require.Equal(t, []string{"the working directory is a", "*The working directory is now a (before: .)."}, texts(again), "crash at append %d", n)
	}
}
