package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
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

// gbOrders calls fn with every order of n things.
func gbOrders(n int, fn func(order []int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var walk func(k int)
	walk = func(k int) {
		if k == n {
			fn(append([]int(nil), order...))
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			walk(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	walk(0)
}

// Fault B20. Capability A10. Report 3. In every order of one gate of each kind, with the
// blocking one the slowest, Block wins and the tool does not run.
func TestBlockWinsInEveryOrder(t *testing.T) {
	decisions := []gate.Decision{
		gate.SetResult(inference.ToolResult{Content: "x"}), gate.Suspend(gate.Ticket{Message: "sure?"}), gate.Block("no"), gate.Approve(),
		gate.Ask(gate.Ticket{Message: "really?"}), gate.Edit(`{"all":false}`),
	}
	gbOrders(len(decisions), func(order []int) {
		var others sync.WaitGroup
		others.Add(len(decisions) - 1)
		tool := gbToolOf("wipe", nil)
		plugins := []engine.Plugin{gbTools(tool)}
		for _, i := range order {
			plugins = append(plugins, gbGate(fmt.Sprintf("g%d", i), func(context.Context, *phase.Context) (gate.Decision, error) {
				if decisions[i].Kind() == gate.KindBlock {
					others.Wait() // the slowest: it answers after all others have
				} else {
					others.Done()
				}
				return decisions[i], nil
			}))
		}
		w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "wipe", ""))), Plugins: plugins})
		res := w.say("go")
		require.Equal(t, phase.ReasonNatural, res.Reason, "a block ends the call, not the run")
		require.Equal(t, inference.ToolResult{CallID: "c1", Name: "wipe", Content: "blocked: no", IsError: true, Outcome: inference.OutcomeBlocked}, w.one())
		require.Zero(t, tool.ran())
		require.Len(t, gbOf[engine.GateVoted](w.events), len(decisions), "every gate is consulted")
		require.Empty(t, gbOf[engine.TicketOpened](w.events))
		require.Empty(t, gbOf[engine.CallEdited](w.events))
	})
}

// Fault B20. Without the block the call always waits.
func TestSuspendWinsWithoutABlock(t *testing.T) {
	decisions := []gate.Decision{
		gate.SetResult(inference.ToolResult{Content: "x"}), gate.Suspend(gate.Ticket{Message: "sure?"}), gate.Approve(), gate.Ask(gate.Ticket{Message: "ask"}),
	}
	gbOrders(4, func(order []int) {
		tool := gbToolOf("wipe", nil)
		plugins := []engine.Plugin{gbTools(tool)}
		for _, i := range order {
			plugins = append(plugins, gbVote(fmt.Sprintf("g%d", i), decisions[i]))
		}
		w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "wipe", ""))), Plugins: plugins})
		res := w.say("go")
		require.Equal(t, phase.Waiting, res.Status)
		require.Len(t, res.Tickets, 1)
		require.Equal(t, "sure?", res.Tickets[0].Message)
		require.Equal(t, "g1", res.Tickets[0].Plugin)
		require.Zero(t, tool.ran())
	})
}

// Fault B20. Capability A10. Of two results the first in order of registration
// counts, and an event names both plugins.
func TestTieIsReportedWithBothPlugins(t *testing.T) {
	for range 20 {
		tool := gbToolOf("read", nil)
		second := make(chan struct{})
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "read", ""))),
			Plugins: []engine.Plugin{
				gbTools(tool),
				gbGate("first", func(context.Context, *phase.Context) (gate.Decision, error) {
					<-second
					return gate.SetResult(inference.ToolResult{Content: "one"}), nil
				}),
				gbGate("second", func(context.Context, *phase.Context) (gate.Decision, error) {
					close(second)
					return gate.SetResult(inference.ToolResult{Content: "two"}), nil
				}),
			},
		})
		w.say("go")
		require.Equal(t, "one", w.one().Content)
		require.Equal(t, inference.OutcomeSubstituted, w.one().Outcome)
		require.Zero(t, tool.ran())
		clashes := gbOf[engine.GateClashed](w.events)
		require.Len(t, clashes, 1)
		require.Equal(t, gate.Clash{Kind: gate.KindSetResult, Winner: "first", Loser: "second"}, clashes[0].Clash)
		require.Equal(t, "c1", clashes[0].Call)
	}
}

