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

// gbBoss is an engine configuration with a boss that delegates once to a worker
// with its own model.
func gbBoss(worker inference.Model, calls ...inference.ToolCall) engine.Config {
	if calls == nil {
		calls = []inference.ToolCall{gbCall("d1", "delegate_to_worker", `{"input":"do it"}`)}
	}
	return engine.Config{
		Model:  gbScript(gbAsk(calls...)),
		Models: map[string]inference.Model{"worker": worker},
		Agents: []engine.AgentSpec{{ID: "worker", Description: "Works.", ModelID: "worker"}},
	}
}

// Capability A18. A delegate is a tool that runs another agent on a thread of its
// own: the model is offered it, gets the answer as the result, and pays its tokens.
func TestDelegate(t *testing.T) {
	worker := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		return inference.Response{Message: inference.Assistant("did: " + r.Messages[0].Text), Usage: inference.Usage{InputTokens: 7, OutputTokens: 3}}, nil
	})
	c := gbBoss(worker)
	w := gbNew(t, c)
	w.spec.Delegates = []string{"worker"}
	res := w.say("go")
	require.Equal(t, "did: do it", w.one().Content)
	require.Equal(t, inference.OutcomeOK, w.one().Outcome)
	require.Equal(t, int64(10), res.Usage.Total())
	offered := c.Model.(*gbModel).sent()[0].Tools
	require.Len(t, offered, 1)
	require.Equal(t, "delegate_to_worker", offered[0].Name)
	require.Contains(t, offered[0].Description, "Works.")
	require.Len(t, w.messages(), 4, "the worker's messages are on its own thread")

	// Its events come between the parent's, in one numbering.
	started, finished := gbOf[engine.RunStarted](w.events), gbOf[engine.RunFinished](w.events)
	require.Len(t, started, 2)
	require.Len(t, finished, 2)
	require.Equal(t, started[0].Run, started[1].Parent)
	require.Equal(t, "worker", started[1].Agent)
	require.Equal(t, started[1].Run, finished[0].Run, "the child ends first")
	for i, e := range w.events.all() {
		require.Equal(t, uint64(i+1), e.Head().Seq)
	}
}

// Fault B17. Report 6. The parent's gates hold for the child's calls, also when the
// child's own agent has other plugins; the child's gates hold besides, and each judges
// by its own run's state.
func TestDelegateUnderTheParentsGates(t *testing.T) {
	for _, who := range []string{"nobody", "parent", "child"} {
		t.Run(who, func(t *testing.T) {
			tool := gbToolOf("wipe", nil)
			subjects := &gbLog{}
			mine := state.NewCell[string]("gb.agent", state.Options[string]{})
			guard := func(name string) engine.Plugin {
				return gbGate(name, func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					if pc.Call().Name != "wipe" {
						return gate.Abstain(), nil
					}
					subjects.add("%s on %s of %s: %s", name, mine.Get(pc.Snapshot()), pc.Agent().ID, pc.Call().ID)
					if name == who {
						return gate.Block("not on my watch"), nil
					}
					return gate.Abstain(), nil
				})
			}
			c := gbBoss(gbScript(gbAsk(gbCall("c1", "wipe", ""))))
			c.Agents[0].PluginIDs = []string{"tools", "keys", "mark", "child"}
			c.Plugins = []engine.Plugin{gbTools(tool), gbKeys(mine), guard("parent"), guard("child"),
				gbHook("mark", phase.RunStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
					cmd.Update(mine.With(pc.Agent().ID))
					return cmd, nil
				})}
			w := gbNew(t, c)
			w.spec.Delegates, w.spec.PluginIDs = []string{"worker"}, []string{"tools", "keys", "mark", "parent"}
			res := w.say("go")
			require.NoError(t, res.Err)
			require.ElementsMatch(t, []string{"parent on agent of agent: c1", "child on worker of worker: c1"}, subjects.all())
			if who == "nobody" {
				require.Equal(t, 1, tool.ran())
			} else {
				require.Zero(t, tool.ran())
			}
			require.Equal(t, "done", w.one().Content, "the child was told and went on")
		})
	}
}

