// Package eino does the works of the rows on cloudwego/eino.
package eino

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/compose"
)

// Mode is one of the two ways in which cloudwego/eino runs a graph.
type Mode struct {
	ID, Name string // in one word; in words
	trigger  compose.NodeTriggerMode
}

// Module is where eino is from.
const Module = "github.com/cloudwego/eino"

// Modes returns both ways.
func Modes() []Mode {
	return []Mode{
		{"eino-pregel", "Pregel graph", compose.AnyPredecessor},
		{"eino-dag", "DAG", compose.AllPredecessor},
	}
}

// State is a state in eino: a map of which each node writes one key, and which
// eino puts together from what the nodes of a superstep return.
type State = map[string]any

// Node adds the i-th node of a fan-out to a graph.
type Node[I, O any] func(g *compose.Graph[I, O], i int, name string) error

// FanOut compiles a graph of n nodes that all start from the input and end in
// the output.
func FanOut[I, O any](m Mode, n int, add Node[I, O], opts ...compose.NewGraphOption) (compose.Runnable[I, O], error) {
	g := compose.NewGraph[I, O](opts...)
	for i := range n {
		name := fmt.Sprintf("node%03d", i)
		if err := add(g, i, name); err != nil {
			return nil, fmt.Errorf("eino: %w", err)
		}
		if err := errors.Join(g.AddEdge(compose.START, name), g.AddEdge(name, compose.END)); err != nil {
			return nil, fmt.Errorf("eino: %w", err)
		}
	}
	return compile(g, compose.WithNodeTriggerMode(m.trigger))
}

func compile[I, O any](g *compose.Graph[I, O], opts ...compose.GraphCompileOption) (compose.Runnable[I, O], error) {
	run, err := g.Compile(context.Background(), opts...)
	if err != nil {
		return nil, fmt.Errorf("eino: %w", err)
	}
	return run, nil
}
