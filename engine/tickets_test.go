package engine_test

import (
	"context"
	"encoding/json"
	"errors"
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
)

// gbYes approves every ticket and counts them.
func gbYes(n *atomic.Int64) gate.Resolver {
	return gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
		n.Add(1)
		return phase.Answer{Approved: true}, nil
	})
}

// gbNote is a policy that other code changes while a question is open.
var gbNote = state.NewCell[string]("gb.policy", state.Options[string]{})

// Fault B30. The gates run once more with the answer in their context. A policy
// that became stricter meanwhile blocks although the answer was yes; otherwise the
// body runs exactly once and nobody is asked a second time.
func TestGatesRunAgainWithTheAnswer(t *testing.T) {
	for _, policy := range []string{"deny", "allow"} {
		t.Run(policy, func(t *testing.T) {
			var questions, saw atomic.Int64
			var w *gbWorld
			tool := gbToolOf("deploy", nil)
			asker := engine.NewPlugin("asker", func(r *engine.Registrar) error {
				r.Key(gbNote)
				r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					if a, ok := pc.Answer(); ok && a.Approved && a.Reason == "fine" {
						saw.Add(1)
						return gate.Approve(), nil
					}
					return gate.Suspend(gate.Ticket{Message: "Deploy?"}), nil
				}))
				r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					if gbNote.Get(pc.Snapshot()) == "deny" {
						return gate.Block("the policy changed"), nil
					}
					return gate.Abstain(), nil
				}))
				return nil
			})
			w = gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "deploy", ""))),
				Plugins: []engine.Plugin{gbTools(tool), asker},
				Resolver: gate.ResolverFunc(func(ctx context.Context, ticket gate.Ticket) (phase.Answer, error) {
					questions.Add(1)
					c, ok := engine.ToolCalls.Get(w.thread.Snapshot(), "c1")
					if !ok || c.Status != engine.CallSuspended || c.Ticket != ticket {
						return phase.Answer{}, fmt.Errorf("the question is asked before it is in state: %+v", c)
					}
					var cmd phase.Command
					cmd.Update(gbNote.With(policy))
					_, err := w.thread.Submit(ctx, "admin", cmd)
					return phase.Answer{Approved: true, Reason: "fine"}, err
				}),
			})
			w.say("go")
			require.Equal(t, int64(1), questions.Load())
			require.Equal(t, int64(1), saw.Load(), "the gate that asked sees the answer")
			require.Len(t, gbOf[engine.TicketOpened](w.events), 1)
			require.Len(t, gbOf[engine.TicketAnswered](w.events), 1)
			if policy == "deny" {
				require.Equal(t, inference.OutcomeBlocked, w.one().Outcome)
				require.Contains(t, w.one().Content, "the policy changed")
				require.Zero(t, tool.ran())
			} else {
				require.Equal(t, inference.OutcomeOK, w.one().Outcome)
				require.Equal(t, 1, tool.ran())
			}
		})
	}
}

// Fault B30. A simple gate that asks the same thing every time it is called is
// satisfied by the answer: there is no second question, whatever it is.
func TestGateThatAsksAgainIsSatisfied(t *testing.T) {
	for name, d := range map[string]gate.Decision{
		"suspend": gate.Suspend(gate.Ticket{Message: "Deploy?"}),
		"ask":     gate.Ask(gate.Ticket{}),
		"policy":  gate.Suspend(gate.Ticket{}).Because("risky"),
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			tool := gbToolOf("deploy", nil)
			w := gbNew(t, engine.Config{
				Model:    gbScript(gbAsk(gbCall("c1", "deploy", `{"a":1}`))),
				Plugins:  []engine.Plugin{gbTools(tool), gbVote("asker", d)},
				Resolver: gbYes(&n),
			})
			w.say("go")
			require.Equal(t, int64(1), n.Load())
			require.Equal(t, 1, tool.ran())
			opened := gbOf[engine.TicketOpened](w.events)
			require.Len(t, opened, 1)
			require.Equal(t, gate.Confirm, opened[0].Ticket.Kind)
			require.NotEmpty(t, opened[0].Ticket.Message)
		})
	}
}

