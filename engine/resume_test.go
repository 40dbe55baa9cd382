package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// rsYes approves the call's ticket.
func rsYes(call string) engine.Decision {
	return engine.Decision{Call: call, Answer: phase.Answer{Approved: true}}
}

// rsNo denies the call's ticket.
func rsNo(call, reason string) engine.Decision {
	return engine.Decision{Call: call, Answer: phase.Answer{Reason: reason}}
}

// resume goes on with the waiting run.
func (w *gbWorld) resume(ds ...engine.Decision) *engine.Result {
	w.t.Helper()
	res, err := w.thread.Resume(w.t.Context(), w.spec, engine.Input{}, ds...)
	require.NoError(w.t, err)
	return res
}

// elsewhere returns a world of another engine with w's thread, saved and loaded as
// bytes.
func (w *gbWorld) elsewhere(c engine.Config) *gbWorld {
	w.t.Helper()
	dump, err := w.thread.Export()
	require.NoError(w.t, err)
	text, err := json.Marshal(dump)
	require.NoError(w.t, err)
	var loaded state.Dump
	require.NoError(w.t, json.Unmarshal(text, &loaded))
	c.NewID = func() string { return "elsewhere" }
	other := gbNew(w.t, c)
	other.spec = w.spec
	require.NoError(w.t, other.thread.Import(loaded, state.RefuseUnknown))
	return other
}

// rsPlaces runs a test with a waiting run that goes on in the engine where it
// began, and in another one. then is called after the run came to wait.
func rsPlaces(t *testing.T, test func(t *testing.T, then func(w *gbWorld, c engine.Config) *gbWorld)) {
	t.Run("same engine", func(t *testing.T) {
		test(t, func(w *gbWorld, _ engine.Config) *gbWorld { return w })
	})
	t.Run("another engine", func(t *testing.T) {
		test(t, func(w *gbWorld, c engine.Config) *gbWorld { return w.elsewhere(c) })
	})
}

// rsAsker is a plugin that asks about calls of the tool ask.
func rsAsker(t gate.Ticket) engine.Plugin {
	return gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		if pc.Call().Name == "ask" {
			return gate.Suspend(t), nil
		}
		return gate.Abstain(), nil
	})
}

