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

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// gbBusy is a model that asks for a tool in every step, each time with new
// arguments unless same is set.
func gbBusy(same bool, usage inference.Usage) inference.Model {
	return inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		args := "0"
		if !same {
			args = fmt.Sprint(len(r.Messages))
		}
		return inference.Response{Message: inference.Assistant("working", gbCall("c1", "t", inference.JSON(args))), Usage: usage}, nil
	})
}

// Capability A13. Every stop condition ends a run between two steps with its own
// reason, after the step that met it, and is no fault.
func TestStopConditions(t *testing.T) {
	usage := inference.Usage{InputTokens: 60, OutputTokens: 40, CachedTokens: 50}
	for _, c := range []struct {
		name   string
		model  inference.Model
		fail   bool
		stops  []engine.StopCondition
		max    int
		reason phase.Reason
		steps  int
	}{
		{"default", gbBusy(false, usage), false, nil, 0, phase.ReasonMaxRounds, engine.DefaultMaxRounds},
		{"max rounds of the spec", gbBusy(false, usage), false, nil, 3, phase.ReasonMaxRounds, 3},
		{"max rounds condition", gbBusy(false, usage), false, []engine.StopCondition{engine.StopAfterRounds(2)}, 3, phase.ReasonMaxRounds, 2},
		{"the lower one counts", gbBusy(false, usage), false, []engine.StopCondition{engine.StopAfterRounds(30)}, 3, phase.ReasonMaxRounds, 3},
		{"tokens", gbBusy(false, usage), false, []engine.StopCondition{engine.StopOverTokens(300)}, 0, phase.ReasonTokenBudget, 3},
		{"tokens, just above", gbBusy(false, usage), false, []engine.StopCondition{engine.StopOverTokens(301)}, 0, phase.ReasonTokenBudget, 4},
		{"tool errors in a row", gbBusy(false, usage), true, []engine.StopCondition{engine.StopOnErrors(3)}, 0, phase.ReasonConsecutiveErrors, 3},
		{"no errors", gbBusy(false, usage), false, []engine.StopCondition{engine.StopOnErrors(1)}, 4, phase.ReasonMaxRounds, 4},
		{"tool", gbScript(gbSay(""), gbAsk(gbCall("c", "x", ""))), false, nil, 0, phase.ReasonNatural, 1},
		{"on tool", gbBusy(false, usage), false, []engine.StopCondition{engine.StopOnTool("t")}, 0, phase.ReasonStopOnTool, 1},
		{"on another tool", gbBusy(false, usage), false, []engine.StopCondition{engine.StopOnTool("u")}, 2, phase.ReasonMaxRounds, 2},
		{"content", gbBusy(false, usage), false, []engine.StopCondition{engine.StopOnContent("(?i)WORK")}, 0, phase.ReasonContentMatch, 1},
		{"content of the last answer", gbScript(gbSay("bye")), false, []engine.StopCondition{engine.StopOnContent("^bye$")}, 0, phase.ReasonContentMatch, 1},
		{"no such content", gbBusy(false, usage), false, []engine.StopCondition{engine.StopOnContent("^work$")}, 2, phase.ReasonMaxRounds, 2},
		{"loop", gbBusy(true, usage), false, []engine.StopCondition{engine.StopOnLoop(0)}, 0, phase.ReasonLoop, engine.DefaultLoopRepeats},
		{"loop of 5", gbBusy(true, usage), false, []engine.StopCondition{engine.StopOnLoop(5)}, 0, phase.ReasonLoop, 5},
		{"no loop", gbBusy(false, usage), false, []engine.StopCondition{engine.StopOnLoop(2)}, 6, phase.ReasonMaxRounds, 6},
		{"the first that holds counts", gbBusy(true, usage), false, []engine.StopCondition{engine.StopOnTool("t"), engine.StopOnContent("work")}, 1, phase.ReasonStopOnTool, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &gbLog{}
			tool := gbToolOf("t", func(context.Context, *phase.Context) (engine.Output, error) {
				return engine.Output{IsError: c.fail}, nil
			})
			w := gbNew(t, engine.Config{Model: c.model, Plugins: []engine.Plugin{gbTools(tool, gbToolOf("u", nil)), gbProbe(log)}})
			w.spec.MaxRounds, w.spec.StopConditions = c.max, c.stops
			res := w.say("go")
			require.Equal(t, c.reason, res.Reason)
			require.Equal(t, c.steps, res.Steps)
			require.NoError(t, res.Err)
			require.Equal(t, phase.Done, res.Status)
			l := phase.RunLifecycle.Get(w.thread.Snapshot())
			require.LessOrEqual(t, l.Answered, l.Step, "a step whose model failed was not answered")
			require.Equal(t, phase.Lifecycle{Run: res.Run, Status: phase.Done, Step: c.steps, Answered: l.Answered, Ended: true, Reason: c.reason, Detail: res.Detail}, l)
			require.Len(t, gbLines(log.all(), "step_end"), c.steps)
			require.Len(t, gbLines(log.all(), "run_end"), 1)
			require.Equal(t, c.reason, gbOf[engine.RunFinished](w.events)[0].Reason)
			gbPaired(t, w.messages())
		})
	}
}