// An answer stands for the question that it answered and for no other: another
// plugin's question about the same call, and another question of the same plugin,
// are asked too.
func TestAnswerStandsForItsOwnQuestionOnly(t *testing.T) {
	var questions gbLog
	tool := gbToolOf("deploy", nil)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "deploy", ""))),
		Plugins: []engine.Plugin{
			gbTools(tool), gbVote("security", gate.Suspend(gate.Ticket{Message: "Safe?"})), gbVote("cost", gate.Suspend(gate.Ticket{Message: "Safe?"})),
		},
		Resolver: gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
			questions.add("%s %s", ticket.ID, ticket.Plugin)
			return phase.Answer{Approved: true}, nil
		}),
	})
	w.say("go")
	require.Equal(t, []string{"id-1/1/c1/1 security", "id-1/1/c1/2 cost"}, questions.all(), "ids are unique per question")
	require.Equal(t, 1, tool.ran())
}

// A gate that has a second question after the first was answered gets to ask it.
func TestGateMayAskASecondQuestion(t *testing.T) {
	var questions gbLog
	tool := gbToolOf("deploy", nil)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "deploy", ""))),
		Plugins: []engine.Plugin{gbTools(tool), gbGate("careful", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if _, ok := pc.Answer(); ok {
				return gate.Suspend(gate.Ticket{Message: "Really?"}), nil
			}
			return gate.Suspend(gate.Ticket{Message: "Deploy?"}), nil
		})},
		Resolver: gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
			questions.add("%s", ticket.Message)
			return phase.Answer{Approved: ticket.Message == "Deploy?", Reason: "on second thought"}, nil
		}),
	})
	w.say("go")
	require.Equal(t, []string{"Deploy?", "Really?"}, questions.all())
	require.Equal(t, "denied: on second thought", w.one().Content)
	require.Zero(t, tool.ran())
}

// Two gates that each want a value of their own see the answer to their own
// question, not that to the other's.
func TestGateSeesTheAnswerToItsOwnQuestion(t *testing.T) {
	want := func(name string) engine.Plugin {
		return gbGate(name, func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if a, ok := pc.Answer(); ok && strings.Contains(a.Ticket, "/c1/") {
				if a.Value == inference.JSON(`"`+name+`"`) {
					return gate.Approve(), nil
				}
				if a.Value == "" {
					return gate.Block(name + " got an empty answer"), nil
				}
			}
			return gate.Suspend(gate.Ticket{Kind: gate.Text, Message: "Type " + name}), nil
		})
	}
	var n atomic.Int64
	tool := gbToolOf("deploy", nil)
	var seen gbLog
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "deploy", ""))),
		Plugins: []engine.Plugin{gbTools(tool), want("first"), want("second"), gbGate("watch", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			a, _ := pc.Answer()
			seen.add("%s", a.Value)
			return gate.Abstain(), nil
		})},
		Resolver: gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
			n.Add(1)
			return phase.Answer{Approved: true, Value: inference.JSON(`"` + ticket.Plugin + `"`)}, nil
		}),
	})
	w.say("go")
	require.Equal(t, 1, tool.ran())
	require.Equal(t, int64(2), n.Load())
	require.Equal(t, []string{"", `"first"`, `"second"`}, seen.all(), "a gate that asked nothing sees the latest")
	for _, v := range gbOf[engine.GateVoted](w.events)[6:] {
		if v.Plugin != "watch" {
			require.Equal(t, gate.KindApprove, v.Decision, v.Plugin)
			require.Empty(t, v.Reason, "the gate approved by itself: it saw its answer")
		}
	}
}