// Capability A14. Capability B5. A run without anyone to ask waits. What the answer
// does to the call is the ticket's mode, and the gates judge edited arguments
// again, without asking about an edit the one who answered made himself. The same
// holds in another process.
func TestResumeAppliesTheAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		ticket  gate.Ticket
		answer  phase.Answer
		outcome inference.Outcome
		content string
	}{
		{"replay", gate.Ticket{}, phase.Answer{Approved: true}, inference.OutcomeOK, `{"n":1} "" true`},
		{"the answer is the result", gate.Ticket{Kind: gate.Text, Mode: gate.UseAsResult}, phase.Answer{Approved: true, Value: `"blue"`}, inference.OutcomeSubstituted, `"blue"`},
		{"the answer is for the tool", gate.Ticket{Kind: gate.Choice, Mode: gate.PassToTool}, phase.Answer{Approved: true, Value: `"red"`}, inference.OutcomeOK, `{"n":1} "\"red\"" true`},
		{"edited", gate.Ticket{}, phase.Answer{Approved: true, Args: `{"n":2}`}, inference.OutcomeOK, `{"n":2} "" true`},
		{"edited to what a gate blocks", gate.Ticket{}, phase.Answer{Approved: true, Args: `{"n":666}`}, inference.OutcomeBlocked, "blocked: evil"},
		{"denied", gate.Ticket{}, phase.Answer{Reason: "not now"}, inference.OutcomeDenied, "denied: not now"},
		{"called off", gate.Ticket{}, phase.Answer{Cancel: true, Reason: "gone home"}, inference.OutcomeCancelled, "called off: gone home"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
				gbNoLeaks(t)
				log := &gbLog{}
				tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
					if c, _ := engine.ToolCalls.Get(pc.Snapshot(), "c1"); len(c.Answers) != 1 {
						return engine.Output{}, fmt.Errorf("one question, but the answers %v", c.Answers)
					}
					a, ok := pc.Answer()
					return engine.Text(fmt.Sprintf("%s %q %v", pc.Call().Args, a.Value, ok && a.Approved)), nil
				})
				c.ticket.Message = "Sure?"
				config := func() engine.Config {
					return engine.Config{
						Model: gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`))),
						Plugins: []engine.Plugin{gbTools(tool), gbProbe(log), rsAsker(c.ticket),
							gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
								if pc.Call().Args == `{"n":666}` {
									return gate.Block("evil"), nil
								}
								return gate.Abstain(), nil
							})},
					}
				}
				w := gbNew(t, config())
				res := w.say("go")
				require.Equal(t, phase.Waiting, res.Status)
				require.Len(t, res.Tickets, 1)
				require.Equal(t, res.Tickets, w.thread.Tickets())
				require.Zero(t, tool.ran())
				require.Empty(t, w.results())

				other := then(w, config())
				require.Equal(t, res.Tickets, other.thread.Tickets())
				end := other.resume(engine.Decision{ID: "d1", Answer: c.answer})
				require.Equal(t, phase.Done, end.Status)
				require.Equal(t, phase.ReasonNatural, end.Reason)
				require.NoError(t, end.Err)
				require.Equal(t, res.Run, end.Run, "it is the same run")
				require.Equal(t, "done", end.Text)
				require.Equal(t, 2, end.Steps)
				require.Empty(t, other.thread.Tickets())
				require.Equal(t, c.outcome, other.one().Outcome)
				require.Equal(t, c.content, other.one().Content)
				ran := 0
				if c.outcome == inference.OutcomeOK {
					ran = 1
				}
				require.Equal(t, ran, tool.ran())
				gbPaired(t, other.messages())
				require.Len(t, gbLines(log.all(), "before_tool"), ran)
				require.Equal(t, []string{"after_tool_execute c1 " + string(c.outcome)}, gbLines(log.all(), "after_tool"))
				require.Len(t, gbLines(log.all(), "run_start"), 1)
				require.Len(t, gbLines(log.all(), "run_end"), 1)
				require.Equal(t, []string{"step_end", "step_end"}, gbLines(log.all(), "step_end"))
				opened := len(gbOf[engine.TicketOpened](w.events))
				if other != w {
					opened += len(gbOf[engine.TicketOpened](other.events))
				}
				require.Equal(t, 1, opened)
				if c.answer.Args != "" && c.outcome == inference.OutcomeOK {
					edits := gbOf[engine.CallEdited](other.events)
					require.Len(t, edits, 1)
					require.Equal(t, inference.JSON(`{"n":1}`), edits[0].Before)
				}

				again := other.say("and now?")
				require.Equal(t, phase.ReasonNatural, again.Reason)
				require.Equal(t, ran, tool.ran())
			})
		})
	}
}

// Capability B5. Who edits the arguments approves the edited ones and no others:
// when a gate changes them after that, the question is asked again about those.
func TestApprovalIsBoundToTheEditedArguments(t *testing.T) {
	tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
		return engine.Text(string(pc.Call().Args)), nil
	})
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`))),
		Plugins: []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{Message: "Sure?"}),
			gbGate("sly", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().Args == `{"n":2}` {
					return gate.Edit(`{"n":3}`), nil
				}
				return gate.Abstain(), nil
			})},
	})
	w.say("go")
	yes := rsYes("c1")
	yes.Answer.Args = `{"n":2}`
	res := w.resume(yes)
	require.Equal(t, phase.Waiting, res.Status)
	require.Zero(t, tool.ran())
	require.Len(t, res.Tickets, 1)
	require.Equal(t, gate.Fingerprint(gbCall("c1", "ask", `{"n":3}`)), res.Tickets[0].Fingerprint)
	w.resume(rsYes("c1"))
	require.Equal(t, `{"n":3}`, w.one().Content)
	require.Equal(t, 1, tool.ran())
}

