package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// rsHold is a plugin that schedules an action about calls of the tool ask.
func rsHold(p phase.Phase, a phase.Action) engine.Plugin {
	return gbHook("permission", p, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		if pc.Call().Name == "ask" {
			cmd.Schedule(a)
		}
		return cmd, nil
	})
}

// rsRun runs an agent that asks once and has the answer given. It returns the
// worlds that took part in the run, the last one with its end.
type rsRun func(exec engine.ToolExecution, config func() engine.Config, a phase.Answer) []*gbWorld

// rsWays runs a test for every way to have a ticket answered: in place by a
// resolver, or by Resume in the same engine or in another.
func rsWays(t *testing.T, test func(t *testing.T, run rsRun)) {
	t.Run("in place", func(t *testing.T) {
		test(t, func(exec engine.ToolExecution, config func() engine.Config, a phase.Answer) []*gbWorld {
			c := config()
			c.Resolver = gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return a, nil })
			w := gbNew(t, c)
			w.spec.ToolExecution = exec
			w.say("go")
			return []*gbWorld{w}
		})
	})
	rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
		test(t, func(exec engine.ToolExecution, config func() engine.Config, a phase.Answer) []*gbWorld {
			w := gbNew(t, config())
			w.spec.ToolExecution = exec
			require.Equal(t, phase.Waiting, w.say("go").Status)
			require.NotContains(t, fmt.Sprint(w.results()), "c1")
			other := then(w, config())
			other.resume(engine.Decision{Answer: a})
			if other == w {
				return []*gbWorld{w}
			}
			return []*gbWorld{w, other}
		})
	})
}

// rsOpened counts the questions of a run over its worlds.
func rsOpened(worlds []*gbWorld) (n int) {
	for _, w := range worlds {
		n += len(gbOf[engine.TicketOpened](w.events))
	}
	return n
}

