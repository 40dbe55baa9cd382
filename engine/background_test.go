package engine_test

import (
	"context"
	"fmt"
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
	"github.com/ddd26017/fixpoint/state"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// gbAway is a call that sends the worker off to the background.
func gbAway(id, input string) inference.ToolCall {
	return gbCall(id, "delegate_to_worker", inference.JSON(fmt.Sprintf(`{"input":%q,"background":true}`, input)))
}

// gbWorker answers after a time that its task names, such as "3s".
func gbWorker(ctx context.Context, r inference.Request) (inference.Response, error) {
	d, err := time.ParseDuration(r.Messages[0].Text)
	if err != nil {
		return inference.Response{}, err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return inference.Response{}, context.Cause(ctx)
	}
	return inference.Response{Message: inference.Assistant("after " + r.Messages[0].Text), Usage: inference.Usage{InputTokens: 10}}, nil
}

// gbLater is a step that takes a second.
func gbLater(step gbStep) gbStep {
	return func(ctx context.Context, r inference.Request) (inference.Response, error) {
		time.Sleep(time.Second)
		return step(ctx, r)
	}
}

// gbBackground is a world whose boss says the steps, with a tool that takes a second.
func gbBackground(t testing.TB, change func(*engine.Config), steps ...gbStep) *gbWorld {
	c := gbBoss(inference.ModelFunc(gbWorker))
	c.Model = gbScript(steps...)
	c.Plugins = []engine.Plugin{gbTools(gbToolOf("second", func(ctx context.Context, _ *phase.Context) (engine.Output, error) {
		select {
		case <-time.After(time.Second):
			return engine.Text("a second passed"), nil
		case <-ctx.Done():
			return engine.Output{}, ctx.Err()
		}
	}))}
	if change != nil {
		change(&c)
	}
	w := gbNew(t, c)
	w.spec.Delegates = []string{"worker"}
	return w
}

// gbArrived lists the answers from the background that the transcript has, with the
// number of the message that each is.
func gbArrived(w *gbWorld) (out []string) {
	for i, m := range w.messages() {
		if m.Role == inference.RoleUser && strings.HasPrefix(m.Text, "Agent ") {
			call := strings.Fields(strings.TrimSuffix(strings.SplitN(m.Text, ",", 3)[1], ","))
			_, text, _ := strings.Cut(m.Text, "\n")
			out = append(out, fmt.Sprintf("%d %s: %s", i, call[len(call)-1], text))
		}
	}
	return out
}

// Capability A18. A delegate in the background works while its boss does. Its answer
// arrives as a message at the beginning of the step after it was done, those of several
// in the order in which they were sent off; its tokens are the boss's.
func TestBackgroundDelegatesAnswerAtBoundaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		second := gbAsk(gbCall("s", "second", ""))
		w := gbBackground(t, nil,
			gbAsk(gbAway("d1", "1500ms"), gbAway("d2", "500ms"), gbAway("d3", "700ms")), second, second, gbSay("that is all"))
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.Equal(t, 2*time.Second, time.Since(start), "nobody waited for them")
		require.EqualValues(t, 30, res.Usage.Total())
		require.Contains(t, w.results()[0].Content, "in the background")
		require.Equal(t, inference.OutcomeOK, w.results()[0].Outcome)
		require.Equal(t, []string{
			"7 d2: after 500ms", "8 d3: after 700ms", // behind the second's result: user, asks, 3 results, ask, result
			"11 d1: after 1500ms",
		}, gbArrived(w))
		require.Equal(t, "that is all", res.Text)

		// Who listens hears each of them as a whole when it arrives.
		var runs []string
		for i, e := range w.events.all() {
			require.Equal(t, uint64(i+1), e.Head().Seq)
			if id := e.Head().Run; len(runs) == 0 || runs[len(runs)-1] != id {
				runs = append(runs, id)
			}
		}
		require.Equal(t, []string{"id-1", "id-1/1/d2", "id-1/1/d3", "id-1", "id-1/1/d1", "id-1"}, runs)
	})
}

