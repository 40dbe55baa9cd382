package eino

import (
	"context"
	"fmt"
	"sync"

	"github.com/cloudwego/eino/compose"

	"github.com/ddd26017/fixpoint/bench/peers/internal/trial"
)

// increment is a node that reads keyOf(i) of the input and writes it, plus 1,
// to the output.
func increment(keyOf func(i int) string) Node[State, State] {
	return func(g *compose.Graph[State, State], i int, name string) error {
		key := keyOf(i)
		return g.AddLambdaNode(name, compose.InvokableLambda(func(_ context.Context, in State) (int, error) {
			value, ok := in[key].(int)
			if !ok {
				return 0, fmt.Errorf("eino: the state has no key %s", key)
			}
			return value + 1, nil
		}), compose.WithOutputKey(key))
	}
}

func ownName(i int) string { return fmt.Sprintf("own.%03d", i) }

func oneName(int) string { return "one" }

// Gather is a run whose nodes each increment a key of their own. What comes out
// goes into the next run.
func Gather(m Mode, n int) (trial.Trial, error) {
	run, err := FanOut(m, n, increment(ownName))
	state := State{}
	for i := range n {
		state[ownName(i)] = 0
	}
	return trial.Trial{
		Run: trial.Each(func() error {
			next, err := run.Invoke(context.Background(), state)
			if err != nil {
				return err
			}
			state = next
			return nil
		}),
		Verify: func(done int) error {
			if len(state) != n {
				return fmt.Errorf("eino: %d keys and should be %d", len(state), n)
			}
			for key, value := range state {
				if value != done {
					return fmt.Errorf("eino: %s is %v and should be %d", key, value, done)
				}
			}
			return nil
		},
	}, err
}

// Sum is a value that eino adds up when several nodes return one.
type Sum int

// registerSum tells eino how to add up. It keeps that for the whole process, in a
// map without a lock.
var registerSum = sync.OnceFunc(func() {
	compose.RegisterValuesMergeFunc(func(values []Sum) (total Sum, err error) {
		for _, v := range values {
			total += v
		}
		return total, nil
	})
})

// Counter is a run whose nodes each add 1, by a merge function.
func Counter(m Mode, n int) (trial.Trial, error) {
	registerSum()
	run, err := FanOut(m, n, func(g *compose.Graph[Sum, Sum], _ int, name string) error {
		return g.AddLambdaNode(name, compose.InvokableLambda(func(context.Context, Sum) (Sum, error) {
			return 1, nil
		}))
	})
	var total Sum
	return trial.Trial{
		Run: trial.Each(func() error {
			grown, err := run.Invoke(context.Background(), total)
			total += grown
			return err
		}),
		Verify: func(done int) error { return trial.Equal("the counter", int(total), n*done) },
	}, err
}