// A gate of the parent may ask about a child's call; the parent's resolver answers.
func TestDelegateAsksThroughTheParent(t *testing.T) {
	for _, yes := range []bool{true, false} {
		tool := gbToolOf("wipe", nil)
		var asked atomic.Int64
		c := gbBoss(gbScript(gbAsk(gbCall("c1", "wipe", ""))))
		c.Agents[0].PluginIDs = []string{"tools"}
		c.Plugins = []engine.Plugin{gbTools(tool), gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().Name == "wipe" {
				return gate.Suspend(gate.Ticket{Message: "Wipe?"}), nil
			}
			return gate.Abstain(), nil
		})}
		w := gbNew(t, c)
		w.spec.Delegates = []string{"worker"}
		in := engine.Prompt("go")
		in.Resolver = gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
			asked.Add(1)
			return phase.Answer{Approved: yes}, nil
		})
		w.run(in)
		require.Equal(t, int64(1), asked.Load())
		if yes {
			require.Equal(t, 1, tool.ran())
		} else {
			require.Zero(t, tool.ran())
		}
	}
}

// The parent's default holds for the child too.
func TestDelegateInheritsTheGateDefault(t *testing.T) {
	tool := gbToolOf("wipe", nil)
	c := gbBoss(gbScript(gbAsk(gbCall("c1", "wipe", ""))))
	c.Plugins = []engine.Plugin{gbTools(tool), gbGate("delegating", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		if pc.Call().Name == "delegate_to_worker" {
			return gate.Approve(), nil
		}
		return gate.Abstain(), nil
	})}
	w := gbNew(t, c)
	w.spec.Delegates = []string{"worker"}
	in := engine.Prompt("go")
	deny := engine.DefaultDeny
	in.GateDefault = &deny
	w.run(in)
	require.Zero(t, tool.ran())
	require.Equal(t, inference.OutcomeOK, w.one().Outcome)
}

// However a child ends, the parent gets one result with the right outcome and
// goes on.
func TestDelegatesThatFail(t *testing.T) {
	boom := errors.New("503")
	for _, c := range []struct {
		name    string
		worker  inference.Model
		args    inference.JSON
		outcome inference.Outcome
		text    string
	}{
		{"model error", gbScript(gbFail(boom)), `{"input":"x"}`, inference.OutcomeError, "503"},
		{"panic", gbScript(func(context.Context, inference.Request) (inference.Response, error) { panic("worker broke") }), `{"input":"x"}`, inference.OutcomeError, "worker broke"},
		{"bad arguments", gbScript(), `{"task":"x"}`, inference.OutcomeError, "task"},
		{"not JSON", gbScript(), `{"input"`, inference.OutcomeError, "JSON"},
		{"waits", gbScript(gbAsk(gbCall("c1", "ask", ""))), `{"input":"x"}`, inference.OutcomeError, "waits"},
		{"hangs", inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
			<-ctx.Done()
			return inference.Response{}, ctx.Err()
		}), `{"input":"x"}`, inference.OutcomeTimedOut, "1s"},
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			t.Run(c.name+" "+string(exec), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config := gbBoss(c.worker, gbCall("d1", "delegate_to_worker", c.args), gbCall("c2", "good", ""))
					config.Limits.DelegateTimeout = time.Second
					config.Plugins = []engine.Plugin{gbTools(gbToolOf("good", nil), gbToolOf("ask", nil)), gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
						if pc.Call().Name == "ask" {
							return gate.Suspend(gate.Ticket{}), nil
						}
						return gate.Abstain(), nil
					})}
					w := gbNew(t, config)
					w.spec.Delegates, w.spec.ToolExecution = []string{"worker"}, exec
					res := w.say("go")
					require.Equal(t, phase.ReasonNatural, res.Reason)
					require.Equal(t, []string{"d1 " + string(c.outcome), "c2 ok"}, gbOutcomes(w.results()))
					require.Contains(t, w.results()[0].Content, c.text)
					require.True(t, w.results()[0].IsError)
				})
			})
		}
	}
}

// Cancelling the parent cancels the child; both end, each with its own RunEnd.
func TestCancelReachesDelegates(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		gbNoLeaks(t)
		ctx, cancel := context.WithCancel(t.Context())
		log := &gbLog{}
		c := gbBoss(inference.ModelFunc(func(ctx context.Context, _ inference.Request) (inference.Response, error) {
			cancel()
			<-ctx.Done()
			return inference.Response{}, ctx.Err()
		}), gbCall("d1", "delegate_to_worker", `{"input":"x"}`), gbCall("d2", "delegate_to_worker", `{"input":"y"}`))
		c.Plugins = []engine.Plugin{gbHook("end", phase.RunEnd, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			log.add("%s %s", pc.Agent().ID, phase.RunLifecycle.Get(pc.Snapshot()).Reason)
			return phase.Command{}, nil
		})}
		w := gbNew(t, c)
		w.spec.Delegates, w.spec.ToolExecution = []string{"worker"}, exec
		res := w.runCtx(ctx, engine.Prompt("go"))
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		lines := log.all()
		require.Equal(t, "agent cancelled", lines[len(lines)-1], "the parent ends last")
		if exec == engine.ToolsSequential {
			require.Equal(t, []string{"worker cancelled", "agent cancelled"}, lines)
			require.Equal(t, []string{"d1 cancelled", "d2 not_run"}, gbOutcomes(w.results()))
		} else {
			require.Equal(t, []string{"worker cancelled", "worker cancelled", "agent cancelled"}, lines)
			require.Equal(t, []string{"d1 cancelled", "d2 cancelled"}, gbOutcomes(w.results()))
		}
		require.Len(t, gbOf[engine.RunFinished](w.events), len(lines))
	}
}