// A boss that has nothing else to do waits for its delegates, and gets another step.
func TestRunWaitsForItsBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w := gbBackground(t, nil, gbAsk(gbAway("d1", "5s"), gbAway("d2", "3s")), gbSay("I wait"), gbSay("thanks"))
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Equal(t, "thanks", res.Text)
		require.Equal(t, 3, res.Steps)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, []string{"5 d1: after 5s", "6 d2: after 3s"}, gbArrived(w))
	})
}

// Delegates in the background may send off others, which are theirs.
func TestBackgroundDelegatesOfADelegate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gbBackground(t, func(c *engine.Config) {
			c.Models["middle"] = gbScript(gbLater(gbAsk(gbAway("m1", "2s"))), gbSay("I wait"), gbSay("the worker is done"))
			c.Agents = append(c.Agents, engine.AgentSpec{ID: "middle", ModelID: "middle", Delegates: []string{"worker"}})
		}, gbAsk(gbCall("d1", "delegate_to_middle", `{"input":"see to it","background":true}`)), gbSay("I wait"), gbSay("thanks"))
		w.spec.Delegates = []string{"middle"}
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Equal(t, []string{"4 d1: the worker is done"}, gbArrived(w))
		require.EqualValues(t, 10, res.Usage.Total())
	})
}

// However a delegate in the background ends, the boss hears of it.
func TestBackgroundDelegatesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		worker gbStep
		text   string
	}{
		"error": {gbFail(fmt.Errorf("503")), "agent worker failed: engine: the model failed: 503"},
		"panic": {func(context.Context, inference.Request) (inference.Response, error) { panic("worker broke") }, "worker broke"},
		"hangs": {func(ctx context.Context, _ inference.Request) (inference.Response, error) {
			<-ctx.Done()
			return inference.Response{}, ctx.Err()
		}, "timed out after 1m0s"},
		"waits": {gbAsk(gbCall("c", "ask", "")), "waits for an answer that nobody is there to give"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := gbBackground(t, func(config *engine.Config) {
					config.Limits.DelegateTimeout = time.Minute
					config.Models["worker"] = gbScript(gbLater(c.worker))
					config.Plugins = append(config.Plugins, gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
						if pc.Call().Name == "ask" {
							return gate.Suspend(gate.Ticket{}), nil
						}
						return gate.Abstain(), nil
					}))
				}, gbAsk(gbAway("d1", "1s")), gbSay("I wait"), gbSay("thanks"))
				res := w.say("go")
				require.NoError(t, res.Err)
				require.Equal(t, "thanks", res.Text)
				require.Len(t, gbArrived(w), 1)
				require.Contains(t, gbArrived(w)[0], c.text)
			})
		})
	}
}

// A run that ends takes its background with it: cancelled, with an end of their own,
// told of and paid for, and without a goroutine left.
func TestBackgroundEndsWithItsRun(t *testing.T) {
	for _, how := range []string{"stopped", "cancelled", "timeout", "error", "blocked"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				ends := &gbLog{}
				w := gbBackground(t, func(c *engine.Config) {
					c.Limits.Grace = time.Second
					c.Plugins = append(c.Plugins,
						gbHook("ends", phase.RunEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
							ends.add("%s %s", pc.Agent().ID, phase.RunLifecycle.Get(pc.Snapshot()).Reason)
							return phase.Command{}, nil
						}),
						gbHook("fault", phase.StepStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
							switch {
							case pc.Agent().ID == "worker" || pc.Run().Step < 3:
							case how == "error":
								err = fmt.Errorf("a hook failed")
							case how == "blocked":
								cmd.EndRun(phase.ReasonBlocked, "that is it")
							case how == "cancelled":
								cancel()
							}
							return cmd, err
						}))
				}, gbAsk(gbAway("d1", "0s"), gbAway("d2", "100h")), gbAsk(gbCall("s", "second", "")), gbAsk(gbCall("s", "second", "")))
				switch how {
				case "stopped":
					w.spec.StopConditions = []engine.StopCondition{engine.StopAfterRounds(2)}
				case "timeout":
					w.spec.StopConditions = []engine.StopCondition{engine.StopAfter(1500 * time.Millisecond)}
				}
				res := w.runCtx(ctx, engine.Prompt("go"))
				require.NotEqual(t, phase.ReasonNatural, res.Reason)
				require.EqualValues(t, 10, res.Usage.Total(), "of the one that was done")
				recalled := phase.ReasonCancelled
				if how == "timeout" {
					recalled = phase.ReasonTimeout // the boss's time is the worker's
				}
				require.Equal(t, []string{"worker natural", "worker " + string(recalled), "agent " + string(res.Reason)}, ends.all())
				require.Len(t, gbOf[engine.RunFinished](w.events), 3)
				warned := false
				for _, e := range gbOf[engine.Warning](w.events) {
					warned = warned || strings.Contains(e.Message, "call d2") && strings.Contains(e.Message, "interrupted")
				}
				require.True(t, warned, "%v", gbOf[engine.Warning](w.events))
				require.NotContains(t, gbExport(t, w), "d2", "state knows of no work that nobody does")
				synctest.Wait()
			})
		})
	}
}

