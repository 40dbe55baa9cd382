package enginetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
	"github.com/stretchr/testify/require"
)

type closing struct {
	engine.Plugin
	close func(ctx context.Context) error
}

func (c closing) Close(ctx context.Context) error { return c.close(ctx) }

func TestEngineIsClosedWhenTheTestEnds(t *testing.T) {
	plain := engine.NewPlugin("holder", func(*engine.Registrar) error { return nil })
	closed := false
	said := try(t.Context(), func(t enginetest.TB) {
		enginetest.Engine(t, engine.Config{Plugins: []engine.Plugin{closing{plain, func(ctx context.Context) error {
			closed = true
			return ctx.Err()
		}}}})
	})
	require.Empty(t, said.faults, "the context of Close lives")
	require.True(t, closed)
	said = try(t.Context(), func(t enginetest.TB) {
		enginetest.Engine(t, engine.Config{Plugins: []engine.Plugin{closing{plain, func(context.Context) error { return errors.New("stuck") }}}})
	})
	require.Contains(t, said.text(), "stuck")
	said = try(t.Context(), func(t enginetest.TB) { enginetest.Engine(t, engine.Config{Plugins: []engine.Plugin{plain, plain}}) })
	require.Contains(t, said.text(), "registered twice")
}

var hoard = state.NewKey("config.hoard", state.KeyConfig[[]int, []int]{Shared: true, Scope: state.ScopeThread})

// Config turns the freeze check on: a hook that changes what it only borrowed is
// found out.
func TestConfigChecksFreeze(t *testing.T) {
	d := enginetest.Driver{
		Plugins: []engine.Plugin{engine.NewPlugin("thief", func(r *engine.Registrar) error {
			r.Key(hoard)
			r.Hook(phase.StepStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
				hoard.Get(pc.Snapshot())[0] = 7
				return phase.Command{}, nil
			}))
			return nil
		})},
		Seed: []state.Update{hoard.With([]int{1, 2})},
	}
	out := d.RunPhase(t, phase.StepStart)
	require.ErrorContains(t, out.Err, "config.hoard")
	require.ErrorContains(t, out.Err, "step_start")
}
