package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Fault B29. Report 13. Three calls one after the other, cancelled while the second runs: the
// transcript has a real result, an interrupted one and one that was not started;
// what the first wrote is committed once; and a new run on the thread works
// without running it again.
func TestCancelInTheMiddleOfABatch(t *testing.T) {
	gbNoLeaks(t)
	done := state.NewCounter("gb.done", state.Options[int64]{Scope: state.ScopeThread})
	for _, obeys := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("the user pressed stop")
		release := make(chan struct{})
		log := &gbLog{}
		tool := gbToolOf("t", func(ctx context.Context, pc *phase.Context) (out engine.Output, err error) {
			if pc.Call().ID == "c2" {
				cancel(stopped)
				if obeys {
					<-ctx.Done()
					return out, ctx.Err()
				}
				<-release
			}
			out.Command.Update(done.With(1))
			out.Content = "real"
			return out, nil
		})
		model := gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "t", ""), gbCall("c3", "t", "")))
		w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{
			gbTools(tool), gbKeys(done), gbProbe(log),
			gbEditor("editor", func(cmd *phase.Command, res inference.ToolResult) { cmd.EditContent(res.CallID, "seen: "+res.Content) }),
		}})
		res := w.runCtx(ctx, engine.Prompt("go"))
		close(release)
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		require.Equal(t, phase.Done, res.Status)
		require.ErrorIs(t, res.Err, stopped)
		require.Equal(t, stopped.Error(), res.Detail)
		require.Equal(t, []string{"c1 ok", "c2 cancelled", "c3 not_run"}, gbOutcomes(w.results()))
		require.Equal(t, "seen: real", w.results()[0].Content)
		require.Contains(t, w.results()[1].Content, "seen: interrupted", "hooks after the tool work in a cancelled run")
		require.Contains(t, w.results()[2].Content, "seen: not run")
		require.Equal(t, int64(1), done.Get(w.thread.Snapshot()))
		require.Equal(t, []string{"after_tool_execute c1 ok", "after_tool_execute c2 cancelled", "after_tool_execute c3 not_run"}, gbLines(log.all(), "after_tool"))
		require.Len(t, gbLines(log.all(), "run_end"), 1)
		gbPaired(t, w.messages())

		again := w.say("go on")
		require.Equal(t, phase.ReasonNatural, again.Reason)
		require.Equal(t, 2, tool.ran())
		gbPaired(t, model.sent()[1].Messages)
		require.Equal(t, int64(1), done.Get(w.thread.Snapshot()), "the late result of the second call counts for nothing")
	}
}

// Fault B29. The same with parallel calls: those that finished keep their results.
func TestCancelParallelTools(t *testing.T) {
	gbNoLeaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	tool := gbToolOf("t", func(ctx context.Context, pc *phase.Context) (engine.Output, error) {
		if pc.Call().ID == "c2" {
			<-finished
			cancel()
			<-ctx.Done()
			return engine.Output{}, ctx.Err()
		}
		return engine.Text("real"), nil
	})
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbFive()[:2]...)),
		Plugins: []engine.Plugin{gbTools(tool)},
		Limits:  engine.Limits{Concurrency: 1},
	})
	close(finished)
	w.spec.ToolExecution = engine.ToolsParallel
	res := w.runCtx(ctx, engine.Prompt("go"))
	require.Equal(t, phase.ReasonCancelled, res.Reason)
	require.Equal(t, []string{"c1 ok", "c2 cancelled"}, gbOutcomes(w.results()))
	require.Equal(t, phase.ReasonNatural, w.say("go on").Reason)
}

// No body starts once the run was cancelled, wherever that happened: in a gate, in
// a hook before the body, or in the model.
func TestNoBodyStartsAfterACancellation(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for _, where := range []string{"gate", "before", "after inference", "model"} {
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				tool := gbToolOf("t", nil)
				at := func(here string) {
					if here == where {
						cancel()
					}
				}
				w := gbNew(t, engine.Config{
					Model: gbScript(func(ctx context.Context, r inference.Request) (inference.Response, error) {
						at("model")
						return gbAsk(gbFive()...)(ctx, r)
					}),
					Plugins: []engine.Plugin{
						gbTools(tool),
						gbGate("g", func(context.Context, *phase.Context) (gate.Decision, error) { at("gate"); return gate.Approve(), nil }),
						gbHook("b", phase.BeforeToolExecute, func(context.Context, *phase.Context) (phase.Command, error) {
							at("before")
							return phase.Command{}, nil
						}),
						gbHook("a", phase.AfterInference, func(context.Context, *phase.Context) (phase.Command, error) {
							at("after inference")
							return phase.Command{}, nil
						}),
					},
				})
				w.spec.ToolExecution = exec
				res := w.runCtx(ctx, engine.Prompt("go"))
				require.Equal(t, phase.ReasonCancelled, res.Reason)
				require.Zero(t, tool.ran(), where)
				for _, r := range w.results() {
					require.Equal(t, inference.OutcomeNotRun, r.Outcome, where)
				}
				gbPaired(t, w.messages())
				cancel()
			}
		}
	}
}