// gbExport is the part of the thread's state that tells who works in the background.
func gbExport(t testing.TB, w *gbWorld) string {
	dump, err := w.thread.Export()
	require.NoError(t, err)
	for _, e := range dump.Entries {
		if e.Name == "fixpoint.background" {
			return string(e.Raw)
		}
	}
	return ""
}

// A run that begins to wait has nobody at work: it waits for its background before, and
// the answers are there when it goes on, in whatever process.
func TestRunThatWaitsHasNoBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, store := time.Now(), memstore.New(memstore.Options{})
		config := func(c *engine.Config) {
			c.Journal = store
			c.Plugins = append(c.Plugins, gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().Name == "second" {
					return gate.Suspend(gate.Ticket{}), nil
				}
				return gate.Abstain(), nil
			}))
		}
		steps := []gbStep{gbAsk(gbAway("d1", "3s"), gbCall("s", "second", "")), gbSay("thanks")}
		w := gbBackground(t, config, steps...)
		res := w.say("go")
		require.Equal(t, phase.Waiting, res.Status)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Len(t, gbOf[engine.RunFinished](w.events), 1, "the worker's")

		again := gbBackground(t, config, steps...)
		th, err := again.engine.OpenThread(t.Context(), "thread")
		require.NoError(t, err)
		again.thread = th
		done, err := th.Resume(t.Context(), w.spec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
		require.NoError(t, err)
		require.NoError(t, done.Err)
		require.Equal(t, "thanks", done.Text)
		require.Equal(t, []string{"4 d1: after 3s"}, gbArrived(again))
		require.EqualValues(t, 10, done.Usage.Total())
	})
}

// What worked in the background of a process that ended is lost, and the run that goes on
// elsewhere is told.
func TestBackgroundIsLostWithItsProcess(t *testing.T) {
	for _, last := range []bool{false, true} {
		t.Run(fmt.Sprint("in the last step ", last), func(t *testing.T) {
			gbNoLeaks(t)
			ctx, kill := context.WithCancel(t.Context())
			store := memstore.New(memstore.Options{})
			asked := make(chan struct{})
			hang := func(ctx context.Context, _ inference.Request) (inference.Response, error) {
				close(asked)
				<-ctx.Done()
				return inference.Response{}, ctx.Err()
			}
			first := gbBackground(t, func(c *engine.Config) {
				c.Journal = store
				c.Models["worker"] = inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
					<-ctx.Done()
					return inference.Response{}, ctx.Err()
				})
			}, gbAsk(gbAway("d1", "x")), hang)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = first.thread.Run(ctx, first.spec, engine.Prompt("go"))
			}()
			<-asked

			steps := []gbStep{gbAsk(gbAway("d1", "x")), gbAsk(gbCall("s", "later", "")), gbSay("then without"), gbSay("really")}
			if last {
				steps = []gbStep{steps[0], gbSay("I wait"), gbSay("then without")}
			}
			second := gbBackground(t, func(c *engine.Config) {
				c.Journal = store
				c.Plugins = []engine.Plugin{gbTools(gbToolOf("later", nil))}
			}, steps...)
			th, err := second.engine.OpenThread(t.Context(), "thread")
			require.NoError(t, err)
			second.thread = th
			res, err := th.Resume(t.Context(), first.spec, engine.Input{})
			require.NoError(t, err)
			require.NoError(t, res.Err)
			require.Equal(t, "then without", res.Text)
			require.Len(t, gbArrived(second), 1)
			require.Contains(t, gbArrived(second)[0], "d1: error: it was lost when its process ended")
			kill()
			<-ended
		})
	}
}

