package eino

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/compose"

	"github.com/ddd26017/fixpoint/bench/peers/internal/trial"
)

// Conflict is a run whose nodes all write one key of the output, which eino
// refuses: the step is the run up to its error.
func Conflict(m Mode, n int) (trial.Trial, error) {
	run, err := FanOut(m, n, increment(oneName))
	refused := 0
	return trial.Trial{
		Run: trial.Each(func() error {
			_, err := run.Invoke(context.Background(), State{oneName(0): 0})
			if err == nil {
				return errors.New("eino: a run with a conflict was not refused")
			}
			if !strings.Contains(err.Error(), "duplicated key") {
				return fmt.Errorf("eino: a run was refused for something else than its conflict: %w", err)
			}
			refused++
			return nil
		}),
		Verify: func(done int) error { return trial.Equal("refused runs", refused, done) },
	}, err
}

// lockedCount is the local state of a graph: one mutable value, which nodes see under
// a lock.
type lockedCount struct{ count int }

// Handlers is a run whose nodes all increment one count of the local state by
// its handlers: one reads it before the node runs, one writes it after. All read
// before any writes, so that one of n increments is left.
func Handlers(m Mode, n int) (trial.Trial, error) {
	local := &lockedCount{}
	run, err := FanOut(m, n, func(g *compose.Graph[int, State], _ int, name string) error {
		return g.AddLambdaNode(name,
			compose.InvokableLambda(func(_ context.Context, read int) (State, error) {
				return State{name: read + 1}, nil
			}),
			compose.WithStatePreHandler(func(_ context.Context, _ int, s *lockedCount) (int, error) {
				return s.count, nil
			}),
			compose.WithStatePostHandler(func(_ context.Context, out State, s *lockedCount) (State, error) {
				s.count, _ = out[name].(int)
				return out, nil
			}))
	}, compose.WithGenLocalState(func(context.Context) *lockedCount { return local }))
	return trial.Trial{
		Run: trial.Each(func() error {
			_, err := run.Invoke(context.Background(), 0)
			return err
		}),
		Verify: func(done int) error { return trial.Equal("the count that lost writes", local.count, done) },
	}, err
}

// Locked is a run whose nodes all increment one count of the local state, each
// within one use of its lock.
func Locked(m Mode, n int) (trial.Trial, error) {
	local := &lockedCount{}
	run, err := FanOut(m, n, func(g *compose.Graph[int, State], _ int, name string) error {
		return g.AddLambdaNode(name, compose.InvokableLambda(func(ctx context.Context, _ int) (State, error) {
			return nil, compose.ProcessState(ctx, func(_ context.Context, s *lockedCount) error {
				s.count++
				return nil
			})
		}))
	}, compose.WithGenLocalState(func(context.Context) *lockedCount { return local }))
	return trial.Trial{
		Run: trial.Each(func() error {
			_, err := run.Invoke(context.Background(), 0)
			return err
		}),
		Verify: func(done int) error { return trial.Equal("the count under a lock", local.count, n*done) },
	}, err
}