// Fault B28. Two calls, the first denied and the second approved, at once or one
// after the other: the next request has one result per call id, in call order,
// directly behind the assistant's message.
func TestResumeDenyOneApproveTheOther(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for _, order := range [][][]engine.Decision{
			{{rsNo("c1", "not now"), rsYes("c2")}},
			{{rsYes("c2"), rsNo("c1", "not now")}},
			{{rsNo("c1", "not now")}, {rsYes("c2")}},
			{{rsYes("c2")}, {rsNo("c1", "not now")}},
		} {
			log := &gbLog{}
			model := gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "ask", "")))
			tool := gbToolOf("ask", func(context.Context, *phase.Context) (out engine.Output, err error) {
				out.Command.Update(engine.Transcript.Append(inference.User("by the way")))
				out.Content = "ok"
				return out, nil
			})
			w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(tool), gbProbe(log), rsAsker(gate.Ticket{})}})
			w.spec.ToolExecution = exec
			w.say("go")
			for _, batch := range order {
				w.resume(batch...)
			}
			require.Equal(t, 1, tool.ran())
			require.ElementsMatch(t, []string{"after_tool_execute c1 denied", "after_tool_execute c2 ok"}, gbLines(log.all(), "after_tool"))
			require.Len(t, model.sent(), 2)
			next := model.sent()[1].Messages
			gbPaired(t, next)
			require.Len(t, next, 5)
			require.Equal(t, "denied: not now", next[2].Text)
			require.Equal(t, inference.OutcomeDenied, next[2].Result.Outcome)
			require.Equal(t, "ok", next[3].Text)
			require.Equal(t, "by the way", next[4].Text)
		}
	}
}

// Capability A14. Fault F29. Calls that were answered run exactly once and in call
// order; the others stay suspended with the same tickets, however often the run
// goes on without them.
func TestPartialResume(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
			ran := &gbLog{}
			tool := func(name string) engine.Tool {
				return gbToolOf(name, func(_ context.Context, pc *phase.Context) (engine.Output, error) {
					ran.add("%s", pc.Call().ID)
					return engine.Text(pc.Call().ID), nil
				})
			}
			config := func() engine.Config {
				return engine.Config{
					Model:   gbScript(gbAsk(gbCall("z", "ask", ""), gbCall("y", "free", ""), gbCall("x", "ask", ""), gbCall("w", "ask", ""), gbCall("v", "ask", ""))),
					Plugins: []engine.Plugin{gbTools(tool("ask"), tool("free")), rsAsker(gate.Ticket{})},
					Limits:  engine.Limits{Concurrency: 1},
				}
			}
			w := gbNew(t, config())
			w.spec.ToolExecution = exec
			first := w.say("go")
			require.Equal(t, []string{"y"}, ran.all())
			require.Len(t, first.Tickets, 4)

			w = then(w, config())
			res := w.resume(rsYes("w"), rsYes("z"))
			require.Equal(t, phase.Waiting, res.Status)
			require.Equal(t, []string{"y", "z", "w"}, ran.all(), "in call order")
			require.Equal(t, []gate.Ticket{first.Tickets[1], first.Tickets[3]}, res.Tickets)
			require.Equal(t, res.Tickets, w.thread.Tickets())

			w = then(w, config())
			for range 2 {
				again := w.resume()
				require.Equal(t, res.Tickets, again.Tickets, "without decisions nothing changes")
			}
			res = w.resume(rsNo("x", "no"))
			require.Equal(t, []gate.Ticket{first.Tickets[3]}, res.Tickets)
			res = w.resume(rsYes("v"))
			require.Equal(t, phase.Done, res.Status)
			require.Equal(t, []string{"y", "z", "w", "v"}, ran.all())
			require.ElementsMatch(t, []string{"y ok", "z ok", "w ok", "x denied", "v ok"}, gbOutcomes(w.results()))
			require.Equal(t, 2, res.Steps)
		})
	}
}

