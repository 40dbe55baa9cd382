package bench_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ddd26017/fixpoint/bench"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// BenchmarkResolve folds the votes of n gates, against a loop that looks for the
// highest kind.
func BenchmarkResolve(b *testing.B) {
	call := inference.ToolCall{ID: "c1", Name: "null", Args: "{}"}
	for _, n := range []int{3, 16} {
		votes := make([]gate.Vote, n)
		for i := range votes {
			votes[i] = gate.Vote{Plugin: fmt.Sprint("p", i), Decision: gate.Approve()}
		}
		votes[n-1].Decision = gate.Block("no")
		b.Run(fmt.Sprintf("gates=%d/impl=loop", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				best := gate.KindAbstain
				for i := range votes {
					best = max(best, votes[i].Decision.Kind())
				}
				if best != gate.KindBlock {
					b.Fatal(best)
				}
			}
		})
		b.Run(fmt.Sprintf("gates=%d/impl=fixpoint", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if gate.Resolve(call, votes).Decision.Kind() != gate.KindBlock {
					b.Fatal("not blocked")
				}
			}
		})
	}
}

// BenchmarkStep is a run of two steps with a null model: 8 hooks, 2 tool calls
// and 3 gates. Its baseline is the loop that such a run is without an engine.
func BenchmarkStep(b *testing.B) {
	model := bench.CallingModel(2)
	b.Run("hooks=8/calls=2/gates=3/impl=loop", func(b *testing.B) {
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			messages := []inference.Message{inference.User("go")}
			for {
				resp, err := model.Generate(ctx, inference.Request{Messages: messages})
				if err != nil {
					b.Fatal(err)
				}
				messages = append(messages, resp.Message)
				if len(resp.Message.ToolCalls) == 0 {
					break
				}
				for _, c := range resp.Message.ToolCalls {
					messages = append(messages, inference.ToolMessage(inference.ToolResult{CallID: c.ID, Name: c.Name, Content: "ok"}))
				}
			}
		}
	})
	b.Run("hooks=8/calls=2/gates=3/impl=fixpoint", func(b *testing.B) {
		eng, err := engine.New(engine.Config{Agents: []engine.AgentSpec{bench.Spec}, Model: model, Plugins: []engine.Plugin{bench.OwnKeys(8), bench.Gates(3), bench.NullTool()}})
		require.NoError(b, err)
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			oneRun(b, ctx, eng)
		}
	})
}

func oneRun(tb testing.TB, ctx context.Context, eng *engine.Engine) {
	res, err := eng.Run(ctx, bench.Spec, engine.Prompt("go"))
	if err != nil || res.Err != nil || res.Steps != 2 {
		tb.Fatal(err, res)
	}
}

// BenchmarkRuns is 1,000 runs at the same time on one engine, against the same
// runs one after another.
func BenchmarkRuns(b *testing.B) {
	const n = 1000
	build := func(b *testing.B) *engine.Engine {
		eng, err := engine.New(engine.Config{Agents: []engine.AgentSpec{bench.Spec}, Model: bench.CallingModel(2), Plugins: []engine.Plugin{bench.OwnKeys(8), bench.Gates(3), bench.NullTool()}})
		require.NoError(b, err)
		return eng
	}
	b.Run("runs=1000/impl=serial", func(b *testing.B) {
		eng := build(b)
		b.ReportAllocs()
		for b.Loop() {
			for range n {
				oneRun(b, context.Background(), eng)
			}
		}
	})
	b.Run("runs=1000/impl=fixpoint", func(b *testing.B) {
		eng := build(b)
		b.ReportAllocs()
		for b.Loop() {
			var g errgroup.Group
			for range n {
				g.Go(func() error {
					res, err := eng.Run(context.Background(), bench.Spec, engine.Prompt("go"))
					if err == nil {
						err = res.Err
					}
					return err
				})
			}
			if err := g.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