// Capability A19. A call that an action suspended at BeforeToolExecute takes up
// from there: the phase ran once in all, the gates judge the call again, the body
// runs at most once.
func TestSuspendCallAndResume(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  phase.Answer
		mode    gate.ResumeMode
		outcome inference.Outcome
		content string
	}{
		{"yes", phase.Answer{Approved: true, Value: `"1"`}, gate.PassToTool, inference.OutcomeOK, `{"n":1} "1"`},
		{"no", phase.Answer{Reason: "not now"}, gate.Replay, inference.OutcomeDenied, "denied: not now"},
		{"called off", phase.Answer{Cancel: true}, gate.Replay, inference.OutcomeCancelled, "called off: nobody decided"},
		{"the answer is the result", phase.Answer{Approved: true, Value: `"2"`}, gate.UseAsResult, inference.OutcomeSubstituted, `"2"`},
		{"edited", phase.Answer{Approved: true, Args: `{"n":2}`}, gate.Replay, inference.OutcomeOK, `{"n":2} `},
		{"edited to what a gate blocks", phase.Answer{Approved: true, Args: `{"n":666}`}, gate.Replay, inference.OutcomeBlocked, "blocked: evil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rsWays(t, func(t *testing.T, run rsRun) {
				log := &gbLog{}
				tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
					a, _ := pc.Answer()
					return engine.Text(fmt.Sprintf("%s %s", pc.Call().Args, a.Value)), nil
				})
				worlds := run(engine.ToolsSequential, func() engine.Config {
					return engine.Config{
						Model: gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`))),
						Plugins: []engine.Plugin{gbTools(tool), gbProbe(log),
							rsHold(phase.BeforeToolExecute, engine.SuspendCall.New(gate.Ticket{Kind: gate.Text, Message: "Really?", Mode: c.mode})),
							gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
								if pc.Call().Args == `{"n":666}` {
									return gate.Block("evil"), nil
								}
								return gate.Abstain(), nil
							})},
					}
				}, c.answer)
				w := worlds[len(worlds)-1]
				require.Equal(t, c.outcome, w.one().Outcome)
				require.Equal(t, c.content, w.one().Content)
				require.Equal(t, 1, rsOpened(worlds))
				require.Len(t, gbLines(log.all(), "before_tool"), 1)
				require.Equal(t, []string{"after_tool_execute c1 " + string(c.outcome)}, gbLines(log.all(), "after_tool"))
				ran := 0
				if c.outcome == inference.OutcomeOK {
					ran = 1
				}
				require.Equal(t, ran, tool.ran())
				require.Equal(t, phase.ReasonNatural, phase.RunLifecycle.Get(w.thread.Snapshot()).Reason)
			})
		})
	}
}

// Capability A14. A hook at AfterToolExecute keeps a result back until a ticket is
// answered. The tool and the phase run once in all: yes lets the result through
// with the edits that hooks made, no hides it, and an answer can take its place.
func TestWithholdResult(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for _, c := range []struct {
			name    string
			answer  phase.Answer
			mode    gate.ResumeMode
			outcome inference.Outcome
			content string
		}{
			{"yes", phase.Answer{Approved: true}, gate.Replay, inference.OutcomeOK, "edited"},
			{"no", phase.Answer{Reason: "private"}, gate.Replay, inference.OutcomeDenied, "denied: private"},
			{"called off", phase.Answer{Cancel: true}, gate.Replay, inference.OutcomeCancelled, "called off: nobody decided"},
			{"replaced", phase.Answer{Approved: true, Value: `"[redacted]"`}, gate.UseAsResult, inference.OutcomeSubstituted, `"[redacted]"`},
		} {
			t.Run(string(exec)+" "+c.name, func(t *testing.T) {
				rsWays(t, func(t *testing.T, run rsRun) {
					log := &gbLog{}
					ask, free := gbToolOf("ask", func(context.Context, *phase.Context) (engine.Output, error) {
						return engine.Output{Content: "raw", Details: `{"raw":1}`}, nil
					}), gbToolOf("free", nil)
					model := gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`), gbCall("c2", "free", "")))
					worlds := run(exec, func() engine.Config {
						return engine.Config{
							Model: model,
							Plugins: []engine.Plugin{gbTools(ask, free), gbProbe(log),
								rsHold(phase.AfterToolExecute, engine.WithholdResult.New(gate.Ticket{Message: "Show it?", Mode: c.mode})),
								gbEditor("editor", func(cmd *phase.Command, res inference.ToolResult) {
									if res.CallID == "c1" {
										cmd.EditContent(res.CallID, "edited")
									}
								})},
						}
					}, c.answer)
					require.Equal(t, 1, ask.ran())
					require.Equal(t, 1, free.ran())
					require.Equal(t, 1, rsOpened(worlds))
					require.Len(t, gbLines(log.all(), "before_tool"), 2)
					require.ElementsMatch(t, []string{"after_tool_execute c1 ok", "after_tool_execute c2 ok"}, gbLines(log.all(), "after_tool"))
					sent := model.sent()
					next := sent[len(sent)-1].Messages
					gbPaired(t, next)
					require.Equal(t, "c1", next[2].Result.CallID)
					require.Equal(t, c.outcome, next[2].Result.Outcome)
					require.Equal(t, c.content, next[2].Result.Content)
					if c.outcome != inference.OutcomeOK {
						require.NotContains(t, fmt.Sprintf("%+v", next), "raw")
						require.NotContains(t, fmt.Sprintf("%+v", next), "edited")
					}
					n := 0
					for _, world := range worlds {
						for _, e := range gbOf[engine.ToolFinished](world.events) {
							if e.Call.ID == "c1" {
								n++
							}
						}
					}
					require.Equal(t, 1, n)
				})
			})
		}
	}
}