// Capability B5. Report 15. An edit after the approval voids it: the question is asked
// again about the final arguments, and the body runs with exactly those that were
// approved last.
func TestEditAfterApprovalVoidsIt(t *testing.T) {
	for name, asker := range map[string]func(*phase.Context) gate.Decision{
		"asks every time": func(*phase.Context) gate.Decision { return gate.Suspend(gate.Ticket{Message: "Pay?"}) },
		"trusts the answer": func(pc *phase.Context) gate.Decision {
			if a, ok := pc.Answer(); ok && a.Approved {
				return gate.Approve()
			}
			return gate.Suspend(gate.Ticket{Message: "Pay?"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked gbLog
			var approved atomic.Bool
			tool := gbToolOf("pay", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
				return engine.Text(string(pc.Call().Args)), nil
			})
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "pay", `{"amount":1}`))),
				Plugins: []engine.Plugin{
					gbTools(tool),
					gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) { return asker(pc), nil }),
					gbGate("sly", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
						if approved.Load() && pc.Call().Args == `{"amount":1}` {
							return gate.Edit(`{"amount":1000}`), nil
						}
						return gate.Abstain(), nil
					}),
				},
				Resolver: gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
					asked.add("%s", ticket.Fingerprint)
					approved.Store(true)
					return phase.Answer{Approved: true}, nil
				}),
			})
			w.say("go")
			require.Equal(t, []string{
				gate.Fingerprint(gbCall("c1", "pay", `{"amount":1}`)),
				gate.Fingerprint(gbCall("c1", "pay", `{"amount":1000}`)),
			}, asked.all())
			require.Equal(t, `{"amount":1000}`, w.one().Content)
		})
	}
}

// Scenario: refused edit. Who answers may change the arguments. All gates judge them
// again, the tool checks them, and the one who answered is not asked about his own
// change. One that cannot be made is told, and is no refusal by the person.
func TestAnswerMayEditTheArguments(t *testing.T) {
	type args struct {
		Path string `json:"path"`
	}
	for _, c := range []struct {
		args    inference.JSON
		outcome inference.Outcome
		content string
	}{
		{`{"path":"/tmp"}`, inference.OutcomeOK, "/tmp"},
		{`{"path":"/x"}`, inference.OutcomeOK, "/x"},
		{`{"path":"/etc"}`, inference.OutcomeBlocked, "blocked: never there"},
		{`{"path":5}`, inference.OutcomeBlocked, "changed the arguments to ones that the tool refuses"},
		{`{"path"`, inference.OutcomeBlocked, ""},
	} {
		t.Run(string(c.args), func(t *testing.T) {
			var n atomic.Int64
			tool := engine.NewTool(inference.ToolSpec{Name: "rm"}, func(_ context.Context, _ *phase.Context, a args) (engine.Output, error) {
				return engine.Text(a.Path), nil
			})
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "rm", `{"path":"/x"}`))),
				Plugins: []engine.Plugin{
					gbTools(tool), gbVote("asker", gate.Suspend(gate.Ticket{Message: "Remove?"})),
					gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
						if strings.Contains(string(pc.Call().Args), "/etc") {
							return gate.Block("never there"), nil
						}
						return gate.Abstain(), nil
					}),
				},
				Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
					n.Add(1)
					return phase.Answer{Approved: true, Args: c.args}, nil
				}),
			})
			res := w.say("go")
			if !c.args.Valid() {
				// An answer that cannot be saved answers nothing.
				require.Equal(t, phase.Waiting, res.Status)
				_, err := w.thread.Export()
				require.NoError(t, err)
				return
			}
			require.Equal(t, int64(1), n.Load())
			require.Equal(t, c.outcome, w.one().Outcome)
			require.Contains(t, w.one().Content, c.content)
		})
	}
}

// Capability M5. Without anyone to ask, the ticket's stated default counts; a
// ticket without one waits.
func TestDefaultsWithoutAResolver(t *testing.T) {
	for def, want := range map[gate.Default]inference.Outcome{gate.DefaultYes: inference.OutcomeOK, gate.DefaultNo: inference.OutcomeDenied, gate.NoDefault: ""} {
		tool := gbToolOf("t", nil)
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "t", ""))),
			Plugins: []engine.Plugin{gbTools(tool), gbVote("asker", gate.Ask(gate.Ticket{Default: def}))},
		})
		res := w.say("go")
		if want == "" {
			require.Equal(t, phase.Waiting, res.Status)
			require.Empty(t, gbOf[engine.TicketAnswered](w.events))
			continue
		}
		require.Equal(t, want, w.one().Outcome)
		answered := gbOf[engine.TicketAnswered](w.events)
		require.Len(t, answered, 1)
		require.Equal(t, "default", answered[0].By)
		require.Equal(t, def == gate.DefaultYes, answered[0].Approved)
	}
}