// Capability A10. Without a decision the tool runs, and a gate is asked about
// every call, also one of a tool that was approved before.
func TestNoDecisionRunsTheToolAndApprovalsDoNotLinger(t *testing.T) {
	var asked atomic.Int64
	tool := gbToolOf("shell", nil)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "shell", "")), gbAsk(gbCall("c2", "shell", ""), gbCall("c3", "shell", ""))),
		Plugins: []engine.Plugin{gbTools(tool), gbGate("counter", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			asked.Add(1)
			if pc.Call().ID == "c3" {
				return gate.Block("enough"), nil
			}
			return gate.Approve(), nil
		})},
	})
	w.say("go")
	require.Equal(t, int64(3), asked.Load())
	require.Equal(t, []string{"c1 ok", "c2 ok", "c3 blocked"}, gbOutcomes(w.results()))
	require.Equal(t, 2, tool.ran())
}

// Capability A10. Gates may be asked again, on the state that earlier calls of
// the step left; BeforeToolExecute fires once, after the final yes.
func TestGatesSeeWhatEarlierCallsCommitted(t *testing.T) {
	used := state.NewCounter("used", state.Options[int64]{})
	log := &gbLog{}
	tool := gbToolOf("spend", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
		out.Command.Update(used.With(1))
		return out, nil
	})
	budget := engine.NewPlugin("budget", func(r *engine.Registrar) error {
		r.Key(used)
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if used.Get(pc.Snapshot()) >= 2 {
				return gate.Block("the budget is spent"), nil
			}
			return gate.Approve(), nil
		}))
		return nil
	})
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "spend", ""), gbCall("c2", "spend", ""), gbCall("c3", "spend", ""))),
		Plugins: []engine.Plugin{gbTools(tool), budget, gbProbe(log)},
	})
	w.say("go")
	require.Equal(t, []string{"c1 ok", "c2 ok", "c3 blocked"}, gbOutcomes(w.results()))
	require.Equal(t, []string{"before_tool_execute c1", "before_tool_execute c2"}, gbLines(log.all(), "before_tool"))
	require.Equal(t, []string{"after_tool_execute c1 ok", "after_tool_execute c2 ok", "after_tool_execute c3 blocked"}, gbLines(log.all(), "after_tool"))
}

// Capability A10. An edit has all gates asked again; BeforeToolExecute and the
// body still come once, with the final arguments.
func TestReevaluationRunsTheCallOnce(t *testing.T) {
	log := &gbLog{}
	tool := gbToolOf("search", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
		return engine.Text(string(pc.Call().Args)), nil
	})
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "search", `{"n":0}`))),
		Plugins: []engine.Plugin{gbTools(tool), gbProbe(log), gbGate("raise", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			var args struct{ N int }
			require.NoError(t, pc.Call().Args.Decode(&args))
			if args.N < 5 {
				return gate.Edit(inference.JSON(fmt.Sprintf(`{"n":%d}`, args.N+1))), nil
			}
			return gate.Abstain(), nil
		})},
	})
	w.say("go")
	require.Equal(t, `{"n":5}`, w.one().Content)
	require.Len(t, gbLines(log.all(), "tool_gate"), 6)
	require.Len(t, gbLines(log.all(), "before_tool"), 1)
	require.Len(t, gbLines(log.all(), "after_tool"), 1)
	require.Equal(t, 1, tool.ran())
	edits := gbOf[engine.CallEdited](w.events)
	require.Len(t, edits, 5)
	require.Equal(t, "raise", edits[0].Plugin)
	require.Equal(t, inference.JSON(`{"n":0}`), edits[0].Before)
	require.Equal(t, inference.JSON(`{"n":1}`), edits[0].After)
	// History keeps what the model asked for.
	require.Equal(t, inference.JSON(`{"n":0}`), w.messages()[1].ToolCalls[0].Args)
}

// Scenario: endless edits. A gate that edits on every pass stops at the limit with a
// block and a diagnostic; the tool does not run. 15 edits still pass.
func TestEndlessEditingIsBlocked(t *testing.T) {
	for _, c := range []struct {
		edits   int
		outcome inference.Outcome
	}{{15, inference.OutcomeOK}, {16, inference.OutcomeBlocked}, {1000, inference.OutcomeBlocked}} {
		tool := gbToolOf("search", nil)
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "search", `0`))),
			Plugins: []engine.Plugin{gbTools(tool), gbGate("raise", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				var n int
				require.NoError(t, pc.Call().Args.Decode(&n))
				if n < c.edits {
					return gate.Edit(inference.JSON(fmt.Sprint(n + 1))), nil
				}
				return gate.Abstain(), nil
			})},
		})
		w.say("go")
		require.Equal(t, c.outcome, w.one().Outcome, c.edits)
		resolved := gbOf[engine.GateResolved](w.events)
		last := resolved[len(resolved)-1]
		if c.outcome == inference.OutcomeOK {
			require.Equal(t, 1, tool.ran())
			require.Equal(t, 16, last.Pass)
			continue
		}
		require.Zero(t, tool.ran())
		require.Contains(t, w.one().Content, "16 passes")
		require.Equal(t, gate.Unsettled, last.Cause)
	}
}

