package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// gbKeys is a plugin that registers keys.
func gbKeys(keys ...state.AnyKey) engine.Plugin {
	return engine.NewPlugin("keys", func(r *engine.Registrar) error {
		r.Key(keys...)
		return nil
	})
}

// gbFive returns the calls c1 to c5 of the tool t, with the number as argument.
func gbFive() []inference.ToolCall {
	var calls []inference.ToolCall
	for i := 1; i <= 5; i++ {
		calls = append(calls, gbCall(fmt.Sprintf("c%d", i), "t", inference.JSON(fmt.Sprint(i))))
	}
	return calls
}

// Fault B04. Fault F28. Five tools run at the same time and finish in reverse
// order. All five keys are set, the counter is 5, and results and log are in call
// order.
func TestParallelToolsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := make([]state.Cell[int], 6)
		keys := []state.AnyKey{}
		for i := 1; i <= 5; i++ {
			values[i] = state.NewCell[int](fmt.Sprintf("t%d", i), state.Options[int]{Scope: state.ScopeThread})
			keys = append(keys, values[i])
		}
		done := state.NewCounter("done", state.Options[int64]{Scope: state.ScopeThread})
		order := state.NewLog("order", state.Options[int]{Scope: state.ScopeThread})
		finished := &gbLog{}
		tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
			var n int
			if err := pc.Call().Args.Decode(&n); err != nil {
				return out, err
			}
			time.Sleep(time.Duration(6-n) * time.Second)
			finished.add("%d", n)
			out.Command.Update(values[n].With(n), done.With(1), order.Append(n))
			out.Content = fmt.Sprint(done.Get(pc.Snapshot()))
			return out, nil
		})
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbFive()...)),
			Plugins: []engine.Plugin{gbTools(tool), gbKeys(append(keys, done, order)...)},
		})
		w.spec.ToolExecution = engine.ToolsParallel
		start := time.Now()
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Equal(t, 5*time.Second, time.Since(start), "they ran at the same time")
		require.Equal(t, []string{"5", "4", "3", "2", "1"}, finished.all())
		snap := w.thread.Snapshot()
		for i := 1; i <= 5; i++ {
			require.Equal(t, i, values[i].Get(snap))
		}
		require.Equal(t, int64(5), done.Get(snap))
		require.Equal(t, []int{1, 2, 3, 4, 5}, order.Get(snap).Slice())
		require.Equal(t, []string{"c1 ok", "c2 ok", "c3 ok", "c4 ok", "c5 ok"}, gbOutcomes(w.results()))
		for _, r := range w.results() {
			require.Equal(t, "0", r.Content, "all worked on one snapshot")
		}
		require.Empty(t, gbOf[engine.Conflict](w.events))
	})
}

// Fault B04. Two tools write one Exclusive key: the first in call order wins, the
// other is told that its changes were refused, and an event names both call ids.
// Nothing of the loser's command is kept.
func TestParallelToolsConflict(t *testing.T) {
	key := state.NewCell[int]("shared", state.Options[int]{Scope: state.ScopeThread})
	side := state.NewCounter("side", state.Options[int64]{Scope: state.ScopeThread})
	for range 20 {
		second := make(chan struct{})
		tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
			n := 1
			if pc.Call().ID == "c2" {
				n = 2
				close(second)
			} else {
				<-second
			}
			out.Command.Update(key.With(n), side.With(1))
			out.Content = "set"
			return out, nil
		})
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "t", ""), gbCall("c3", "other", ""))),
			Plugins: []engine.Plugin{gbTools(tool, gbToolOf("other", nil)), gbKeys(key, side)},
		})
		w.spec.ToolExecution = engine.ToolsParallel
		res := w.say("go")
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.Equal(t, 1, key.Get(w.thread.Snapshot()))
		require.Equal(t, int64(1), side.Get(w.thread.Snapshot()))
		require.Equal(t, []string{"c1 ok", "c2 error", "c3 ok"}, gbOutcomes(w.results()))
		require.Contains(t, w.results()[1].Content, "shared")
		conflicts := gbOf[engine.Conflict](w.events)
		require.Len(t, conflicts, 1)
		require.Equal(t, "call c1", conflicts[0].Winner)
		require.Equal(t, "call c2", conflicts[0].Loser)
		require.Equal(t, "refused", conflicts[0].Fate)
		require.Equal(t, "shared", conflicts[0].Key)
	}
}

