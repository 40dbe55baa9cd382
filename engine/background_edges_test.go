package engine_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
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

// A run that waited for its background looks at its budget before it asks the model again.
func TestBudgetIsLookedAtAfterTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		w := gbBackground(t, func(c *engine.Config) {
			script := c.Model
			c.Model = inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
				asked.Add(1)
				return script.Generate(ctx, r)
			})
		}, gbAsk(gbAway("d1", "3s")), gbSay("I wait"), gbSay("thanks"))
		w.spec.StopConditions = []engine.StopCondition{engine.StopOverTokens(10)}
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Equal(t, phase.ReasonTokenBudget, res.Reason)
		require.EqualValues(t, 2, asked.Load(), "nothing was left to ask with")
		require.EqualValues(t, 10, res.Usage.Total())
	})
}

// A run in its last step has no other one that could see what its background finds: it
// ends at once.
func TestLastStepDoesNotWaitForTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w := gbBackground(t, nil, gbAsk(gbAway("d1", "5h")), gbSay("I wait"), gbSay("thanks"))
		w.spec.MaxRounds = 2
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Equal(t, phase.ReasonMaxRounds, res.Reason)
		require.Less(t, time.Since(start), time.Minute)
		require.Zero(t, res.Stats.DeadLetters)
	})
}

// A budget cannot be escaped by a model that claims more than there are numbers.
func TestBudgetOfDelegatesDoesNotOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		w := gbBackground(t, func(c *engine.Config) {
			c.Models["worker"] = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
				asked.Add(1)
				time.Sleep(time.Second)
				u := inference.Usage{InputTokens: math.MaxInt64}
				return inference.Response{Message: inference.Assistant("", gbCall(fmt.Sprint("w", len(r.Messages)), "nothing", "")), Usage: u}, nil
			})
			c.Agents[0].MaxRounds = 5
		}, gbAsk(gbAway("d1", "x"), gbAway("d2", "x")), gbSay("I wait"))
		w.spec.StopConditions = []engine.StopCondition{engine.StopOverTokens(100)}
		res := w.say("go")
		require.Equal(t, phase.ReasonTokenBudget, res.Reason)
		require.EqualValues(t, 2, asked.Load())
	})
}

// What a hook spent counts against the budget of delegates too.
func TestBudgetOfDelegatesCountsWhatHooksSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		w := gbBackground(t, func(c *engine.Config) {
			c.Models["worker"] = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
				asked.Add(1)
				time.Sleep(time.Second)
				return inference.Response{Message: inference.Assistant("", gbCall(fmt.Sprint("w", len(r.Messages)), "nothing", "")), Usage: inference.Usage{InputTokens: 10}}, nil
			})
			c.Agents[0].MaxRounds = 50
			c.Plugins = append(c.Plugins, gbHook("spends", phase.StepStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				if pc.Agent().ID == "agent" && pc.Run().Step == 1 {
					cmd.Update(engine.Usage.With(inference.Usage{InputTokens: 80}))
				}
				return cmd, nil
			}))
		}, gbAsk(gbAway("d1", "x")), gbSay("I wait"))
		w.spec.StopConditions = []engine.StopCondition{engine.StopOverTokens(100)}
		res := w.say("go")
		require.Equal(t, phase.ReasonTokenBudget, res.Reason)
		require.EqualValues(t, 2, asked.Load())
	})
}

// A hook that ends the goroutine of a delegate fails that delegate, however it is at work,
// and what the delegate cost counts.
func TestDelegateThatEndsItsGoroutine(t *testing.T) {
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprint("background ", background), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := func(id string) inference.ToolCall {
					return gbCall(id, "delegate_to_worker", inference.JSON(fmt.Sprintf(`{"input":"1s","background":%t}`, background)))
				}
				w := gbBackground(t, func(c *engine.Config) {
					c.Plugins = append(c.Plugins, gbHook("exits", phase.AfterInference, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
						if pc.Agent().ID == "worker" {
							runtime.Goexit()
						}
						return phase.Command{}, nil
					}))
				}, gbAsk(call("d1"), call("d2")), gbSay("I wait"), gbSay("thanks"))
				w.spec.ToolExecution = engine.ToolsParallel
				res := w.say("go")
				require.NoError(t, res.Err)
				if background {
					require.Len(t, gbArrived(w), 2)
					require.Contains(t, gbArrived(w)[0], "goroutine")
				} else {
					require.Equal(t, []string{"d1 error", "d2 error"}, gbOutcomes(w.results()))
					require.Contains(t, w.results()[0].Content, "goroutine")
				}
				require.EqualValues(t, 20, res.Usage.Total())
			})
		})
	}
}