// Reports 1 and 2. Two gates edit one call, the speed of the two swapped each time: the
// first registered wins, and the clash is on record. A gate without an opinion erases
// nothing in either order.
func TestEditsDoNotDependOnTiming(t *testing.T) {
	once := func(name string, before, after chan struct{}, to inference.JSON) engine.Plugin {
		return gbGate(name, func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().Args != `"start"` {
				return gate.Abstain(), nil
			}
			if before != nil {
				<-before
			}
			if after != nil {
				close(after)
			}
			return gate.Edit(to), nil
		})
	}
	for i := range 100 {
		done := make(chan struct{})
		first, second := once("first", nil, done, `"one"`), once("second", done, nil, `"two"`)
		if i%2 == 1 {
			first, second = once("first", done, nil, `"one"`), once("second", nil, done, `"two"`)
		}
		tool := gbToolOf("echo", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			return engine.Text(string(pc.Call().Args)), nil
		})
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "echo", `"start"`))),
			Plugins: []engine.Plugin{gbVote("mute1", gate.Abstain()), gbTools(tool), first, gbVote("mute2", gate.Decision{}), second, gbVote("mute3", gate.Abstain())},
		})
		w.say("go")
		require.Equal(t, `"one"`, w.one().Content)
		clashes := gbOf[engine.GateClashed](w.events)
		require.Len(t, clashes, 1)
		require.Equal(t, gate.Clash{Edit: true, Winner: "first", Loser: "second"}, clashes[0].Clash)
	}
}

// Capability M2. Gates that each mend one thing compose: every edit is seen by
// all the others before the call runs.
func TestEditsCompose(t *testing.T) {
	type args struct {
		Path  string `json:"path"`
		Limit int    `json:"limit"`
	}
	mend := func(name string, fn func(*args)) engine.Plugin {
		return gbGate(name, func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			var a args
			if err := pc.Call().Args.Decode(&a); err != nil {
				return gate.Decision{}, err
			}
			before := a
			if fn(&a); a == before {
				return gate.Abstain(), nil
			}
			raw, err := inference.ToJSON(a)
			return gate.Edit(raw), err
		})
	}
	tool := engine.NewTool(inference.ToolSpec{Name: "read"}, func(_ context.Context, _ *phase.Context, a args) (engine.Output, error) {
		return engine.Text(fmt.Sprintf("%s %d", a.Path, a.Limit)), nil
	})
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "read", `{"path":"/x","limit":1000}`))),
		Plugins: []engine.Plugin{
			gbTools(tool),
			mend("jail", func(a *args) { a.Path = "/jail/x" }),
			mend("clamp", func(a *args) { a.Limit = min(a.Limit, 50) }),
		},
	})
	w.say("go")
	require.Equal(t, "/jail/x 50", w.one().Content)
}