// Delegation has a depth: an agent that delegates to a copy of its boss and back
// ends with an error for the model, not with a full stack.
func TestDelegationDepth(t *testing.T) {
	var calls atomic.Int64
	model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		calls.Add(1)
		if last := r.Messages[len(r.Messages)-1]; last.Role == inference.RoleTool {
			return inference.Response{Message: inference.Assistant(last.Text)}, nil
		}
		return inference.Response{Message: inference.Assistant("", gbCall("d", r.Tools[0].Name, `{"input":"again"}`))}, nil
	})
	w := gbNew(t, engine.Config{
		Model: model, Limits: engine.Limits{Depth: 3},
		Agents: []engine.AgentSpec{{ID: "ping", Delegates: []string{"pong"}}, {ID: "pong", Delegates: []string{"ping"}}},
	})
	w.spec.Delegates = []string{"ping"}
	res := w.say("go")
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Contains(t, res.Text, "3 levels")
	require.Equal(t, int64(8), calls.Load())
}

// Parallel delegates: events of each stay together, in call order, with one
// numbering, whoever is faster; background effects included.
func TestParallelDelegatesKeepTheirEventsTogether(t *testing.T) {
	ping := effects.NewSpec[string]("gb.ping")
	var first []string
	for i := range 10 {
		synctest.Test(t, func(t *testing.T) {
			worker := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
				var n int
				if _, err := fmt.Sscanf(r.Messages[0].Text, "task %d", &n); err != nil {
					return inference.Response{}, err
				}
				time.Sleep(time.Duration((n*7+i*5)%11) * time.Second)
				return inference.Response{Message: inference.Assistant(r.Messages[0].Text)}, nil
			})
			c := gbBoss(worker,
				gbCall("d1", "delegate_to_worker", `{"input":"task 1"}`), gbCall("d2", "delegate_to_worker", `{"input":"task 2"}`), gbCall("d3", "delegate_to_worker", `{"input":"task 3"}`))
			c.EffectMode = effects.Background
			c.NewID = nil
			c.Plugins = []engine.Plugin{engine.NewPlugin("effects", func(r *engine.Registrar) error {
				r.Effect(ping.Handle(func(context.Context, *state.Snapshot, string) error { return nil }))
				r.Hook(phase.StepStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
					cmd.Emit(ping.New(pc.Agent().ID))
					return cmd, nil
				}))
				return nil
			})}
			w := gbNew(t, c)
			w.spec.Delegates, w.spec.ToolExecution = []string{"worker"}, engine.ToolsParallel
			w.say("go")
			var lines []string
			var inputs []string
			for n, e := range w.events.all() {
				h := e.Head()
				require.Equal(t, uint64(n+1), h.Seq)
				lines = append(lines, fmt.Sprint(h.Agent, " ", e.Type(), " ", h.Phase))
				if s, ok := e.(engine.RunStarted); ok {
					inputs = append(inputs, s.Input)
				}
			}
			require.Equal(t, []string{"go", "task 1", "task 2", "task 3"}, inputs)
			if first == nil {
				first = lines
			}
			require.Equal(t, first, lines)
			require.Equal(t, []string{"task 1", "task 2", "task 3"}, []string{w.results()[0].Content, w.results()[1].Content, w.results()[2].Content})
		})
	}
}