// Capability A14. Another gate may have a question once the first is answered: the
// call waits again with a new ticket, and neither question is asked twice. A tool
// that was promised an answer gets it although another one came later.
func TestResumeIntoAnotherQuestion(t *testing.T) {
	rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
		tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			a, _ := pc.Answer()
			return engine.Text(string(a.Value)), nil
		})
		config := func() engine.Config {
			return engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "ask", ""))),
				Plugins: []engine.Plugin{gbTools(tool),
					gbVote("first", gate.Suspend(gate.Ticket{Kind: gate.Text, Message: "Which?", Mode: gate.PassToTool})),
					gbVote("second", gate.Suspend(gate.Ticket{Message: "Sure?"}))},
			}
		}
		w := gbNew(t, config())
		first := w.say("go")
		require.Equal(t, "first", first.Tickets[0].Plugin)
		w = then(w, config())
		second := w.resume(engine.Decision{Answer: phase.Answer{Approved: true, Value: `"this"`}})
		require.Equal(t, phase.Waiting, second.Status)
		require.Len(t, second.Tickets, 1)
		require.Equal(t, "second", second.Tickets[0].Plugin)
		require.NotEqual(t, first.Tickets[0].ID, second.Tickets[0].ID)
		require.Zero(t, tool.ran())
		w = then(w, config())
		end := w.resume(rsYes("c1"))
		require.Equal(t, phase.Done, end.Status)
		require.Equal(t, 1, tool.ran())
		require.Equal(t, `"this"`, w.one().Content)
	})
}

// Fault B30. Report 4. The gates run once more with the decision in their context. A policy
// that became stricter while the run waited blocks although the answer was yes;
// otherwise the body runs exactly once and nobody is asked a second time.
func TestPolicyChangesWhileWaiting(t *testing.T) {
	for _, policy := range []string{"deny", "allow"} {
		rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
			var saw, judged atomic.Int64
			tool := gbToolOf("deploy", nil)
			config := func() engine.Config {
				return engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "deploy", ""))),
					Plugins: []engine.Plugin{gbTools(tool), engine.NewPlugin("asker", func(r *engine.Registrar) error {
						r.Key(gbNote)
						r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
							if a, ok := pc.Answer(); ok && a.Approved && a.Reason == "fine" {
								saw.Add(1)
								return gate.Approve(), nil
							}
							return gate.Suspend(gate.Ticket{Message: "Deploy?"}), nil
						}))
						r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
							judged.Add(1)
							if gbNote.Get(pc.Snapshot()) == "deny" {
								return gate.Block("the policy changed"), nil
							}
							return gate.Abstain(), nil
						}))
						return nil
					})},
				}
			}
			w := gbNew(t, config())
			w.say("go")
			var cmd phase.Command
			cmd.Update(gbNote.With(policy))
			_, err := w.thread.Submit(t.Context(), "admin", cmd)
			require.NoError(t, err)
			other := then(w, config())
			opened := len(gbOf[engine.TicketOpened](w.events))
			require.Equal(t, 1, opened)
			other.resume(engine.Decision{Call: "c1", Answer: phase.Answer{Approved: true, Reason: "fine"}})
			require.Equal(t, int64(1), saw.Load(), "the gate that asked sees the decision")
			require.Equal(t, int64(2), judged.Load(), "once before and once after")
			if other == w {
				require.Len(t, gbOf[engine.TicketOpened](w.events), 1)
			} else {
				require.Empty(t, gbOf[engine.TicketOpened](other.events))
			}
			if policy == "deny" {
				require.Zero(t, tool.ran())
				require.Equal(t, inference.OutcomeBlocked, other.one().Outcome)
				require.Contains(t, other.one().Content, "the policy changed")
				return
			}
			require.Equal(t, 1, tool.ran())
			require.Equal(t, inference.OutcomeOK, other.one().Outcome)
		})
	}
}