// Fault B17. Report 6. The parent's gates hold in the background too, and so does what
// they decide when the parent has gone on.
func TestBackgroundUnderTheParentsGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := gbToolOf("wipe", nil)
		seen := &gbLog{}
		w := gbBackground(t, func(c *engine.Config) {
			c.Models["worker"] = gbScript(gbLater(gbAsk(gbCall("w1", "wipe", ""))), gbSay("I could not"))
			c.Agents[0].PluginIDs = []string{"tools", "wiping"}
			c.Plugins = append(c.Plugins,
				engine.NewPlugin("wiping", func(r *engine.Registrar) error { r.Tool(tool); return nil }),
				gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					if pc.Call().Name == "wipe" {
						seen.add("%s", pc.Call().ID)
						return gate.Block("never"), nil
					}
					return gate.Abstain(), nil
				}))
		}, gbAsk(gbAway("d1", "wipe")), gbSay("I wait"), gbSay("thanks"))
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Zero(t, tool.ran())
		require.Equal(t, []string{"w1"}, seen.all())
		require.Equal(t, []string{"4 d1: I could not"}, gbArrived(w))
	})
}

// A gate on actions has a say in what arrives: it is context that is added.
func TestArrivalsPassActionGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gbBackground(t, func(c *engine.Config) {
			c.Plugins = append(c.Plugins, engine.NewPlugin("guard", func(r *engine.Registrar) error {
				r.ActionGate(gate.OnAction(engine.AddContext, func(_ context.Context, _ *phase.Context, args engine.ContextArgs) (gate.Ruling, error) {
					if strings.Contains(args.Message.Text, "after 1s") {
						return gate.Cancel("not from there"), nil
					}
					return gate.Ruling{}, nil
				}))
				return nil
			}))
		}, gbAsk(gbAway("d1", "1s"), gbAway("d2", "2s")), gbSay("I wait"), gbSay("thanks"))
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Equal(t, []string{"5 d2: after 2s"}, gbArrived(w))
	})
}

// One run has only so many delegates at work. Who comes too late is told, in call order
// whatever the timing, and may come again.
func TestFanOut(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		synctest.Test(t, func(t *testing.T) {
			w := gbBackground(t, func(c *engine.Config) { c.Limits.FanOut = 2 },
				gbAsk(gbAway("d1", "1500ms"), gbCall("d2", "delegate_to_worker", `{"input":"1s"}`), gbCall("d3", "delegate_to_worker", `{"input":"0s"}`), gbAway("d4", "0s")),
				gbAsk(gbCall("s", "second", "")),
				gbAsk(gbAway("d5", "1s"), gbAway("d6", "1s"), gbAway("d7", "1s")),
				gbSay("I wait"), gbSay("thanks"))
			w.spec.ToolExecution = exec
			res := w.say("go")
			require.NoError(t, res.Err)
			var refused []string
			for _, r := range w.results() {
				if r.IsError {
					require.Contains(t, r.Content, "2 delegates at work at the same time")
					refused = append(refused, r.CallID)
				}
			}
			if exec == engine.ToolsParallel {
				require.Equal(t, []string{"d3", "d4", "d7"}, refused)
			} else { // one after the other: d2 and d3 are over before the next begins
				require.Equal(t, []string{"d7"}, refused)
			}
		})
	}
}

