package screening_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/screening"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// Capability A18. Wherever the process ends, a result is marked exactly once.
func TestRecovery(t *testing.T) {
	resumed := 0
	for n := 1; ; n++ {
		inner := memstore.New(memstore.Options{})
		broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
		require.NoError(t, err)
		build := func(j engine.Journal) *engine.Engine {
			carrier := engine.NewPlugin("carrier", func(r *engine.Registrar) error {
				r.Tool(idempotent{enginetest.StubTool("fetch", engine.Text(attack))})
				return nil
			})
			e, err := engine.New(engine.Config{Plugins: []engine.Plugin{screening.New(screening.Options{}), carrier}, Journal: j,
				Model: enginetest.NewScript(enginetest.Call("1", "fetch", nil), enginetest.Say("done"))})
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
		for _, m := range engine.Transcript.Get(again.Snapshot()).All() {
			if m.Role == inference.RoleTool {
				require.True(t, strings.HasPrefix(m.Text, "[screening: "), "crash at append %d: %s", n, m.Text)
				require.Equal(t, 1, strings.Count(m.Text, "[screening: "), "crash at append %d", n)
			}
		}
	}
}

// idempotent is a tool that runs again after a crash.
type idempotent struct{ engine.Tool }

func (idempotent) Recovery() engine.Recovery { return engine.Rerun }