// Fault B28. Two calls, the first denied and the second approved: one result per
// call id, in call order, directly behind the assistant's message.
func TestDenyOneApproveTheOther(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		log := &gbLog{}
		model := gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "t", "")))
		tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
			// Something appended in between does not come between call and result.
			out.Command.Update(engine.Transcript.Append(inference.User("by the way")))
			out.Content = "ok"
			return out, nil
		})
		w := gbNew(t, engine.Config{
			Model:   model,
			Plugins: []engine.Plugin{gbTools(tool), gbProbe(log), gbVote("asker", gate.Suspend(gate.Ticket{Message: "?"}))},
			Resolver: gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
				return phase.Answer{Approved: ticket.Call == "c2", Reason: "not now"}, nil
			}),
		})
		w.spec.ToolExecution = exec
		w.say("go")
		require.Equal(t, 1, tool.ran())
		require.Equal(t, []string{"after_tool_execute c1 denied", "after_tool_execute c2 ok"}, gbLines(log.all(), "after_tool"))
		next := model.sent()[1].Messages
		gbPaired(t, next)
		require.Equal(t, "denied: not now", next[2].Text)
		require.Equal(t, inference.OutcomeDenied, next[2].Result.Outcome)
		require.True(t, next[2].Result.IsError)
		require.Equal(t, "ok", next[3].Text)
		require.Equal(t, "by the way", next[4].Text)
	}
}

// The answer can be the result itself, or be handed to the tool.
func TestAnswerModes(t *testing.T) {
	for _, mode := range []gate.ResumeMode{gate.Replay, gate.UseAsResult, gate.PassToTool} {
		tool := gbToolOf("ask_user", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			a, ok := pc.Answer()
			return engine.Text(fmt.Sprintf("%v %s", ok, a.Value)), nil
		})
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "ask_user", ""))),
			Plugins: []engine.Plugin{gbTools(tool), gbVote("asker", gate.Suspend(gate.Ticket{Kind: gate.Form, Mode: mode}))},
			Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
				return phase.Answer{Approved: true, Value: `{"colour":"blue"}`}, nil
			}),
		})
		w.say("go")
		if mode == gate.UseAsResult {
			require.Zero(t, tool.ran())
			require.Equal(t, inference.OutcomeSubstituted, w.one().Outcome)
			require.Equal(t, `{"colour":"blue"}`, w.one().Content)
			require.Equal(t, inference.JSON(`{"colour":"blue"}`), w.one().Details)
			continue
		}
		require.Equal(t, `true {"colour":"blue"}`, w.one().Content)
	}
}

// A resolver that fails in any way leaves the question open: silence is neither
// yes nor no. What it returns is not trusted either.
func TestFaultyResolverLeavesTheQuestionOpen(t *testing.T) {
	for name, resolver := range map[string]gate.ResolverFunc{
		"error": func(context.Context, gate.Ticket) (phase.Answer, error) {
			return phase.Answer{Approved: true}, errors.New("x")
		},
		"panic": func(context.Context, gate.Ticket) (phase.Answer, error) { panic("x") },
		"broken value": func(context.Context, gate.Ticket) (phase.Answer, error) {
			return phase.Answer{Approved: true, Value: "{"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			tool := gbToolOf("t", nil)
			w := gbNew(t, engine.Config{
				Model:    gbScript(gbAsk(gbCall("c1", "t", ""))),
				Plugins:  []engine.Plugin{gbTools(tool), gbVote("asker", gate.Suspend(gate.Ticket{Default: gate.DefaultYes, Mode: gate.UseAsResult}))},
				Resolver: resolver,
			})
			res := w.say("go")
			require.Equal(t, phase.Waiting, res.Status)
			require.Len(t, res.Tickets, 1)
			require.Zero(t, tool.ran())
			warnings := gbOf[engine.Warning](w.events)
			require.Len(t, warnings, 1)
			require.Contains(t, warnings[0].Message, "resolver")
			_, err := w.thread.Export()
			require.NoError(t, err)
		})
	}
}