// A token budget binds the delegates of the run that has it while they work: in turn,
// beside each other, in the background, and over several levels.
func TestBudgetBindsDelegates(t *testing.T) {
	spend := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		return inference.Response{
			Message: inference.Assistant("", gbCall(fmt.Sprint("w", len(r.Messages)), "noop", "")), Usage: inference.Usage{OutputTokens: 10},
		}, nil
	})
	call := func(id string, background bool) inference.ToolCall {
		return gbCall(id, "delegate_to_worker", inference.JSON(fmt.Sprintf(`{"input":"spend","background":%t}`, background)))
	}
	world := func(t *testing.T, steps ...gbStep) *gbWorld {
		return gbBackground(t, func(c *engine.Config) {
			c.Models["worker"] = spend
			c.Plugins = append(c.Plugins, engine.NewPlugin("noop", func(r *engine.Registrar) error {
				r.Tool(gbToolOf("noop", nil))
				return nil
			}))
			c.Agents[0].MaxRounds = 1000
			c.Models["middle"] = gbScript(gbAsk(call("m1", false)))
			c.Agents = append(c.Agents, engine.AgentSpec{ID: "middle", ModelID: "middle", Delegates: []string{"worker"}})
		}, steps...)
	}
	for name, c := range map[string]struct {
		calls []inference.ToolCall
		exec  engine.ToolExecution
		least int64
	}{
		"in turn":        {[]inference.ToolCall{call("d1", false), call("d2", false)}, engine.ToolsSequential, 100},
		"side by side":   {[]inference.ToolCall{call("d1", false), call("d2", false), call("d3", false)}, engine.ToolsParallel, 100},
		"background":     {[]inference.ToolCall{call("d1", true), call("d2", true)}, engine.ToolsSequential, 100},
		"several levels": {[]inference.ToolCall{gbCall("d1", "delegate_to_middle", `{"input":"x"}`)}, engine.ToolsSequential, 100},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, gbAsk(c.calls...), gbSay("I wait"))
			w.spec.Delegates = []string{"worker", "middle"}
			w.spec.ToolExecution = c.exec
			w.spec.StopConditions = []engine.StopCondition{engine.StopOverTokens(100)}
			res := w.say("go")
			require.NoError(t, res.Err)
			require.Equal(t, phase.ReasonTokenBudget, res.Reason)
			require.GreaterOrEqual(t, res.Usage.Total(), c.least)
			require.Less(t, res.Usage.Total(), c.least+10*int64(len(c.calls)), "each may be in the middle of an answer")
			for _, e := range gbOf[engine.RunFinished](w.events) {
				if e.Agent == "worker" && name != "background" {
					require.Equal(t, phase.ReasonTokenBudget, e.Reason)
				}
			}
			if name == "in turn" {
				require.Contains(t, w.results()[1].Content, "the token budget is used up: 100 of 100 tokens used")
			}
		})
	}
	t.Run("of the delegate alone", func(t *testing.T) {
		w := world(t, gbAsk(call("d1", false)), gbSay("thanks"))
		w.spec.StopConditions = []engine.StopCondition{engine.StopOverTokens(1000)}
		res := w.say("go")
		require.Equal(t, phase.ReasonTokenBudget, res.Reason)
		require.EqualValues(t, 1000, res.Usage.Total())
	})
}

// What a run spent before it waited still counts against the budget of those that work
// for it afterwards.
func TestBudgetBindsDelegatesAfterAResume(t *testing.T) {
	var answers atomic.Int64
	w := gbBackground(t, func(c *engine.Config) {
		c.Model = inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
			resp, err := gbScript(gbAsk(gbCall("s", "ask", "")), gbAsk(gbCall("d", "delegate_to_worker", `{"input":"x"}`))).Generate(ctx, r)
			resp.Usage.InputTokens = 40
			return resp, err
		})
		c.Models["worker"] = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			n := answers.Add(1)
			return inference.Response{Message: inference.Assistant("", gbCall(fmt.Sprint("n", n), "ask", "")), Usage: inference.Usage{InputTokens: 10}}, nil
		})
		c.Plugins = []engine.Plugin{gbTools(gbToolOf("ask", nil)), gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().ID == "s" {
				return gate.Suspend(gate.Ticket{}), nil
			}
			return gate.Abstain(), nil
		})}
	})
	w.spec.StopConditions = []engine.StopCondition{engine.StopOverTokens(100)}
	require.Equal(t, phase.Waiting, w.say("go").Status)
	res, err := w.thread.Resume(t.Context(), w.spec, engine.Input{}, engine.Decision{Answer: phase.Answer{Approved: true}})
	require.NoError(t, err)
	require.Equal(t, phase.ReasonTokenBudget, res.Reason)
	require.EqualValues(t, 2, answers.Load(), "80 were used, so the worker had 20")
}

