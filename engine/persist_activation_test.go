package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

var peActivated = state.NewCell("activated", state.Options[string]{})

type peActivator struct{}

func (peActivator) Name() string { return "activator" }
func (peActivator) Register(r *engine.Registrar) error {
	r.Key(peActivated)
	return nil
}
func (peActivator) OnActivate(spec engine.AgentSpec, b *engine.Batch) error {
	b.Update(peActivated.With("by " + spec.ID))
	return nil
}

// A run that was kept as begun is one whose plugins were activated, whenever its
// process ended.
func TestPersistedActivationSurvivesACrash(t *testing.T) {
	spec := engine.AgentSpec{ID: "a"}
	for n := 1; n < 12; n++ {
		inner := memstore.New(memstore.Options{})
		broken, err := faultstore.New(inner, faultstore.Config{At: map[int]faultstore.Fault{n: faultstore.Crash}})
		require.NoError(t, err)
		config := func(j engine.Journal) *engine.Engine {
			e, err := engine.New(engine.Config{Plugins: []engine.Plugin{peActivator{}}, Journal: j, Model: enginetest.NewScript(enginetest.Say("done"))})
			require.NoError(t, err)
			return e
		}
		th, err := config(broken).NewThread("t")
		require.NoError(t, err)
		_, err = th.Run(t.Context(), spec, engine.Prompt("go"))
		require.NoError(t, err)
		again, err := config(inner).OpenThread(t.Context(), "t")
		require.NoError(t, err)
		if phase.RunLifecycle.Get(again.Snapshot()).Status != phase.Running {
			continue // not begun, or over
		}
		_, err = again.Resume(t.Context(), spec, engine.Input{})
		require.NoError(t, err)
		require.Equal(t, "by a", peActivated.Get(again.Snapshot()), "crash at append %d", n)
	}
}