// Capability M2. Scenario: refused edit. New arguments are checked by the tool and by all
// gates: a guard that blocks what the edit made of the call wins, and an edit that the
// tool cannot take is an error that names who made it, not a refusal of the call.
func TestEditedArgumentsAreCheckedAgain(t *testing.T) {
	type args struct {
		Path string `json:"path"`
	}
	var bodies atomic.Int64
	tool := engine.NewTool(inference.ToolSpec{Name: "read"}, func(context.Context, *phase.Context, args) (engine.Output, error) {
		bodies.Add(1)
		return engine.Text("read"), nil
	})
	guard := gbGate("guard", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		if pc.Call().Args == `{"path":"/etc/passwd"}` {
			return gate.Block("not that file"), nil
		}
		return gate.Approve(), nil
	})
	for _, c := range []struct {
		name, text string
		edit       inference.JSON
	}{
		{"a guard sees the new arguments", "blocked: not that file", `{"path":"/etc/passwd"}`},
		{"the schema refuses a wrong type", "refuses", `{"path":1}`},
		{"the schema refuses an unknown field", "refuses", `{"path":"x","recursive":true}`},
		{"text that is not JSON", "not valid JSON", `{"path"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			bodies.Store(0)
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "read", `{"path":"x"}`))),
				Plugins: []engine.Plugin{gbTools(tool), guard, gbGate("editor", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					return gate.Edit(c.edit), nil
				})},
			})
			res := w.say("go")
			require.Equal(t, phase.ReasonNatural, res.Reason)
			require.Equal(t, inference.OutcomeBlocked, w.one().Outcome)
			require.Contains(t, w.one().Content, c.text)
			require.Zero(t, bodies.Load())
			if c.text != "blocked: not that file" {
				require.Contains(t, w.one().Content, "editor", "the culprit is named")
			}
		})
	}
}

// Fault B21. Capability M1. Report 5. A guard that fails in any way blocks the call, is
// named, and is told apart from one that denies.
func TestFailedGateBlocksTheCall(t *testing.T) {
	boom := errors.New("the policy server is down")
	faults := map[string]func(ctx context.Context) (gate.Decision, error){
		"deny":   func(context.Context) (gate.Decision, error) { return gate.Block("not today"), nil },
		"error":  func(context.Context) (gate.Decision, error) { return gate.Approve(), boom },
		"panic":  func(context.Context) (gate.Decision, error) { panic("guard broke") },
		"goexit": func(context.Context) (gate.Decision, error) { runtime.Goexit(); return gate.Approve(), nil },
		"hang":   func(context.Context) (gate.Decision, error) { select {} },
		"late": func(ctx context.Context) (gate.Decision, error) {
			<-ctx.Done()
			return gate.Approve(), nil
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			run := func(t *testing.T, options ...engine.GateOption) (*gbWorld, *gbTool) {
				tool := gbToolOf("wipe", nil)
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "wipe", ""))),
					Plugins: []engine.Plugin{
						gbTools(tool), gbVote("allowlist", gate.Approve()),
						gbGate("guard", func(ctx context.Context, _ *phase.Context) (gate.Decision, error) { return fault(ctx) },
							append(options, engine.Timeout(20*time.Millisecond))...),
					},
				})
				res := w.say("go")
				require.Equal(t, phase.ReasonNatural, res.Reason)
				return w, tool
			}
			w, tool := run(t)
			require.Zero(t, tool.ran())
			require.Equal(t, inference.OutcomeBlocked, w.one().Outcome)
			require.True(t, w.one().IsError)
			resolved := gbOf[engine.GateResolved](w.events)
			require.Len(t, resolved, 1)
			require.Equal(t, "guard", resolved[0].Plugin)
			if name == "deny" {
				require.Equal(t, "blocked: not today", w.one().Content)
				require.Equal(t, gate.Decided, resolved[0].Cause)
				require.Empty(t, gbOf[engine.GateVoted](w.events)[1].Error)
				return
			}
			require.Contains(t, w.one().Content, "the policy of guard could not be checked")
			require.Equal(t, gate.GateFailed, resolved[0].Cause)
			votes := gbOf[engine.GateVoted](w.events)
			require.Len(t, votes, 2)
			require.Equal(t, "guard/tool_gate/0", votes[1].Gate)
			require.NotEmpty(t, votes[1].Error)

			w, tool = run(t, engine.FailOpen())
			require.Equal(t, 1, tool.ran())
			require.Equal(t, inference.OutcomeOK, w.one().Outcome)
			require.NotEmpty(t, gbOf[engine.GateVoted](w.events)[1].Error, "the fault is on record all the same")
		})
	}
}

// Fault B21. Report 8. The deadline is exact, the late answer is thrown away, and the
// same gate counts again at the next call.
func TestGateDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var calls atomic.Int64
		tool := gbToolOf("wipe", nil)
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "wipe", "")), gbAsk(gbCall("c2", "wipe", ""))),
			Plugins: []engine.Plugin{gbTools(tool), gbGate("guard", func(context.Context, *phase.Context) (gate.Decision, error) {
				if calls.Add(1) == 1 {
					time.Sleep(time.Hour) // ignores ctx
				}
				return gate.Approve(), nil
			}, engine.Timeout(50*time.Millisecond))},
		})
		w.say("go")
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.Equal(t, []string{"c1 blocked", "c2 ok"}, gbOutcomes(w.results()))
		require.Equal(t, 1, tool.ran())
		time.Sleep(2 * time.Hour) // the late answer arrives and changes nothing
		require.Equal(t, 1, tool.ran())
		require.Len(t, gbOf[engine.GateResolved](w.events), 2)
	})
}

// Fault B21. Capability A11. A verdict of a policy that does not exist is a fault
// and blocks, like an unknown kind of decision; FailOpen is the only way out.
func TestUnknownVerdictBlocks(t *testing.T) {
	for _, open := range []bool{false, true} {
		tool := gbToolOf("wipe", nil)
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "wipe", ""))),
			Plugins: []engine.Plugin{gbTools(tool), engine.NewPlugin("odd", func(r *engine.Registrar) error {
				options := []engine.GateOption{}
				if open {
					options = append(options, engine.FailOpen())
				}
				r.Policy(gate.PolicyFunc(func(context.Context, gate.Subject) (gate.Verdict, error) { return gate.Verdict{Kind: 99}, nil }), options...)
				return nil
			})},
		})
		w.say("go")
		vote := gbOf[engine.GateVoted](w.events)[0]
		require.Contains(t, vote.Error, "unknown kind of decision")
		if open {
			require.Equal(t, 1, tool.ran())
			continue
		}
		require.Zero(t, tool.ran())
		require.Contains(t, w.one().Content, "the policy of odd could not be checked")
	}
}

// Fault B21. A gate that gives up at its deadline and says so itself is told the
// same way as one that hangs, every time: the trace must not depend on which of
// the two the engine notices first.
func TestGateDeadlineIsToldTheSameWayEveryTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "x", ""))),
				Plugins: []engine.Plugin{gbGate("guard", func(ctx context.Context, _ *phase.Context) (gate.Decision, error) {
					<-ctx.Done()
					return gate.Decision{}, ctx.Err()
				}, engine.Timeout(time.Second))},
			})
			w.say("go")
			require.Contains(t, gbOf[engine.GateVoted](w.events)[0].Error, "did not finish tool_gate within 1s")
		}
	})
}

// Capability A11. Typed policies and plain gates resolve together: the strictest
// wins, and a policy sees the run's mode and adapter and the tool's kind.
func TestPoliciesTakePartInTheSameResolution(t *testing.T) {
	for _, c := range []struct {
		verdict gate.Verdict
		other   gate.Decision
		want    inference.Outcome
	}{
		{gate.Verdict{Kind: gate.PolicyDeny, Reason: "no"}, gate.Approve(), inference.OutcomeBlocked},
		{gate.Verdict{Kind: gate.PolicyAllow}, gate.Block("no"), inference.OutcomeBlocked},
		{gate.Verdict{Kind: gate.PolicyAllow}, gate.Ask(gate.Ticket{Message: "?"}), inference.OutcomeOK},
		{gate.Verdict{Kind: gate.ReplaceResult, Result: inference.ToolResult{Content: "cached"}}, gate.Approve(), inference.OutcomeSubstituted},
		{gate.Verdict{Kind: gate.PolicySuspend, Ticket: gate.Ticket{Default: gate.DefaultNo}}, gate.Approve(), inference.OutcomeDenied},
		{gate.Verdict{Kind: gate.AuditOnly, Reason: "noted"}, gate.Abstain(), inference.OutcomeOK},
	} {
		tool := gbToolOf("write", nil)
		tool.spec.Kind = "write"
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "write", `{"a":1}`))),
			Plugins: []engine.Plugin{gbTools(tool), gbVote("other", c.other), engine.NewPlugin("policy", func(r *engine.Registrar) error {
				r.Policy(gate.PolicyFunc(func(_ context.Context, s gate.Subject) (gate.Verdict, error) {
					if s.Run.Mode != "batch" || s.Run.Adapter != "cli" || s.Tool.Kind != "write" || s.Call.Args != `{"a":1}` || s.Agent.ID != "agent" || s.Snapshot == nil {
						return gate.Verdict{}, fmt.Errorf("incomplete subject: %+v", s)
					}
					return c.verdict, nil
				}))
				return nil
			})},
		})
		in := engine.Prompt("go")
		in.Mode, in.Adapter = "batch", "cli"
		w.run(in)
		require.Equal(t, c.want, w.one().Outcome, c.verdict)
		votes := gbOf[engine.GateVoted](w.events)
		require.Equal(t, c.verdict.Reason, votes[len(votes)-1].Reason)
	}
}

// Capability A11. The order of policies and gates is that of registration only;
// the resolution is that of gate.Resolve for every combination of two.
func TestResolutionInARunIsThatOfResolve(t *testing.T) {
	all := []gate.Decision{
		{}, gate.Ask(gate.Ticket{Message: "a", Default: gate.DefaultNo}), gate.Approve(),
		gate.SetResult(inference.ToolResult{Content: "r"}), gate.Suspend(gate.Ticket{Message: "s", Default: gate.DefaultNo}), gate.Block("b"),
	}
	want := map[gate.Kind]inference.Outcome{
		gate.KindAbstain: inference.OutcomeOK, gate.KindApprove: inference.OutcomeOK, gate.KindSetResult: inference.OutcomeSubstituted,
		gate.KindSuspend: inference.OutcomeDenied, gate.KindAsk: inference.OutcomeDenied, gate.KindBlock: inference.OutcomeBlocked,
	}
	for _, a := range all {
		for _, b := range all {
			tool := gbToolOf("t", nil)
			w := gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "t", ""))),
				Plugins: []engine.Plugin{gbTools(tool), gbVote("a", a), gbVote("b", b)},
			})
			w.say("go")
			res := gate.Resolve(gbCall("c1", "t", ""), []gate.Vote{{Plugin: "a", Decision: a}, {Plugin: "b", Decision: b}})
			require.Equal(t, want[res.Decision.Kind()], w.one().Outcome, "%v %v", a.Kind(), b.Kind())
			resolved := gbOf[engine.GateResolved](w.events)[0]
			require.Equal(t, res.Plugin, resolved.Plugin)
			require.Equal(t, res.Decision.Kind(), resolved.Decision)
			require.Equal(t, res.Cause, resolved.Cause)
		}
	}
}

// Report 11. An allowlist that approves does not keep the guard from being asked.
func TestAllowlistDoesNotHideTheGuard(t *testing.T) {
	var guarded atomic.Int64
	tool := gbToolOf("shell", nil)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "shell", `{"cmd":"rm -rf /"}`))),
		Plugins: []engine.Plugin{
			gbTools(tool), gbVote("allowlist", gate.Approve()),
			gbGate("guard", func(context.Context, *phase.Context) (gate.Decision, error) {
				guarded.Add(1)
				return gate.Block("destructive"), nil
			}),
			gbVote("prompt", gate.Ask(gate.Ticket{Message: "Run it?"})),
		},
	})
	w.say("go")
	require.Equal(t, int64(1), guarded.Load())
	require.Zero(t, tool.ran())
	require.Equal(t, "blocked: destructive", w.one().Content)
}

// Capability G5. The prompt asks only if no one approved; without a decider the
// run's stated default counts, the engine's or the input's own.
func TestConfirmationChain(t *testing.T) {
	var prompts atomic.Int64
	resolver := gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
		prompts.Add(1)
		return phase.Answer{Approved: ticket.Message == "yes"}, nil
	})
	for _, c := range []struct {
		name    string
		votes   []gate.Decision
		def     engine.GateDefault
		want    inference.Outcome
		prompts int64
	}{
		{"allowlist", []gate.Decision{gate.Approve(), gate.Ask(gate.Ticket{Message: "no"})}, engine.DefaultDeny, inference.OutcomeOK, 0},
		{"allowlist registered last", []gate.Decision{gate.Ask(gate.Ticket{Message: "no"}), gate.Approve()}, engine.DefaultDeny, inference.OutcomeOK, 0},
		{"prompt says yes", []gate.Decision{gate.Ask(gate.Ticket{Message: "yes"})}, engine.DefaultDeny, inference.OutcomeOK, 1},
		{"prompt says no", []gate.Decision{gate.Ask(gate.Ticket{Message: "no"})}, engine.DefaultAllow, inference.OutcomeDenied, 1},
		{"a policy demands a question", []gate.Decision{gate.Approve(), gate.Suspend(gate.Ticket{Message: "no"})}, engine.DefaultAllow, inference.OutcomeDenied, 1},
		{"no decider, allow", []gate.Decision{gate.Abstain()}, engine.DefaultAllow, inference.OutcomeOK, 0},
		{"no decider, deny", []gate.Decision{gate.Abstain()}, engine.DefaultDeny, inference.OutcomeBlocked, 0},
		{"no gates, deny", nil, engine.DefaultDeny, inference.OutcomeBlocked, 0},
		{"no gates, allow", nil, engine.DefaultAllow, inference.OutcomeOK, 0},
	} {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s own=%v", c.name, own), func(t *testing.T) {
				prompts.Store(0)
				tool := gbToolOf("shell", nil)
				plugins := []engine.Plugin{gbTools(tool)}
				for i, d := range c.votes {
					plugins = append(plugins, gbVote(fmt.Sprintf("g%d", i), d))
				}
				config := engine.Config{Model: gbScript(gbAsk(gbCall("c1", "shell", ""))), Plugins: plugins, Resolver: resolver, GateDefault: c.def}
				in := engine.Prompt("go")
				if own {
					config.Resolver, config.GateDefault = nil, 1-c.def
					in.Resolver, in.GateDefault = resolver, &c.def
				}
				w := gbNew(t, config)
				w.run(in)
				require.Equal(t, c.want, w.one().Outcome)
				require.Equal(t, c.prompts, prompts.Load())
			})
		}
	}
}

// Fault F30. A block ends the call; EndRun ends the run too, with the gate's
// reason, and the calls that come later get results that say so.
func TestBlockMayEndTheRun(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		tool := gbToolOf("t", nil)
		log := &gbLog{}
		model := gbScript(gbAsk(gbCall("c1", "t", ""), gbCall("c2", "bad", ""), gbCall("c3", "t", "")))
		w := gbNew(t, engine.Config{
			Model: model,
			Plugins: []engine.Plugin{gbTools(tool), gbProbe(log), gbGate("police", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Call().Name == "bad" {
					return gate.Block("that is it").EndRun(), nil
				}
				return gate.Abstain(), nil
			})},
		})
		w.spec.ToolExecution = exec
		res := w.say("go")
		require.Equal(t, phase.Done, res.Status)
		require.Equal(t, phase.ReasonBlocked, res.Reason)
		require.Equal(t, "that is it", res.Detail)
		require.NoError(t, res.Err, "a block is not a fault")
		require.Len(t, model.sent(), 1)
		first := "c1 ok"
		if exec == engine.ToolsParallel {
			first = "c1 not_run" // the bodies start together, after all gates
		}
		require.Equal(t, []string{first, "c2 blocked", "c3 not_run"}, gbOutcomes(w.results()))
		require.Contains(t, w.results()[2].Content, "that is it")
		require.Len(t, gbLines(log.all(), "after_tool"), 3)
		require.Len(t, gbLines(log.all(), "run_end"), 1)
		gbPaired(t, w.messages())
	}
}

// A call that waits does not keep a run alive that a later gate ends: the run
// ends, and the waiting call gets a result like every other.
func TestEndOfRunBeatsAWaitingCall(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for _, calls := range [][]inference.ToolCall{
			{gbCall("c1", "ask", ""), gbCall("c2", "bad", "")},
			{gbCall("c1", "ask", ""), gbCall("c2", "bad", ""), gbCall("c3", "t", "")},
		} {
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(calls...)),
				Plugins: []engine.Plugin{gbTools(gbToolOf("ask", nil), gbToolOf("bad", nil), gbToolOf("t", nil)), gbGate("police", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					switch pc.Call().Name {
					case "ask":
						return gate.Suspend(gate.Ticket{}), nil
					case "bad":
						return gate.Block("over").EndRun(), nil
					}
					return gate.Abstain(), nil
				})},
			})
			w.spec.ToolExecution = exec
			res := w.say("go")
			require.Equal(t, phase.Done, res.Status, exec)
			require.Equal(t, phase.ReasonBlocked, res.Reason)
			require.Empty(t, res.Tickets)
			require.Len(t, w.results(), len(calls))
			for _, c := range engine.ToolCalls.All(w.thread.Snapshot()) {
				require.True(t, c.Status.Ended(), c.Status)
			}
			again := w.say("and now?")
			require.Equal(t, phase.ReasonNatural, again.Reason)
		}
	}
}

// What a gate hands on is checked: a substituted result or a ticket that could
// not be saved blocks the call as a fault of the gate.
func TestGateWithBrokenJSONIsAFault(t *testing.T) {
	for name, d := range map[string]gate.Decision{
		"details": gate.SetResult(inference.ToolResult{Content: "x", Details: "{"}),
		"outcome": gate.SetResult(inference.ToolResult{Content: "x", Outcome: "splendid"}),
		"params":  gate.Suspend(gate.Ticket{Params: "{"}),
		"schema":  gate.Ask(gate.Ticket{Schema: "{"}),
	} {
		t.Run(name, func(t *testing.T) {
			tool := gbToolOf("t", nil)
			w := gbNew(t, engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "t", ""))),
				Plugins: []engine.Plugin{gbTools(tool), gbVote("sloppy", d)},
			})
			res := w.say("go")
			require.Equal(t, phase.Done, res.Status)
			require.Zero(t, tool.ran())
			require.Equal(t, inference.OutcomeBlocked, w.one().Outcome)
			require.Contains(t, w.one().Content, "sloppy")
			_, err := w.thread.Export()
			require.NoError(t, err, "the thread can be saved")
		})
	}
}

// Report 8. A gate that never settles, without a deadline: cancelling the run ends it at
// once.
func TestHungGateDoesNotHoldUpACancelledRun(t *testing.T) {
	for _, siblings := range []int{0, 3} {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer close(release)
		tool := gbToolOf("t", nil)
		plugins := []engine.Plugin{gbTools(tool), gbGate("stuck", func(context.Context, *phase.Context) (gate.Decision, error) {
			cancel()
			<-release
			return gate.Approve(), nil
		})}
		for i := range siblings {
			plugins = append(plugins, gbVote(fmt.Sprintf("g%d", i), gate.Approve()))
		}
		w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "t", ""))), Plugins: plugins})
		res := w.runCtx(ctx, engine.Prompt("go"))
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		require.Zero(t, tool.ran())
		require.Equal(t, inference.OutcomeNotRun, w.one().Outcome)
	}
}

// Capability A19. Actions queued for ToolGate run before the gates are asked, and
// the gates judge on what those left.
func TestActionsOfTheGatePhaseComeFirst(t *testing.T) {
	level := state.NewCell[int]("gb.level", state.Options[int]{})
	raise := phase.NewAction[int]("gb.raise", phase.ToolGate)
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "t", ""))),
		Plugins: []engine.Plugin{
			gbTools(gbToolOf("t", nil)),
			engine.NewPlugin("levels", func(r *engine.Registrar) error {
				r.Key(level)
				r.Action(raise.Handle(func(_ context.Context, pc *phase.Context, n int) (cmd phase.Command, err error) {
					cmd.Update(level.With(n))
					if n < 3 {
						cmd.Schedule(raise.New(n + 1))
					}
					return cmd, nil
				}))
				return nil
			}),
			gbSchedule("starter", phase.AfterInference, 1, raise.New(1)),
			gbGate("reader", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				return gate.Block(fmt.Sprintf("level %d", level.Get(pc.Snapshot()))), nil
			}),
		},
	})
	w.say("go")
	require.Equal(t, "blocked: level 3", w.one().Content)
}

// The engine's own limit holds for gates that have none.
func TestHookTimeoutHoldsForGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tool := gbToolOf("t", nil)
		w := gbNew(t, engine.Config{
			Model: gbScript(gbAsk(gbCall("c1", "t", ""))), Limits: engine.Limits{HookTimeout: time.Second},
			Plugins: []engine.Plugin{gbTools(tool), gbGate("slow", func(context.Context, *phase.Context) (gate.Decision, error) {
				time.Sleep(time.Minute)
				return gate.Approve(), nil
			}), gbGate("patient", func(context.Context, *phase.Context) (gate.Decision, error) {
				time.Sleep(2 * time.Second)
				return gate.Approve(), nil
			}, engine.Timeout(3*time.Second))},
		})
		w.say("go")
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Contains(t, w.one().Content, "the policy of slow could not be checked")
		require.Empty(t, gbOf[engine.GateVoted](w.events)[1].Error)
		time.Sleep(time.Hour)
	})
}

// Report 8. A gate that never settles about one call blocks that call at its deadline,
// and the other calls of the step are none the worse.
func TestHungGateLeavesTheSiblingsAlone(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			release := make(chan struct{})
			tool := gbToolOf("t", nil)
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbFive()...)),
				Plugins: []engine.Plugin{gbTools(tool), gbVote("allowlist", gate.Approve()), gbGate("stuck", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
					if pc.Call().ID == "c3" {
						<-release // deaf to its context
					}
					return gate.Abstain(), nil
				}, engine.Timeout(time.Second))},
			})
			w.spec.ToolExecution = exec
			res := w.say("go")
			require.Equal(t, phase.ReasonNatural, res.Reason)
			require.Equal(t, time.Second, time.Since(start))
			require.Equal(t, []string{"c1 ok", "c2 ok", "c3 blocked", "c4 ok", "c5 ok"}, gbOutcomes(w.results()))
			require.Equal(t, 4, tool.ran())
			close(release)
			synctest.Wait()
			require.Equal(t, 4, tool.ran(), "the answer came too late")
		})
	}
}
