package eino

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/compose"

	"github.com/ddd26017/fixpoint/bench/peers/internal/trial"
)

// loop is the value that goes around the loop of Cascade.
type loop struct{ count, left int }

// Cascade is a run that goes through one node again and again, which increments
// a count each time, until there were as many as rounds.
func Cascade(rounds int) (trial.Trial, error) {
	const node = "round"
	g := compose.NewGraph[loop, loop]()
	err := errors.Join(
		g.AddLambdaNode(node, compose.InvokableLambda(func(_ context.Context, in loop) (loop, error) {
			return loop{count: in.count + 1, left: in.left - 1}, nil
		})),
		g.AddEdge(compose.START, node),
		g.AddBranch(node, compose.NewGraphBranch(func(_ context.Context, in loop) (string, error) {
			if in.left > 0 {
				return node, nil
			}
			return compose.END, nil
		}, map[string]bool{node: true, compose.END: true})),
	)
	if err != nil {
		return trial.Trial{}, fmt.Errorf("eino: %w", err)
	}
	run, err := compile(g, compose.WithMaxRunSteps(rounds+1))
	count := 0
	return trial.Trial{
		Run: trial.Each(func() error {
			out, err := run.Invoke(context.Background(), loop{count: count, left: rounds})
			count = out.count
			return err
		}),
		Verify: func(done int) error { return trial.Equal("the count", count, rounds*done) },
	}, err
}