// Capability A14. Of two that resume one thread at the same time exactly one goes
// on with the run; the other changes nothing.
func TestRaceToResume(t *testing.T) {
	for _, ids := range [][2]string{{"", ""}, {"d1", "d2"}, {"d1", "d1"}} {
		for range 50 {
			tool := gbToolOf("ask", nil)
			w := gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "ask", ""))),
				Plugins: []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{})},
			})
			run := w.say("go").Run
			var wg sync.WaitGroup
			var won atomic.Int64
			errs := make([]error, 2)
			for i := range 2 {
				wg.Go(func() {
					d := rsYes("c1")
					d.ID = ids[i]
					var res *engine.Result
					res, errs[i] = w.thread.Resume(t.Context(), w.spec, engine.Input{}, d)
					if errs[i] == nil {
						won.Add(1)
						if res.Run != run {
							t.Errorf("run %q, want %q", res.Run, run)
						}
					}
				})
			}
			wg.Wait()
			if ids[0] == "" || ids[0] != ids[1] {
				require.Equal(t, int64(1), won.Load(), "%v", errs)
			} else {
				require.Positive(t, won.Load(), "who repeats a decision may hear that it was applied")
			}
			for _, err := range errs {
				if err != nil {
					late := errors.Is(err, engine.ErrNotWaiting) && (ids[0] == "" || ids[0] != ids[1])
					require.True(t, errors.Is(err, engine.ErrBusy) || late, "%v", err)
				}
			}
			require.Equal(t, 1, tool.ran())
			require.Len(t, w.results(), 1)
			require.Len(t, gbOf[engine.RunResumed](w.events), 1)
			require.Len(t, gbOf[engine.RunFinished](w.events), 1)
		}
	}
}

// Resume gets through while others commit all the time, also to what it looks at.
func TestResumeAmongOtherWriters(t *testing.T) {
	for range 20 {
		tool := gbToolOf("ask", nil)
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "ask", ""))),
			Plugins: []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{})},
		})
		w.say("go")
		var cmd phase.Command
		cmd.Continue("")
		var wg sync.WaitGroup
		started, stop := make(chan struct{}), make(chan struct{})
		wg.Go(func() {
			for n := range 500 { // more would only show how far the observer is behind
				if _, err := w.thread.Submit(context.Background(), "outside", cmd); err != nil {
					t.Error(err)
					return
				}
				if n == 0 {
					close(started)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		<-started
		res := w.resume(engine.Decision{ID: "d1", Answer: phase.Answer{Approved: true}})
		close(stop)
		wg.Wait()
		require.Equal(t, phase.Done, res.Status)
		require.NoError(t, res.Err)
		require.Equal(t, 1, tool.ran())
	}
}

// Capability A14. A thread that waits after a handoff goes on with the agent that
// took over, in another process too, and a handoff asked for in the step that
// waits is made at that step's end.
func TestResumeAcrossHandoffs(t *testing.T) {
	tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
		return engine.Text(pc.Agent().ID), nil
	})
	config := func() engine.Config {
		return engine.Config{
			Model:  gbScript(gbAsk(gbCall("c1", "hand_over", "")), gbAsk(gbCall("c2", "ask", ""), gbCall("c3", "hand_back", ""))),
			Agents: []engine.AgentSpec{{ID: "expert"}, {ID: "clerk"}},
			Plugins: []engine.Plugin{gbTools(tool, gbHandingTool("expert"), gbToolOf("hand_back", func(context.Context, *phase.Context) (out engine.Output, err error) {
				out.Command.Update(engine.HandOff("clerk"))
				return out, nil
			})), rsAsker(gate.Ticket{})},
		}
	}
	w := gbNew(t, config())
	res := w.say("go")
	require.Equal(t, phase.Waiting, res.Status)
	require.Equal(t, "expert", res.Agent)
	other := w.elsewhere(config())
	end := other.resume(rsYes("c2"))
	require.Equal(t, phase.ReasonNatural, end.Reason)
	require.Equal(t, "clerk", end.Agent)
	require.Equal(t, "expert", other.results()[len(other.results())-1].Content)
	require.Len(t, gbOf[engine.HandedOff](other.events), 1)

	// An engine that lacks the agent says so and changes nothing.
	lacking := config()
	lacking.Agents = nil
	third := w.elsewhere(lacking)
	revision := third.thread.Snapshot().Revision()
	_, err := third.thread.Resume(t.Context(), third.spec, engine.Input{}, rsYes("c2"))
	require.ErrorIs(t, err, engine.ErrInput)
	require.ErrorContains(t, err, "expert")
	require.Equal(t, revision, third.thread.Snapshot().Revision())
}