// Capability B6. What nobody released stays hidden when the run ends before the
// answer: the call is closed, the model learns that there was a result, not which.
func TestWithheldResultOfARunThatEnds(t *testing.T) {
	end := phase.Command{}
	end.EndRun("closing_time", "")
	for name, stop := range map[string]func(w *gbWorld) *engine.Result{
		"ended while it waits": func(w *gbWorld) *engine.Result {
			w.say("go")
			_, err := w.thread.Submit(w.t.Context(), "admin", end)
			require.NoError(w.t, err)
			return w.resume()
		},
		"ended in the phase that withholds": func(w *gbWorld) *engine.Result {
			w.spec.ActiveHookFilter = nil
			return w.say("end")
		},
		"cancelled while it asks": func(w *gbWorld) *engine.Result {
			ctx, cancel := context.WithCancel(w.t.Context())
			in := engine.Prompt("go")
			in.Resolver = gate.ResolverFunc(func(ctx context.Context, _ gate.Ticket) (phase.Answer, error) {
				cancel()
				<-ctx.Done()
				return phase.Answer{Approved: true}, nil
			})
			return w.runCtx(ctx, in)
		},
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			t.Run(name+" "+string(exec), func(t *testing.T) {
				tool := gbToolOf("ask", func(context.Context, *phase.Context) (engine.Output, error) {
					return engine.Output{Content: "private", Details: `{"private":1}`}, nil
				})
				log := &gbLog{}
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "free", ""))),
					Plugins: []engine.Plugin{gbTools(tool, gbToolOf("free", nil)), gbProbe(log),
						rsHold(phase.AfterToolExecute, engine.WithholdResult.New(gate.Ticket{})),
						gbHook("ender", phase.AfterToolExecute, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
							if pc.Messages().At(0).Text == "end" {
								return end, nil
							}
							return cmd, nil
						})},
				})
				w.spec.ToolExecution = exec
				res := stop(w)
				require.Equal(t, phase.Done, res.Status)
				require.Equal(t, 1, tool.ran())
				require.Len(t, w.results(), 2)
				require.NotContains(t, fmt.Sprintf("%+v", w.messages()), "private")
				for _, e := range gbOf[engine.ToolFinished](w.events) {
					require.NotContains(t, fmt.Sprintf("%+v", e), "private")
				}
				for _, r := range w.results() {
					if r.CallID == "c1" {
						require.Equal(t, inference.OutcomeCancelled, r.Outcome)
						require.True(t, r.IsError)
						require.Contains(t, r.Content, "withheld")
					}
				}
				require.Len(t, gbLines(log.all(), "after_tool_execute c1"), 1)
				require.Len(t, gbLines(log.all(), "run_end"), 1)
				require.Equal(t, phase.ReasonNatural, w.say("hello?").Reason)
			})
		}
	}
}

// An answer about a result that is there already cannot change the arguments that
// led to it.
func TestWithheldResultAndArguments(t *testing.T) {
	rsWays(t, func(t *testing.T, run rsRun) {
		if t.Name() != "TestWithheldResultAndArguments/in_place" {
			return // Resume refuses it: see below
		}
		tool := gbToolOf("ask", nil)
		worlds := run(engine.ToolsSequential, func() engine.Config {
			return engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`))),
				Plugins: []engine.Plugin{gbTools(tool), rsHold(phase.AfterToolExecute, engine.WithholdResult.New(gate.Ticket{}))},
			}
		}, phase.Answer{Approved: true, Args: `{"n":2}`})
		require.Empty(t, gbOf[engine.CallEdited](worlds[0].events))
		require.Equal(t, "ask ran", worlds[0].one().Content)
		require.Equal(t, inference.JSON(`{"n":1}`), gbOf[engine.ToolFinished](worlds[0].events)[0].Call.Args)
	})
	tool := gbToolOf("ask", nil)
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`))),
		Plugins: []engine.Plugin{gbTools(tool), rsHold(phase.AfterToolExecute, engine.WithholdResult.New(gate.Ticket{}))},
	})
	w.say("go")
	w.refused(engine.ErrBadAnswer, 0, engine.Decision{Answer: phase.Answer{Approved: true, Args: `{"n":2}`}})
	w.resume(rsYes("c1"))
	require.Equal(t, "ask ran", w.one().Content)
}