// One after the other, the same tools do not conflict: each sees the state that
// the one before left.
func TestSequentialToolsSeeEachOther(t *testing.T) {
	key := state.NewCell[int]("shared", state.Options[int]{Scope: state.ScopeThread})
	tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
		out.Command.Update(key.With(key.Get(pc.Snapshot()) + 1))
		return out, nil
	})
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbFive()...)),
		Plugins: []engine.Plugin{gbTools(tool), gbKeys(key)},
	})
	w.say("go")
	require.Equal(t, 5, key.Get(w.thread.Snapshot()))
	require.Empty(t, gbOf[engine.Conflict](w.events))
}

// Report 18. One error and one block among five leave the other three alone, in order,
// parallel or not.
func TestOneFailureLeavesTheSiblingsAlone(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			if pc.Call().ID == "c2" {
				return engine.Output{}, errors.New("exit status 1")
			}
			return engine.Text("fine " + pc.Call().ID), nil
		})
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbFive()...)),
			Plugins: []engine.Plugin{gbTools(tool), gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().ID == "c4" {
					return gate.Block("no"), nil
				}
				return gate.Abstain(), nil
			})},
		})
		w.spec.ToolExecution = exec
		w.say("go")
		require.Equal(t, []string{"c1 ok", "c2 error", "c3 ok", "c4 blocked", "c5 ok"}, gbOutcomes(w.results()))
		require.Equal(t, "fine c5", w.results()[4].Content)
		require.Equal(t, 4, tool.ran())
	}
}

// Fault F30. A call that waits does not drop the decisions about later calls.
func TestWaitingCallDoesNotDropLaterOnes(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		tool := gbToolOf("t", nil)
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbFive()...)),
			Plugins: []engine.Plugin{gbTools(tool), gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				switch pc.Call().ID {
				case "c1":
					return gate.Suspend(gate.Ticket{}), nil
				case "c3":
					return gate.Block("no"), nil
				case "c4":
					return gate.SetResult(inference.ToolResult{Content: "cached"}), nil
				}
				return gate.Abstain(), nil
			})},
		})
		w.spec.ToolExecution = exec
		res := w.say("go")
		require.Equal(t, phase.Waiting, res.Status)
		require.Equal(t, []string{"c2 ok", "c3 blocked", "c4 substituted", "c5 ok"}, gbOutcomes(w.results()))
	}
}

// The limit on concurrency holds for tools.
func TestToolConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		tool := gbToolOf("t", func(context.Context, *phase.Context) (engine.Output, error) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return engine.Output{}, nil
		})
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbFive()...)), Plugins: []engine.Plugin{gbTools(tool)}, Limits: engine.Limits{Concurrency: 2},
		})
		w.spec.ToolExecution = engine.ToolsParallel
		w.say("go")
		require.Equal(t, int64(2), most.Load())
	})
}

// Commands of parallel tools carry actions and effects too, in call order.
func TestParallelToolsScheduleAndEmit(t *testing.T) {
	ping := effects.NewSpec[string]("gb.ping")
	note := phase.NewAction[string]("gb.note", phase.AfterToolExecute)
	log := &gbLog{}
	tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
		out.Command.Emit(ping.New(pc.Call().ID)).Schedule(note.New(pc.Call().ID))
		return out, nil
	})
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbFive()[:3]...)),
		Plugins: []engine.Plugin{gbTools(tool), engine.NewPlugin("handlers", func(r *engine.Registrar) error {
			r.Effect(ping.Handle(func(_ context.Context, _ *state.Snapshot, id string) error {
				log.add("effect %s", id)
				return nil
			}))
			r.Action(note.Handle(func(_ context.Context, pc *phase.Context, id string) (phase.Command, error) {
				log.add("action %s at %s", id, pc.Phase())
				return phase.Command{}, nil
			}))
			return nil
		})},
	})
	w.spec.ToolExecution = engine.ToolsParallel
	w.say("go")
	require.Equal(t, []string{
		"effect c1", "effect c2", "effect c3",
		"action c1 at after_tool_execute", "action c2 at after_tool_execute", "action c3 at after_tool_execute",
	}, log.all())
}