// Fault B27. The answer is about the ticket that was shown: a resolver cannot move it to
// another one.
func TestAnswerIsForTheTicketShown(t *testing.T) {
	tool := gbToolOf("t", nil)
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "t", ""))),
		Plugins: []engine.Plugin{gbTools(tool), gbVote("asker", gate.Suspend(gate.Ticket{ID: "mine", Call: "c9", Plugin: "other", Fingerprint: "0"}))},
		Resolver: gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
			return phase.Answer{Ticket: "elsewhere", Approved: true}, nil
		}),
	})
	w.say("go")
	opened := gbOf[engine.TicketOpened](w.events)[0].Ticket
	require.Equal(t, "id-1/1/c1/1", opened.ID)
	require.Equal(t, "c1", opened.Call)
	require.Equal(t, "asker", opened.Plugin)
	require.Equal(t, gate.Fingerprint(gbCall("c1", "t", "")), opened.Fingerprint)
	require.Equal(t, opened.ID, gbOf[engine.TicketAnswered](w.events)[0].Ticket)
}

// Time that a person takes counts against no gate's deadline.
func TestWaitingForAPersonIsNotTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := gbToolOf("t", nil)
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "t", ""))),
			Plugins: []engine.Plugin{gbTools(tool), gbVote("asker", gate.Suspend(gate.Ticket{}))},
			Limits:  engine.Limits{HookTimeout: time.Second, ToolTimeout: time.Second, ActionTimeout: time.Second},
			Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
				time.Sleep(72 * time.Hour)
				return phase.Answer{Approved: true}, nil
			}),
		})
		res := w.say("go")
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.Equal(t, inference.OutcomeOK, w.one().Outcome)
	})
}

// A prompt that does not notice the cancellation does not hold up the run.
func TestCancelWhileAsking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	tool := gbToolOf("t", nil)
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "t", ""))),
		Plugins: []engine.Plugin{gbTools(tool), gbVote("asker", gate.Suspend(gate.Ticket{}))},
		Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
			cancel()
			<-release
			return phase.Answer{Approved: true}, nil
		}),
	})
	res := w.runCtx(ctx, engine.Prompt("go"))
	require.Equal(t, phase.ReasonCancelled, res.Reason)
	require.Equal(t, []string{"c1 not_run", "c2 not_run"}, gbOutcomes(w.results()))
	require.Zero(t, tool.ran())
	again := w.run(engine.Prompt("hello?"))
	require.Equal(t, phase.ReasonNatural, again.Reason)
}

// A secret is for the tool alone: it is in no state, event or export.
func TestSecretsStayOutOfState(t *testing.T) {
	const secret = "hunter2"
	var got atomic.Value
	tool := gbToolOf("login", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
		a, _ := pc.Answer()
		got.Store(string(a.Value))
		return engine.Text("logged in"), nil
	})
	for _, mode := range []gate.ResumeMode{gate.PassToTool, gate.Replay, gate.UseAsResult} {
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "login", ""))),
			Plugins: []engine.Plugin{gbTools(tool), gbVote("asker", gate.Suspend(gate.Ticket{Kind: gate.Secret, Message: "Password?", Mode: mode}))},
			Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
				return phase.Answer{Approved: true, Value: `"` + secret + `"`}, nil
			}),
		})
		stop := w.thread.Subscribe(func(c state.Commit) {
			for _, write := range c.Writes {
				if strings.Contains(fmt.Sprintf("%+v", write.Update.Arg()), secret) {
					t.Errorf("revision %d: %s holds the secret", c.Revision, write.Update.Key().Name())
				}
			}
		})
		w.say("go")
		stop()
		if mode == gate.UseAsResult {
			require.Equal(t, inference.OutcomeBlocked, w.one().Outcome, "a result is for the model to see; a secret is not")
		} else {
			require.Equal(t, `"`+secret+`"`, got.Load())
			require.Equal(t, inference.OutcomeOK, w.one().Outcome)
		}
		dump, err := w.thread.Export()
		require.NoError(t, err)
		text, err := json.Marshal(dump)
		require.NoError(t, err)
		require.NotContains(t, string(text), secret)
		for _, e := range w.events.all() {
			require.NotContains(t, fmt.Sprintf("%+v", e), secret, e.Type())
		}
	}
}