// A loop is found inside a window too: every other step the same call.
func TestLoopInAWindow(t *testing.T) {
	model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		n := len(r.Messages) / 2
		args := inference.JSON(fmt.Sprint(n))
		if n%2 == 0 {
			args = `"same"`
		}
		return inference.Response{Message: inference.Assistant("", gbCall("c1", "t", args))}, nil
	})
	for _, c := range []struct {
		stop  engine.StopCondition
		steps int
	}{
		{engine.StopCondition{Type: engine.StopTypeLoopDetection, Repeats: 3, Window: 5}, 5},
		{engine.StopOnLoop(2), 10},
	} {
		w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil))}})
		w.spec.MaxRounds, w.spec.StopConditions = 10, []engine.StopCondition{c.stop}
		require.Equal(t, c.steps, w.say("go").Steps)
	}
}

// Model failures count toward the limit of consecutive errors; a success in
// between starts the count again. The last failure is in the result.
func TestConsecutiveModelErrors(t *testing.T) {
	boom := errors.New("503")
	for _, c := range []struct {
		fails  []bool
		reason phase.Reason
		steps  int
	}{
		{[]bool{true, true, true}, phase.ReasonConsecutiveErrors, 3},
		{[]bool{true, true, false, true, true, true}, phase.ReasonConsecutiveErrors, 6},
		{[]bool{true, true, false, true, true, false, false}, phase.ReasonMaxRounds, 7},
	} {
		var n atomic.Int64
		model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			i := int(n.Add(1)) - 1
			if c.fails[i] {
				return inference.Response{}, boom
			}
			return inference.Response{Message: inference.Assistant("", gbCall("c", "t", inference.JSON(fmt.Sprint(i))))}, nil
		})
		w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil))}})
		w.spec.StopConditions, w.spec.MaxRounds = []engine.StopCondition{engine.StopOnErrors(3)}, len(c.fails)
		res := w.say("go")
		require.Equal(t, c.reason, res.Reason)
		require.Equal(t, c.steps, res.Steps)
		if c.reason == phase.ReasonConsecutiveErrors {
			require.ErrorIs(t, res.Err, boom)
		}
	}
}

// Capability A13. The time limit ends a run exactly when it passes, whatever hangs
// then; it is no cancellation and no fault.
func TestTimeLimit(t *testing.T) {
	for _, where := range []string{"model", "tool", "between steps", "hook"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &gbLog{}
				hang := func(name string) {
					if name == where {
						time.Sleep(time.Hour)
					}
				}
				tool := gbToolOf("t", func(context.Context, *phase.Context) (engine.Output, error) {
					hang("tool")
					if where == "between steps" {
						time.Sleep(400 * time.Millisecond)
					}
					return engine.Output{}, nil
				})
				busy := gbBusy(false, inference.Usage{})
				w := gbNew(t, engine.Config{
					Model: inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
						hang("model")
						return busy.Generate(ctx, r)
					}),
					Plugins: []engine.Plugin{gbTools(tool), gbProbe(log), gbHook("slow", phase.BeforeInference, func(context.Context, *phase.Context) (phase.Command, error) {
						hang("hook")
						return phase.Command{}, nil
					})},
				})
				w.spec.StopConditions = []engine.StopCondition{engine.StopAfter(time.Hour), engine.StopAfter(time.Second)}
				start := time.Now()
				res := w.say("go")
				require.Equal(t, time.Second, time.Since(start))
				require.Equal(t, phase.ReasonTimeout, res.Reason)
				require.NoError(t, res.Err)
				require.Len(t, gbLines(log.all(), "run_end"), 1)
				gbPaired(t, w.messages())
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// Capability M8. Report 12. A hook that always wishes to continue is granted as many
// times as the limit says, then the run ends with that reason; tool calls in between
// do not reset the count, and neither does any wording.
func TestContinueIsCapped(t *testing.T) {
	for _, limit := range []int{1, 3, 8} {
		var n atomic.Int64
		model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			if i := n.Add(1); i%2 == 1 {
				return inference.Response{Message: inference.Assistant("", gbCall("c", "t", inference.JSON(fmt.Sprint(i))))}, nil
			}
			return inference.Response{Message: inference.Assistant(fmt.Sprintf("finished, take %d", n.Load()))}, nil
		})
		w := gbNew(t, engine.Config{
			Model: model, Limits: engine.Limits{Continues: limit},
			Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil)), gbHook("pusher", phase.StepEnd, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				cmd.Continue("not good enough").Update(engine.Transcript.Append(inference.User("go on")))
				return cmd, nil
			})},
		})
		w.spec.MaxRounds = 1000
		res := w.say("go")
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.Contains(t, res.Detail, "limit")
		require.Equal(t, 2*(limit+1), res.Steps)
		granted := gbOf[engine.Continued](w.events)
		require.Len(t, granted, limit)
		for i, g := range granted {
			require.Equal(t, i+1, g.Count)
			require.Equal(t, "not good enough", g.Reason)
		}
		warnings := gbOf[engine.Warning](w.events)
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0].Message, "not good enough")
		require.Equal(t, limit, phase.RunLifecycle.Get(w.thread.Snapshot()).Resumed)
	}
}