// An agent that takes over gets what the former one's delegates found.
func TestBackgroundOutlivesAHandoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gbBackground(t, func(c *engine.Config) {
			c.Models["next"] = gbScript(gbSay(""), gbSay(""), gbSay("I have it"))
			c.Agents = append(c.Agents, engine.AgentSpec{ID: "next", ModelID: "next"})
			c.Plugins = append(c.Plugins, gbTools2("hand", gbToolOf("hand", func(context.Context, *phase.Context) (out engine.Output, err error) {
				out.Command.Update(engine.HandOff("next"))
				return out, nil
			})))
		}, gbAsk(gbAway("d1", "1s"), gbCall("h", "hand", "")))
		res := w.say("go")
		require.NoError(t, res.Err)
		require.Equal(t, "next", res.Agent)
		require.Equal(t, "I have it", res.Text)
		require.Len(t, gbArrived(w), 1)
	})
}

// gbTools2 is gbTools under another name.
func gbTools2(name string, tools ...engine.Tool) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error { r.Tool(tools...); return nil })
}

// A run that only waits for its background gives the same events and the same state,
// however long each of them takes.
func TestBackgroundIsDeterministic(t *testing.T) {
	var want []string
	var state0 state.Dump
	for i := range 12 {
		synctest.Test(t, func(t *testing.T) {
			w := gbBackground(t, func(c *engine.Config) {
				c.Models["worker"] = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
					var n int
					_, err := fmt.Sscanf(r.Messages[0].Text, "task %d", &n)
					time.Sleep(time.Duration(1+(n*7+i*5)%11) * time.Second)
					return inference.Response{Message: inference.Assistant(r.Messages[0].Text)}, err
				})
			}, gbAsk(gbAway("d1", "task 1"), gbAway("d2", "task 2"), gbAway("d3", "task 3")), gbSay("I wait"), gbSay("thanks"))
			res := w.say("go")
			require.NoError(t, res.Err)
			var lines []string
			for _, e := range w.events.all() {
				h := e.Head()
				lines = append(lines, fmt.Sprint(h.Run, " ", e.Type(), " ", h.Phase, " ", h.Revision))
			}
			dump, err := w.thread.Export()
			require.NoError(t, err)
			if want == nil {
				want, state0 = lines, dump
			}
			require.Equal(t, want, lines)
			require.Equal(t, state0, dump)
		})
	}
}

// Who ends a run from outside does not wait for all that its background might still do,
// be it that the run has nothing else to do or that it is about to wait for a person.
func TestEndFromOutsideReachesTheBackground(t *testing.T) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			calls, plugins := []inference.ToolCall{gbAway("d1", "100h")}, []engine.Plugin{}
			if asks {
				calls = append(calls, gbCall("s", "second", ""))
				plugins = append(plugins, gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					if pc.Call().Name == "second" {
						return gate.Suspend(gate.Ticket{}), nil
					}
					return gate.Abstain(), nil
				}))
			}
			w := gbBackground(t, func(c *engine.Config) { c.Plugins = append(c.Plugins, plugins...) }, gbAsk(calls...), gbSay("I wait"))
			time.AfterFunc(10*time.Second, func() {
				var end phase.Command
				end.EndRun(phase.ReasonBlocked, "enough")
				_, err := w.thread.Submit(context.Background(), "operator", end)
				require.NoError(t, err)
			})
			res := w.say("go")
			require.Equal(t, phase.Done, res.Status)
			require.Equal(t, "enough", res.Detail)
			require.Equal(t, 10*time.Second, time.Since(start))
			require.Len(t, gbOf[engine.RunFinished](w.events), 2)
		})
	}
}