// A process may die at any commit of a run that has delegates in the background: the run
// goes on elsewhere to its end, each of them is heard of once, and none is paid for twice.
func TestBackgroundSurvivesCrashes(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for n := 0; n < 60; n++ {
			died := false
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New(memstore.Options{})
				life := func(appends int) (*gbWorld, bool) {
					c := gbBoss(inference.ModelFunc(gbWorker))
					second := gbAsk(gbCall("s", "second", ""))
					c.Model = gbScript(gbAsk(gbAway("d", "1500ms"), gbAway("e", "100ms")), second, second, gbAsk(gbAway("d", "1s"), gbCall("f", "delegate_to_worker", `{"input":"1s"}`), gbCall("hold", "ask", "")), gbSay("I wait"))
					c.Plugins = []engine.Plugin{gbTools(gbToolOf("ask", nil), gbToolOf("second", func(context.Context, *phase.Context) (engine.Output, error) {
						time.Sleep(time.Second)
						return engine.Text("ok"), nil
					})), gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
						if pc.Call().Name == "ask" {
							return gate.Ask(gate.Ticket{Message: "Really?"}), nil
						}
						return gate.Abstain(), nil
					})}
					return beLife(t, c, store, appends, exec)
				}
				w, done := life(n)
				died = !done
				if !done {
					w, done = life(-1)
					require.True(t, done)
				}
				l := phase.RunLifecycle.Get(w.thread.Snapshot())
				require.Equal(t, phase.ReasonNatural, l.Reason, l.Detail)
				require.NotContains(t, gbExport(t, w), "agent")
				// One answer for each call that was sent off.
				sent, arrived := 0, gbArrived(w)
				for _, r := range w.results() {
					if strings.Contains(r.Content, "works in the background") {
						sent++
					}
				}
				require.Len(t, arrived, sent, "%v", arrived)
				used := engine.Usage.Get(w.thread.Snapshot()).Total()
				require.LessOrEqual(t, used, int64(40))
				if !died {
					require.EqualValues(t, 40, used)
				}
			})
			if !died {
				break
			}
		}
	}
}

// beLife is tkLife with delegates and one answer to every question.
func beLife(t testing.TB, c engine.Config, store *memstore.Store, appends int, exec engine.ToolExecution) (w *gbWorld, done bool) {
	journal := &tkDying{Store: store, left: appends}
	c.Journal = journal
	c.NewID = nil
	w = gbNew(t, c)
	w.spec.Delegates, w.spec.ToolExecution = []string{"worker"}, exec
	var err error
	w.thread, err = w.engine.OpenThread(t.Context(), "thread")
	require.NoError(t, err)
	for n := 0; n < 20; n++ {
		switch phase.RunLifecycle.Get(w.thread.Snapshot()).Status {
		case phase.Created:
			_, err = w.thread.Run(t.Context(), w.spec, engine.Prompt("go"))
		case phase.Running:
			_, err = w.thread.Resume(t.Context(), w.spec, engine.Input{})
		case phase.Waiting:
			_, err = w.thread.Resume(t.Context(), w.spec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
		default:
			return w, !journal.dead
		}
		if journal.dead {
			return w, false
		}
		require.NoError(t, err)
	}
	t.Fatal("the run does not come to an end")
	return nil, false
}

// A run that was to end when its process did knows of no work that nobody does.
func TestEndedRunOfADeadProcessHasNoBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		var first *gbWorld
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		first = gbBackground(t, func(c *engine.Config) { c.Journal = store },
			gbAsk(gbAway("d1", "100h")), gbAsk(gbCall("s", "second", "")))
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = first.thread.Run(ctx, first.spec, engine.Prompt("go")) }()
		time.Sleep(500 * time.Millisecond)
		var end phase.Command
		end.EndRun(phase.ReasonBlocked, "enough")
		_, err := first.thread.Submit(t.Context(), "operator", end)
		require.NoError(t, err)

		second := gbBackground(t, func(c *engine.Config) { c.Journal = store })
		second.thread, err = second.engine.OpenThread(t.Context(), "thread")
		require.NoError(t, err)
		res, err := second.thread.Resume(t.Context(), second.spec, engine.Input{})
		require.NoError(t, err)
		require.NoError(t, res.Err)
		require.Equal(t, phase.Done, res.Status)
		require.NotContains(t, gbExport(t, second), "d1")
		kill()
		<-ended
	})
}
