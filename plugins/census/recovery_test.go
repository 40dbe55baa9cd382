package census_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/census"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Capability A18. The census is not lost by the end of a process, wherever it comes: the
// call runs again.
func TestRecovery(t *testing.T) {
	dir := t.TempDir()
	resumed := 0
	for n := 1; ; n++ {
		inner := memstore.New(memstore.Options{})
		broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
		require.NoError(t, err)
		build := func(j engine.Journal) *engine.Engine {
			p := census.New(os.DirFS(dir))
			e, err := engine.New(engine.Config{Plugins: []engine.Plugin{p}, Journal: j, Model: enginetest.NewScript(enginetest.Call("1", census.Tool, nil), enginetest.Say("done"))})
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
		results := 0
		for _, m := range engine.Transcript.Get(again.Snapshot()).All() {
			if m.Role == inference.RoleTool {
				results++
				require.Equal(t, inference.OutcomeOK, m.Result.Outcome, "%s after a crash at append %d: %s", m.Result.Name, n, m.Result.Content)
			}
		}
		require.Equal(t, 1, results, "crash at append %d", n)
	}
}