// Capability M8. The added context is part of the next call. A wish is about its
// own step: one made in a step that was not the last has lapsed by then.
func TestContinueIsAboutItsOwnStep(t *testing.T) {
	model := gbScript(gbSay("first try"))
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbHook("check", phase.AfterInference, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		if pc.Run().Step == 1 {
			cmd.Continue("").Update(engine.Transcript.Append(inference.User("try harder")))
		}
		return cmd, nil
	})}})
	res := w.say("go")
	require.Equal(t, 2, res.Steps)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Empty(t, res.Detail)
	require.Equal(t, "try harder", model.sent()[1].Messages[2].Text)

	w = gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "t", ""))), Plugins: []engine.Plugin{
		gbTools(gbToolOf("t", nil)),
		gbHook("early", phase.StepEnd, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			if pc.Run().Step == 1 {
				cmd.Continue("only if step 1 were the last")
			}
			return cmd, nil
		}),
	}})
	res = w.say("go")
	require.Equal(t, 2, res.Steps)
	require.Empty(t, gbOf[engine.Continued](w.events))
}

// A wish at RunEnd has no effect: the end is the end.
func TestContinueAtRunEndHasNoEffect(t *testing.T) {
	log := &gbLog{}
	w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{gbProbe(log), gbHook("late", phase.RunEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
		cmd.Continue("please")
		return cmd, nil
	})}})
	res := w.say("go")
	require.Equal(t, 1, res.Steps)
	require.Len(t, gbLines(log.all(), "run_end"), 1)
	require.Equal(t, phase.ReasonNatural, w.say("more").Reason)
}

// Capability M8. Capability G1. The count of granted wishes is the run's: it is kept
// with the state, so a run that pauses and goes on in another process, from a checkpoint
// or from a journal, is not granted more.
func TestContinueIsCountedAcrossProcesses(t *testing.T) {
	const limit = 4
	model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		if r.Messages[len(r.Messages)-1].Role == inference.RoleTool {
			return inference.Response{Message: inference.Assistant("finished")}, nil
		}
		return inference.Response{Message: inference.Assistant("", gbCall("c", "t", ""))}, nil
	})
	config := func() engine.Config {
		return engine.Config{
			Model: model, Limits: engine.Limits{Continues: limit},
			Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil)), gbVote("asker", gate.Suspend(gate.Ticket{Message: "Go on?"})),
				gbHook("pusher", phase.StepEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
					cmd.Continue("not good enough")
					return cmd, nil
				})},
		}
	}
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("journal %t", kept), func(t *testing.T) {
			c := config()
			if kept {
				c.Journal = memstore.New(memstore.Options{})
			}
			w := gbNew(t, c)
			w.spec.MaxRounds = 1000
			res, granted, processes := w.say("go"), len(gbOf[engine.Continued](w.events)), 1
			for ; res.Status == phase.Waiting; processes++ {
				require.Less(t, processes, 100, "it goes on for ever")
				if kept {
					next := config()
					w.events = &gbEvents{}
					next.Journal, next.Observers = c.Journal, []engine.Observer{w.events}
					var err error
					w.thread, err = gaNew(t, next).OpenThread(t.Context(), "thread")
					require.NoError(t, err)
				} else {
					w = w.elsewhere(config())
				}
				res = w.resume(rsYes("c"))
				for _, g := range gbOf[engine.Continued](w.events) {
					granted++
					require.Equal(t, granted, g.Count)
				}
			}
			require.NoError(t, res.Err)
			require.Equal(t, phase.ReasonNatural, res.Reason)
			require.Contains(t, res.Detail, "limit")
			require.Equal(t, limit, granted)
			require.Equal(t, limit+2, processes)
		})
	}
}