// Capability A14. What is queued when the run comes to wait is delivered once,
// after it went on, and actions scheduled later get new ids.
func TestResumeWithAQueuedAction(t *testing.T) {
	rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
		type note struct{ Lines []string }
		ran := &gbLog{}
		remind := phase.NewAction[note]("rs.remind", phase.StepEnd)
		config := func() engine.Config {
			return engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "free", ""), gbCall("c2", "ask", ""))),
				Plugins: []engine.Plugin{gbTools(gbToolOf("ask", nil), gbToolOf("free", nil)), rsAsker(gate.Ticket{}),
					engine.NewPlugin("reminder", func(r *engine.Registrar) error {
						r.Hook(phase.AfterToolExecute, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
							cmd.Schedule(remind.New(note{[]string{pc.Call().ID}}))
							return cmd, nil
						}))
						r.Action(remind.Handle(func(ctx context.Context, _ *phase.Context, n note) (phase.Command, error) {
							ran.add("%s %s", engine.Scheduler(ctx), n.Lines[0])
							return phase.Command{}, nil
						}))
						return nil
					})},
			}
		}
		w := gbNew(t, config())
		w.say("go")
		require.Empty(t, ran.all())
		w = then(w, config())
		res := w.resume(rsYes("c2"))
		require.NoError(t, res.Err)
		require.Equal(t, []string{"reminder c1", "reminder c2"}, ran.all())
		done := gbOf[engine.ActionFinished](w.events)
		require.Len(t, done, 2)
		require.Less(t, done[0].ID, done[1].ID)
	})
}

// A message that somebody adds while the run waits does not take the place of the
// one that asked for the calls, and reaches the model behind their results.
func TestMessagesWhileWaiting(t *testing.T) {
	model := gbScript(gbAsk(gbCall("c1", "ask", "")))
	tool := gbToolOf("ask", nil)
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{})}})
	w.say("go")
	var cmd phase.Command
	cmd.Update(engine.Transcript.Append(inference.Assistant("Still thinking."), inference.User("Hurry!")))
	_, err := w.thread.Submit(t.Context(), "chat", cmd)
	require.NoError(t, err)
	res := w.resume(rsYes("c1"))
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Equal(t, 1, tool.ran())
	require.Equal(t, []string{"c1 ok"}, gbOutcomes(w.results()))
	require.Equal(t, 2, res.Steps)
	require.Contains(t, gbTexts(model.sent()[1].Messages), "Hurry!")
	gbPaired(t, model.sent()[1].Messages)
}

