package eino_test

import (
	"context"
	"sync"
	"testing"

	"github.com/cloudwego/eino/compose"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/bench/peers/internal/eino"
	"github.com/ddd26017/fixpoint/bench/peers/internal/trial"
)

// TestChecksCount shows that the checks of the works know how often the work was
// done: once less than said is noticed.
func TestChecksCount(t *testing.T) {
	for _, m := range eino.Modes() {
		for name, prepare := range map[string]func() (trial.Trial, error){
			"gather":   func() (trial.Trial, error) { return eino.Gather(m, 64) },
			"alone":    func() (trial.Trial, error) { return eino.Gather(m, 1) },
			"counter":  func() (trial.Trial, error) { return eino.Counter(m, 64) },
			"refused":  func() (trial.Trial, error) { return eino.Conflict(m, 8) },
			"handlers": func() (trial.Trial, error) { return eino.Handlers(m, 8) },
			"locked":   func() (trial.Trial, error) { return eino.Locked(m, 8) },
			"cascade":  func() (trial.Trial, error) { return eino.Cascade(16) },
		} {
			t.Run(m.ID+"/"+name, func(t *testing.T) {
				tr, err := prepare()
				require.NoError(t, err)
				require.NoError(t, tr.Run(5))
				require.NoError(t, tr.Verify(5))
				require.Error(t, tr.Verify(6))
			})
		}
	}
}

// TestNodesOverlap shows that eino runs all nodes of a fan-out at the same time, as
// Fixpoint does with hooks: each waits for all. If they did not, this would not end.
func TestNodesOverlap(t *testing.T) {
	const n = 64
	for _, m := range eino.Modes() {
		t.Run(m.ID, func(t *testing.T) {
			var came sync.WaitGroup
			came.Add(n)
			run, err := eino.FanOut(m, n, func(g *compose.Graph[eino.State, eino.State], i int, name string) error {
				return g.AddLambdaNode(name, compose.InvokableLambda(func(context.Context, eino.State) (int, error) {
					came.Done()
					came.Wait()
					return i, nil
				}), compose.WithOutputKey(name))
			})
			require.NoError(t, err)
			out, err := run.Invoke(t.Context(), eino.State{})
			require.NoError(t, err)
			require.Len(t, out, n)
		})
	}
}

// TestConflictsAsNoted shows what the notes say of nodes that write one value: eino
// refuses the run, or keeps one of eight increments, or all when each node locks.
func TestConflictsAsNoted(t *testing.T) {
	for _, m := range eino.Modes() {
		run, err := eino.FanOut(m, 8, func(g *compose.Graph[eino.State, eino.State], i int, name string) error {
			return g.AddLambdaNode(name, compose.InvokableLambda(func(context.Context, eino.State) (int, error) {
				return i, nil
			}), compose.WithOutputKey("one"))
		})
		require.NoError(t, err)
		_, err = run.Invoke(t.Context(), eino.State{})
		require.ErrorContains(t, err, "duplicated key ('one') found")

		lost, err := eino.Handlers(m, 8)
		require.NoError(t, err)
		require.NoError(t, lost.Run(1))
		require.NoError(t, lost.Verify(1))

		kept, err := eino.Locked(m, 8)
		require.NoError(t, err)
		require.NoError(t, kept.Run(1))
		require.NoError(t, kept.Verify(1))
	}
}