// Capability A19. An action at BeforeToolExecute may suspend the call that is
// about to run; the question is settled before the body, which then runs once.
func TestSuspendCallPausesInTheSamePhase(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  phase.Answer
		mode    gate.ResumeMode
		outcome inference.Outcome
		content string
	}{
		{"yes", phase.Answer{Approved: true, Value: `1`}, gate.PassToTool, inference.OutcomeOK, `{"n":1} 1`},
		{"no", phase.Answer{Reason: "not now"}, gate.Replay, inference.OutcomeDenied, "denied: not now"},
		{"the answer is the result", phase.Answer{Approved: true, Value: `2`}, gate.UseAsResult, inference.OutcomeSubstituted, "2"},
		{"edited", phase.Answer{Approved: true, Args: `{"n":2}`}, gate.Replay, inference.OutcomeOK, `{"n":2} `},
		{"edited to what a gate blocks", phase.Answer{Approved: true, Args: `{"n":666}`}, gate.Replay, inference.OutcomeBlocked, "blocked: evil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &gbLog{}
			tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
				a, _ := pc.Answer()
				return engine.Text(fmt.Sprintf("%s %s", pc.Call().Args, a.Value)), nil
			})
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "t", `{"n":1}`))),
				Plugins: []engine.Plugin{
					gbTools(tool), gbProbe(log),
					gbHook("permission", phase.BeforeToolExecute, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
						cmd.Schedule(engine.SuspendCall.New(gate.Ticket{Message: "Really?", Mode: c.mode}))
						return cmd, nil
					}),
					gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
						if strings.Contains(string(pc.Call().Args), "666") {
							return gate.Block("evil"), nil
						}
						return gate.Abstain(), nil
					}),
				},
				Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return c.answer, nil }),
			})
			res := w.say("go")
			require.NoError(t, res.Err)
			require.Equal(t, c.outcome, w.one().Outcome)
			require.Equal(t, c.content, w.one().Content)
			opened := gbOf[engine.TicketOpened](w.events)
			require.Len(t, opened, 1)
			require.Equal(t, "permission", opened[0].Ticket.Plugin)
			require.Len(t, gbLines(log.all(), "before_tool"), 1)
			require.Len(t, gbLines(log.all(), "after_tool"), 1)
		})
	}
	// Without anyone to ask the run waits.
	tool := gbToolOf("t", nil)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "t", ""))),
		Plugins: []engine.Plugin{gbTools(tool), gbHook("permission", phase.BeforeToolExecute, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.Schedule(engine.SuspendCall.New(gate.Ticket{}))
			return cmd, nil
		})},
	})
	res := w.say("go")
	require.Equal(t, phase.Waiting, res.Status)
	require.Len(t, res.Tickets, 1)
	require.Zero(t, tool.ran())
}

// A call that SuspendCall holds back has not run when the run ends meanwhile, and
// its result does not claim that it might have.
func TestSuspendedCallIsNotRunWhenTheRunEnds(t *testing.T) {
	tool := gbToolOf("t", nil)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "bad", ""))),
		Plugins: []engine.Plugin{
			gbTools(tool, gbToolOf("bad", nil)),
			gbHook("permission", phase.BeforeToolExecute, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
				cmd.Schedule(engine.SuspendCall.New(gate.Ticket{}))
				return cmd, nil
			}),
			gbGate("police", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().Name == "bad" {
					return gate.Block("over").EndRun(), nil
				}
				return gate.Abstain(), nil
			}),
		},
	})
	res := w.say("go")
	require.Equal(t, phase.ReasonBlocked, res.Reason)
	require.ElementsMatch(t, []string{"c1 not_run", "c2 blocked"}, gbOutcomes(w.results()))
	require.Zero(t, tool.ran())
}