// Fault F30. A gate of the parent that ends the run ends the parent's run too, not
// only that of the delegate whose call it blocked; one of the delegate's own agent
// ends that alone.
func TestDelegateBlockedForGood(t *testing.T) {
	for _, whose := range []string{"parent", "own"} {
		bodies := 0
		guard := engine.NewPlugin("guard", func(r *engine.Registrar) error {
			r.Tool(engine.NewTool(inference.ToolSpec{Name: "wipe"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
				bodies++
				return engine.Text("wiped"), nil
			}))
			return nil
		})
		block := engine.NewPlugin("block", func(r *engine.Registrar) error {
			r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().Name == "wipe" {
					return gate.Block("that is it").EndRun(), nil
				}
				return gate.Abstain(), nil
			}))
			return nil
		})
		c := gbBoss(gbScript(gbAsk(gbCall("w1", "wipe", "{}"))))
		c.Plugins = []engine.Plugin{guard, block}
		w := gbNew(t, c)
		w.spec.Delegates = []string{"worker"}
		w.spec.ActiveHookFilter = []string{"guard", "block"}
		if whose == "own" {
			w.spec.ActiveHookFilter = []string{"guard"}
		}
		res := w.say("go")
		require.Zero(t, bodies)
		if whose == "parent" {
			require.Equal(t, phase.ReasonBlocked, res.Reason)
			require.Equal(t, "that is it", res.Detail)
		} else {
			require.Equal(t, phase.ReasonNatural, res.Reason)
		}
		child := gbOf[engine.RunFinished](w.events)[0]
		require.Equal(t, phase.ReasonBlocked, child.Reason)
	}
}

// Report 6. Gates reach down to whatever depth agents delegate, and those of each level
// hold: what asks, judges and changes arguments above does so for calls far below.
func TestGatesReachGrandchildren(t *testing.T) {
	down := func(to string) inference.Model {
		return gbScript(gbAsk(gbCall("d", engine.DelegatePrefix+to, `{"input":"go on"}`)))
	}
	for _, who := range []string{"nobody", "top", "middle", "bottom"} {
		for _, kind := range []string{"gate", "policy"} {
			t.Run(who+" "+kind, func(t *testing.T) {
				tool := gbToolOf("wipe", nil)
				bottom := gbScript(gbAsk(gbCall("c1", "wipe", "")))
				guard := func(level string) engine.Plugin {
					judge := func(name, agent string) bool {
						if name == "wipe" {
							require.Equal(t, level, agent, "a gate judges in the run that it belongs to")
						}
						return name == "wipe" && level == who
					}
					return gaPlugin(level, func(r *engine.Registrar) {
						if kind == "gate" {
							r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
								if judge(pc.Call().Name, pc.Agent().ID) {
									return gate.Block("not below " + level), nil
								}
								return gate.Abstain(), nil
							}))
							return
						}
						r.Policy(gate.PolicyFunc(func(_ context.Context, s gate.Subject) (gate.Verdict, error) {
							if judge(s.Call.Name, s.Agent.ID) {
								return gate.Verdict{Kind: gate.PolicyDeny, Reason: "not below " + level}, nil
							}
							return gate.Verdict{}, nil
						}))
					})
				}
				w := gbNew(t, engine.Config{
					Model:   down("middle"),
					Models:  map[string]inference.Model{"middle": down("bottom"), "bottom": bottom},
					Plugins: []engine.Plugin{gbTools(tool), guard("top"), guard("middle"), guard("bottom")},
					Agents: []engine.AgentSpec{
						{ID: "middle", ModelID: "middle", PluginIDs: []string{"tools", "middle"}, Delegates: []string{"bottom"}},
						{ID: "bottom", ModelID: "bottom", PluginIDs: []string{"tools", "bottom"}},
					},
				})
				w.spec = engine.AgentSpec{ID: "top", PluginIDs: []string{"tools", "top"}, Delegates: []string{"middle"}}
				require.NoError(t, w.say("go").Err)
				told := bottom.sent()[1].Messages
				result := told[len(told)-1].Result
				if who == "nobody" {
					require.Equal(t, 1, tool.ran())
					require.Equal(t, inference.OutcomeOK, result.Outcome)
					return
				}
				require.Zero(t, tool.ran())
				require.Equal(t, inference.OutcomeBlocked, result.Outcome)
				require.Equal(t, "blocked: not below "+who, result.Content)
			})
		}
	}
}

// What a delegate used counts for its parent also when both are cancelled.
func TestCancelledDelegateIsPaidFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := gbBoss(inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
		if len(r.Messages) > 1 {
			cancel()
			<-ctx.Done()
			return inference.Response{}, ctx.Err()
		}
		return inference.Response{Message: inference.Assistant("", gbCall("c", "nothing", "")), Usage: inference.Usage{InputTokens: 7}}, nil
	}))
	w := gbNew(t, c)
	w.spec.Delegates = []string{"worker"}
	res := w.runCtx(ctx, engine.Prompt("go"))
	require.Equal(t, phase.ReasonCancelled, res.Reason)
	require.EqualValues(t, 7, res.Usage.Total())
	require.Equal(t, []string{"d1 cancelled"}, gbOutcomes(w.results()))
}
