//go:build !race

package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/phase"
)

// phaseAllocs is how many allocations a phase of so many hooks makes, which do nothing.
// The race detector adds some of its own.
func phaseAllocs(t *testing.T, hooks int, observers ...engine.Observer) float64 {
	t.Helper()
	th := gaThread(t, engine.Config{Observers: observers, Plugins: []engine.Plugin{engine.NewPlugin("idle", func(r *engine.Registrar) error {
		for range hooks {
			r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
				return phase.Command{}, nil
			}))
		}
		return nil
	})}})
	return testing.AllocsPerRun(200, func() { gaPhase(t, th, phase.StepStart) })
}

// Without an observer events cost nothing: a hook more makes one allocation, for its place
// in the agent that RunPhase puts together, although it has an event. With an observer
// that event is one more.
func TestEventsCostNothingWithoutObservers(t *testing.T) {
	const few, many = 4, 104
	each := func(observers ...engine.Observer) float64 {
		return (phaseAllocs(t, many, observers...) - phaseAllocs(t, few, observers...)) / (many - few)
	}
	seen := 0
	count := engine.ObserverFunc(func(engine.Event) { seen++ })
	without, with := each(), each(count)
	require.InDelta(t, 1, without, 0.2)
	require.GreaterOrEqual(t, with, 1.8, "the event of a hook is an allocation")
	require.Positive(t, seen)
}