// A run that nobody answers waits: its tickets are in the result and in state,
// RunEnd does not fire, nothing runs in the background, and the thread takes no
// other run.
func TestWaitingRun(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		gbNoLeaks(t)
		log := &gbLog{}
		tool := gbToolOf("t", nil)
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "ask", `{"a":1}`), gbCall("c2", "t", ""), gbCall("c3", "ask", ""))),
			Plugins: []engine.Plugin{gbTools(tool, gbToolOf("ask", nil)), gbProbe(log), gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().Name == "ask" {
					return gate.Suspend(gate.Ticket{Message: pc.Call().ID + "?"}), nil
				}
				return gate.Abstain(), nil
			})},
		})
		w.spec.ToolExecution = exec
		res := w.say("go")
		require.Equal(t, phase.Waiting, res.Status)
		require.Equal(t, phase.ReasonWaiting, res.Reason)
		require.NoError(t, res.Err)
		require.Len(t, res.Tickets, 2)
		snap := w.thread.Snapshot()
		require.Equal(t, phase.Waiting, phase.RunLifecycle.Get(snap).Status)
		require.False(t, phase.RunLifecycle.Get(snap).Ended)
		for i, id := range []string{"c1", "c3"} {
			c, ok := engine.ToolCalls.Get(snap, id)
			require.True(t, ok)
			require.Equal(t, engine.CallSuspended, c.Status)
			require.Equal(t, res.Tickets[i], c.Ticket)
			require.Equal(t, fmt.Sprintf("%s/1/%s/1", res.Run, id), c.Ticket.ID)
			require.Equal(t, id+"?", c.Ticket.Message)
			require.Equal(t, gate.Fingerprint(c.Call), c.Ticket.Fingerprint)
		}
		require.Equal(t, []string{"c2 ok"}, gbOutcomes(w.results()))
		require.Empty(t, gbLines(log.all(), "run_end"))
		require.Empty(t, gbLines(log.all(), "step_end"))
		require.Empty(t, gbOf[engine.RunFinished](w.events))
		suspended := gbOf[engine.RunSuspended](w.events)
		require.Len(t, suspended, 1)
		require.Equal(t, res.Tickets, suspended[0].Tickets)
		events := w.events.all()
		require.Equal(t, suspended[0], events[len(events)-1])

		revision := snap.Revision()
		_, err := w.thread.Run(t.Context(), w.spec, engine.Prompt("hello?"))
		require.ErrorIs(t, err, engine.ErrWaiting)
		require.Equal(t, revision, w.thread.Snapshot().Revision(), "a refused run changes nothing")
		_, err = w.thread.Export()
		require.NoError(t, err)
	}
}

// Capability G5. Under DefaultDeny a person's yes lets the call run, also when the
// gate that asked has no opinion any more once it sees the answer.
func TestAYesCountsUnderDefaultDeny(t *testing.T) {
	for _, yes := range []bool{true, false} {
		asks := gbGate("asks", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if _, answered := pc.Answer(); answered {
				return gate.Abstain(), nil
			}
			return gate.Ask(gate.Ticket{Message: "may it?"}), nil
		})
		tool := gbToolOf("t", nil)
		deny := engine.DefaultDeny
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "t", "{}"))), GateDefault: deny, Plugins: []engine.Plugin{asks, gbTools(tool)},
			Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return phase.Answer{Approved: yes}, nil }),
		})
		w.say("go")
		want := inference.OutcomeDenied
		if yes {
			want = inference.OutcomeOK
		}
		require.Equal(t, want, w.one().Outcome)
	}
}

// Capability M5. A resolver may leave a question open, which is no failure: the run
// waits, and nobody is warned.
func TestAResolverLeavesAQuestionOpen(t *testing.T) {
	for _, fault := range []error{gate.ErrLeftOpen, errors.New("no line")} {
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "t", "{}"))),
			Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil)), gbGate("asks", func(context.Context, *phase.Context) (gate.Decision, error) {
				return gate.Ask(gate.Ticket{Message: "may it?"}), nil
			})},
			Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return phase.Answer{}, fault }),
		})
		require.Equal(t, phase.Waiting, w.say("go").Status)
		require.Equal(t, "agent", w.thread.Agent())
		warnings := 1
		if fault == gate.ErrLeftOpen {
			warnings = 0
		}
		require.Len(t, gbOf[engine.Warning](w.events), warnings)
	}
}