// Capability G1. A model that hangs past the cancellation is left behind: the run
// returns at once, the hooks after the model and of the end run, and what the model says
// later goes nowhere.
func TestModelThatHangsPastCancel(t *testing.T) {
	for _, stream := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		release, answered := make(chan struct{}), make(chan struct{})
		script := gbScript(func(context.Context, inference.Request) (inference.Response, error) {
			cancel()
			<-release
			defer close(answered)
			return inference.Response{Message: inference.Assistant("too late")}, nil
		})
		var model inference.Model = script
		if stream {
			model = gbStreamer{script}
		}
		log := &gbLog{}
		w := gbNew(t, engine.Config{Model: model, Stream: stream, Plugins: []engine.Plugin{gbProbe(log)}})
		res := w.runCtx(ctx, engine.Prompt("go"))
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		require.Equal(t, []string{"run_start", "step_start", "before_inference", "after_inference", "run_end"}, log.all())
		events := len(w.events.all())
		close(release)
		<-answered
		require.Equal(t, []string{"go"}, gbTexts(w.messages()))
		require.Len(t, w.events.all(), events)
	}
}

// A context that is dead from the start: nothing is asked, RunEnd fires, and the
// result says so.
func TestCancelledBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log := &gbLog{}
	model := gbScript()
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbProbe(log)}})
	res := w.runCtx(ctx, engine.Prompt("go"))
	require.Equal(t, phase.ReasonCancelled, res.Reason)
	require.Empty(t, model.sent())
	require.Len(t, gbLines(log.all(), "run_end"), 1)
	require.Equal(t, phase.ReasonNatural, w.say("go").Reason)
}

// RunEnd has its own time: a hook that hangs there is given up on after the grace,
// and so is a slow hook in a cancelled run.
func TestRunEndHasAGraceLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := gbNew(t, engine.Config{
			Model: gbScript(), Limits: engine.Limits{Grace: time.Second},
			Plugins: []engine.Plugin{
				gbHook("canceller", phase.StepStart, func(context.Context, *phase.Context) (phase.Command, error) {
					cancel()
					return phase.Command{}, nil
				}),
				gbHook("slow", phase.RunEnd, func(ctx context.Context, _ *phase.Context) (phase.Command, error) {
					<-ctx.Done()
					return phase.Command{}, ctx.Err()
				}),
				gbHook("other", phase.RunEnd, func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, nil }),
			},
		})
		start := time.Now()
		res := w.runCtx(ctx, engine.Prompt("go"))
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		require.Equal(t, phase.Done, res.Status)
		require.LessOrEqual(t, time.Since(start), 2*time.Second)
		require.ErrorContains(t, res.Err, "slow")
	})
}

// Cancelling at any commit of a run leaves a thread whose history is whole and
// which takes another run.
func TestCancelAtEveryCommit(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for at := uint64(1); ; at++ {
			ctx, cancel := context.WithCancel(t.Context())
			log := &gbLog{}
			w := gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbFive()[:2]...)),
				Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil)), gbProbe(log), gbVote("ask", gate.Ask(gate.Ticket{Default: gate.DefaultYes}))},
			})
			w.spec.ToolExecution = exec
			stop := w.thread.Subscribe(func(c state.Commit) {
				if c.Revision == at {
					cancel()
				}
			})
			res := w.runCtx(ctx, engine.Prompt("go"))
			stop()
			name := fmt.Sprintf("%s, revision %d", exec, at)
			require.Equal(t, phase.Done, res.Status, name)
			require.Len(t, gbLines(log.all(), "run_end"), 1, name)
			gbPaired(t, w.messages())
			for _, c := range engine.ToolCalls.All(w.thread.Snapshot()) {
				require.True(t, c.Settled, name)
				require.True(t, c.Status.Ended(), name)
			}
			require.Equal(t, phase.ReasonNatural, w.say("again").Reason, name)
			cancel()
			if res.Reason == phase.ReasonNatural {
				require.Greater(t, at, uint64(10))
				break
			}
			require.Equal(t, phase.ReasonCancelled, res.Reason, name)
		}
	}
}