// Capability B6. A secret reaches the tool and is nowhere else: not in the export,
// the commits, the events, the log, the transcript or the error texts.
func TestSecretDecisions(t *testing.T) {
	const secret = "hunter2"
	rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
		var got, logged gbLog
		tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			a, _ := pc.Answer()
			got.add("%s", a.Value)
			return engine.Text("logged in"), nil
		})
		config := func() engine.Config {
			return engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "ask", ""))),
				Plugins: []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{Kind: gate.Secret, Message: "Password?", Mode: gate.PassToTool})},
				Logger:  rsLogger(&logged),
			}
		}
		w := gbNew(t, config())
		w.say("go")
		w = then(w, config())
		stop := w.thread.Subscribe(func(c state.Commit) {
			for _, write := range c.Writes {
				if strings.Contains(fmt.Sprintf("%+v", write.Update.Arg()), secret) {
					t.Errorf("revision %d: %s holds the secret", c.Revision, write.Update.Key().Name())
				}
			}
		})
		defer stop()
		decide := func(call string, value inference.JSON) engine.Decision {
			return engine.Decision{ID: "id-" + call, Call: call, Answer: phase.Answer{Approved: true, Value: value}}
		}
		for _, bad := range []inference.JSON{secret, `{"x":"` + secret + `"}`, `"` + secret, `["` + secret + `"]`} {
			_, err := w.thread.Resume(t.Context(), w.spec, engine.Input{}, decide("c1", bad))
			require.ErrorIs(t, err, engine.ErrBadAnswer)
			require.NotContains(t, err.Error(), secret)
		}
		_, err := w.thread.Resume(t.Context(), w.spec, engine.Input{}, decide("c1", `"`+secret+`"`), decide("c9", `"`+secret+`"`))
		require.ErrorIs(t, err, engine.ErrUnknownTicket)
		require.NotContains(t, err.Error(), secret)

		res := w.resume(decide("c1", `"`+secret+`"`))
		require.Equal(t, phase.Waiting, res.Status)
		require.Equal(t, []string{`"` + secret + `"`}, got.all())
		denied := decide("c2", `"`+secret+`"`)
		denied.Answer.Approved = false
		res = w.resume(denied)
		require.Equal(t, phase.Done, res.Status)
		require.Len(t, got.all(), 1)
		dump, err := w.thread.Export()
		require.NoError(t, err)
		text, err := json.Marshal(dump)
		require.NoError(t, err)
		require.NotContains(t, string(text), secret)
		require.NotContains(t, fmt.Sprintf("%+v", w.messages()), secret)
		require.NotContains(t, fmt.Sprintf("%+v", *res), secret)
		for _, e := range w.events.all() {
			require.NotContains(t, fmt.Sprintf("%+v", e), secret, e.Type())
		}
		require.NotEmpty(t, logged.all())
		require.NotContains(t, strings.Join(logged.all(), "\n"), secret)
	})
}

// Capability B6. A secret does not outlive the resumption that brought it. When
// another question keeps the call from running, it is asked for again instead of
// running the tool without it.
func TestLostSecretIsAskedForAgain(t *testing.T) {
	ticket := gate.Ticket{Kind: gate.Secret, Message: "Password?", Mode: gate.PassToTool}
	for _, asker := range []engine.Plugin{
		gbVote("asker", gate.Suspend(ticket)),
		gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if a, ok := pc.Answer(); ok && a.Approved {
				return gate.Approve(), nil
			}
			return gate.Suspend(ticket), nil
		}),
	} {
		rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
			var got gbLog
			tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
				a, _ := pc.Answer()
				got.add("%s", a.Value)
				return engine.Text("logged in"), nil
			})
			config := func() engine.Config {
				return engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""))),
					Plugins: []engine.Plugin{gbTools(tool), asker,
						gbVote("second", gate.Suspend(gate.Ticket{Message: "Sure?"}))},
				}
			}
			w := gbNew(t, config())
			w.say("go")
			secret := engine.Decision{Answer: phase.Answer{Approved: true, Value: `"hunter2"`}}
			w = then(w, config())
			res := w.resume(secret)
			require.Equal(t, "second", res.Tickets[0].Plugin)
			w = then(w, config())
			res = w.resume(rsYes("c1"))
			require.Equal(t, phase.Waiting, res.Status)
			require.Empty(t, got.all())
			require.Equal(t, gate.Secret, res.Tickets[0].Kind)
			res = w.resume(secret)
			require.Equal(t, phase.Done, res.Status)
			require.Equal(t, []string{`"hunter2"`}, got.all())
			require.Equal(t, inference.OutcomeOK, w.one().Outcome)
		})
	}
}