// Capability B6. No action can have a secret become a result, which the model
// would see: the call is blocked, the result stays hidden, and nobody is asked.
func TestActionsCannotUseASecretAsTheResult(t *testing.T) {
	ticket := gate.Ticket{Kind: gate.Secret, Message: "Password?", Mode: gate.UseAsResult}
	for name, hold := range map[string]engine.Plugin{
		"suspend":  rsHold(phase.BeforeToolExecute, engine.SuspendCall.New(ticket)),
		"withhold": rsHold(phase.AfterToolExecute, engine.WithholdResult.New(ticket)),
	} {
		t.Run(name, func(t *testing.T) {
			tool := gbToolOf("ask", func(context.Context, *phase.Context) (engine.Output, error) { return engine.Text("private"), nil })
			w := gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "ask", ""))),
				Plugins: []engine.Plugin{gbTools(tool), hold},
				Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
					return phase.Answer{Approved: true, Value: `"hunter2"`}, nil
				}),
			})
			res := w.say("go")
			require.Equal(t, phase.Done, res.Status)
			require.NoError(t, res.Err)
			require.Empty(t, gbOf[engine.TicketOpened](w.events))
			require.Equal(t, inference.OutcomeBlocked, w.one().Outcome)
			require.NotContains(t, w.one().Content, "hunter2")
			require.NotContains(t, w.one().Content, "private")
			if name == "suspend" {
				require.Zero(t, tool.ran())
			}
		})
	}
}

// A ticket that an action brings and that could not be saved does not let the call
// through.
func TestActionsWithBrokenTickets(t *testing.T) {
	for _, ticket := range []gate.Ticket{{Params: `{`}, {Schema: `{`}} {
		for name, hold := range map[string]engine.Plugin{
			"suspend":  rsHold(phase.BeforeToolExecute, engine.SuspendCall.New(ticket)),
			"withhold": rsHold(phase.AfterToolExecute, engine.WithholdResult.New(ticket)),
		} {
			tool := gbToolOf("ask", func(context.Context, *phase.Context) (engine.Output, error) { return engine.Text("private"), nil })
			w := gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "ask", ""))),
				Plugins: []engine.Plugin{gbTools(tool), hold},
			})
			res := w.say("go")
			require.NoError(t, res.Err)
			require.Equal(t, inference.OutcomeBlocked, w.one().Outcome, name)
			require.NotContains(t, w.one().Content, "private")
			_, err := w.thread.Export()
			require.NoError(t, err)
		}
	}
}

// Report 14. A question about a result that is there has one id, in whatever process the
// run goes on and however often it does so without an answer, and no other question of
// the thread has it; the tool and its hooks do not run again.
func TestQuestionAboutAResultKeepsItsID(t *testing.T) {
	tool, log := gbToolOf("ask", nil), &gbLog{}
	config := func() engine.Config {
		return engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "ask", "")), gbSay("done"), gbAsk(gbCall("c1", "ask", ""))),
			Plugins: []engine.Plugin{gbTools(tool), gbProbe(log),
				rsHold(phase.AfterToolExecute, engine.WithholdResult.New(gate.Ticket{Message: "Show it?"}))},
		}
	}
	w := gbNew(t, config())
	ids := map[string]bool{}
	for turn, calls := range []int{2, 1} {
		res := w.say("go")
		require.Equal(t, phase.Waiting, res.Status)
		require.Len(t, res.Tickets, calls)
		asked := res.Tickets
		for range 2 {
			w = w.elsewhere(config())
			require.Equal(t, asked, w.thread.Tickets(), "after %d turns", turn)
			require.Equal(t, asked, w.resume().Tickets)
		}
		for i, ticket := range asked {
			require.False(t, ids[ticket.ID], "%s is another question's id", ticket.ID)
			ids[ticket.ID] = true
			left := w.resume(engine.Decision{Answer: phase.Answer{Ticket: ticket.ID, Approved: true}}).Tickets
			require.ElementsMatch(t, asked[i+1:], left)
		}
	}
	require.Len(t, ids, 3)
	require.Equal(t, 3, tool.ran())
	require.Len(t, gbLines(log.all(), "before_tool"), 3)
	require.Len(t, gbLines(log.all(), "after_tool"), 3)
	require.Equal(t, []string{"c1 ok", "c2 ok", "c1 ok"}, gbOutcomes(w.results()))
}
