package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// tkOnce is a tool that asks t once about its call and then tells its arguments and what
// it was answered.
func tkOnce(t gate.Ticket) *gbTool {
	return gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
		given := pc.Answers()
		if len(given) == 0 {
			return engine.Output{Ask: &t}, nil
		}
		return engine.Text(fmt.Sprintf("%s %s %d", pc.Call().Args, given[0].Value, len(given))), nil
	})
}

// tkResults returns the results by call. In the history they are in the order in which
// the calls ended.
func tkResults(w *gbWorld) map[string]inference.ToolResult {
	results := map[string]inference.ToolResult{}
	for _, r := range w.results() {
		results[r.CallID] = r
	}
	return results
}

// Capability B5. Who answers a tool's question may edit the call's arguments. All gates
// judge the edited call before the tool runs with it: it may be blocked, or be asked
// about, by somebody who is there or not.
func TestEditWhileAToolAsks(t *testing.T) {
	edited := phase.Answer{Approved: true, Value: `"blue"`, Args: `{"n":2}`}
	for name, c := range map[string]struct {
		judge   func(inference.ToolCall) gate.Decision // of the edited call
		more    *phase.Answer                          // to what that asks
		outcome inference.Outcome
		content string
	}{
		"allowed": {func(inference.ToolCall) gate.Decision { return gate.Abstain() }, nil, inference.OutcomeOK, `{"n":2} "blue" 1`},
		"blocked": {func(inference.ToolCall) gate.Decision { return gate.Block("never 2") }, nil, inference.OutcomeBlocked, "blocked: never 2"},
		"asked about": {func(inference.ToolCall) gate.Decision { return gate.Suspend(gate.Ticket{Message: "Really 2?"}) },
			&phase.Answer{Approved: true}, inference.OutcomeOK, `{"n":2} "blue" 1`},
		"denied after that": {func(inference.ToolCall) gate.Decision { return gate.Suspend(gate.Ticket{Message: "Really 2?"}) },
			&phase.Answer{Reason: "not 2"}, inference.OutcomeDenied, "denied: not 2"},
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			for _, answers := range []string{"decisions", "in place", "both"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, exec, answers), func(t *testing.T) {
					var log gbLog
					config := engine.Config{
						Model: gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`), gbCall("c2", "plain", ""))),
						Plugins: []engine.Plugin{gbTools(tkOnce(gate.Ticket{Kind: gate.Text, Message: "Colour?"}), gbToolOf("plain", nil)), gbProbe(&log),
							gbGate("judge", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
								if pc.Call().Args == edited.Args {
									return c.judge(pc.Call()), nil
								}
								return gate.Abstain(), nil
							})},
					}
					answer := func(ticket gate.Ticket) (phase.Answer, error) {
						switch {
						case ticket.Message == "Colour?":
							return edited, nil
						case answers == "both":
							return phase.Answer{}, gate.ErrLeftOpen // who edits, and leaves
						default:
							require.Equal(t, gate.Fingerprint(gbCall("c1", "ask", edited.Args)), ticket.Fingerprint)
							return *c.more, nil
						}
					}
					if answers != "decisions" {
						config.Resolver = gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) { return answer(ticket) })
					}
					w := gbNew(t, config)
					w.spec.ToolExecution = exec
					res := w.say("go")
					for n := 0; res.Status == phase.Waiting; n++ {
						require.Less(t, n, 3)
						require.Len(t, res.Tickets, 1)
						require.Empty(t, gbLines(log.all(), "after_tool_execute c1"))
						a := edited
						if res.Tickets[0].Message != "Colour?" {
							a = *c.more
						}
						res = w.resume(engine.Decision{Answer: a})
					}
					results := tkResults(w)
					require.Equal(t, c.outcome, results["c1"].Outcome)
					require.Equal(t, c.content, results["c1"].Content)
					require.Len(t, gbLines(log.all(), "before_tool_execute c1"), 1)
					require.Len(t, gbLines(log.all(), "after_tool_execute c1"), 1)
				})
			}
		}
	}
}

// Capability B5. What a tool was answered about other arguments does not count: it asks
// again about those that it has now.
func TestToolAnswersAreBoundToTheArguments(t *testing.T) {
	n := 0
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "ask", `{"n":1}`))),
		Plugins: []engine.Plugin{gbTools(tkOnce(gate.Ticket{Kind: gate.Text})), gbGate("late", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if n == 1 && pc.Call().Args == `{"n":1}` {
				return gate.Edit(`{"n":7}`), nil
			}
			return gate.Abstain(), nil
		})},
	})
	first := w.say("go").Tickets[0]
	n = 1
	second := w.resume(engine.Decision{Answer: tkYes(`"about 1"`)}).Tickets[0]
	require.NotEqual(t, first.ID, second.ID)
	require.NotEqual(t, first.Fingerprint, second.Fingerprint)
	w.resume(engine.Decision{Answer: tkYes(`"about 7"`)})
	require.Equal(t, `{"n":7} "about 7" 1`, w.one().Content)
}

// Capability G5. The answer to a tool's question approves nothing: under DefaultDeny, and
// for a gate that trusts a yes, the call is as it was without it.
func TestAnswersToToolsAreNoApproval(t *testing.T) {
	var approves bool
	config := engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), GateDefault: engine.DefaultDeny,
		Plugins: []engine.Plugin{gbTools(tkOnce(gate.Ticket{Kind: gate.Text})), gbGate("rule", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if a, ok := pc.Answer(); ok {
				return gate.Approve().Because("trusts " + a.Ticket), nil
			}
			if approves {
				return gate.Approve(), nil
			}
			return gate.Abstain(), nil
		})},
	}
	w := gbNew(t, config)
	approves = true
	require.Equal(t, phase.Waiting, w.say("go").Status)
	approves = false
	w.resume(engine.Decision{Answer: tkYes(`"x"`)})
	require.Equal(t, inference.OutcomeBlocked, w.one().Outcome)
	require.Contains(t, w.one().Content, "denies by default")
}

// A question is not asked when there is an error, when what came with it cannot be
// committed, or when the run was ended with it.
func TestQuestionsThatAreNotAsked(t *testing.T) {
	never := tkInPlace(func(gate.Ticket) phase.Answer { t.Error("it was asked"); return tkYes(`"x"`) })
	for name, c := range map[string]struct {
		do      func(out *engine.Output) error
		outcome inference.Outcome
		content string
		reason  phase.Reason
	}{
		"an error": {func(*engine.Output) error { return errors.New("boom") }, inference.OutcomeError, "error: boom", phase.ReasonNatural},
		"a refused command": {func(out *engine.Output) error {
			out.Command.Schedule(phase.NewAction[string]("nobody", phase.StepEnd).New(""))
			return nil
		}, inference.OutcomeError, "the tool ran, but its state changes were refused", phase.ReasonNatural},
		"the end": {func(out *engine.Output) error { out.Command.EndRun("enough", ""); return nil },
			inference.OutcomeCancelled, "interrupted: the run ended: enough", "enough"},
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			for _, resolver := range []gate.Resolver{nil, never} {
				var log gbLog
				tool := gbToolOf("ask", func(context.Context, *phase.Context) (out engine.Output, err error) {
					out.Ask = &gate.Ticket{Default: gate.DefaultYes}
					err = c.do(&out)
					return out, err
				})
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "plain", ""))), Resolver: resolver,
					Plugins: []engine.Plugin{gbTools(tool, gbToolOf("plain", nil)), gbProbe(&log)},
				})
				w.spec.ToolExecution = exec
				res := w.say("go")
				require.Equal(t, phase.Done, res.Status, name)
				require.Equal(t, c.reason, res.Reason)
				require.Equal(t, 1, tool.ran(), name)
				results := tkResults(w)
				require.Len(t, w.results(), 2)
				require.Equal(t, c.outcome, results["c1"].Outcome, name)
				require.Contains(t, results["c1"].Content, c.content)
				require.Len(t, gbLines(log.all(), "after_tool_execute"), 2)
				require.Empty(t, gbOf[engine.TicketOpened](w.events))
			}
		}
	}
}

// A run that is ended while a tool waits, or cancelled while somebody is asked, closes the
// call as interrupted: the tool did begin.
func TestEndWhileAToolWaits(t *testing.T) {
	tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
		tool := tkOnce(gate.Ticket{Kind: gate.Text})
		var log gbLog
		config := func() engine.Config {
			return engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: []engine.Plugin{gbTools(tool), gbProbe(&log)}}
		}
		w := begin(config())
		w.say("go")
		w = then(w, config())
		var cmd phase.Command
		cmd.EndRun("enough", "")
		_, err := w.thread.Submit(t.Context(), "admin", cmd)
		require.NoError(t, err)
		res := w.resume(engine.Decision{Answer: tkYes(`"x"`)})
		require.Equal(t, phase.Done, res.Status)
		require.Equal(t, 1, tool.ran())
		require.Equal(t, "interrupted: the run ended: enough", w.one().Content)
		require.Equal(t, []string{"after_tool_execute c1 cancelled"}, gbLines(log.all(), "after_tool"))
	})
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		boom := errors.New("boom")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(tkCalls(2)...)),
			Plugins: []engine.Plugin{gbTools(tkOnce(gate.Ticket{Kind: gate.Text}))},
			Resolver: gate.ResolverFunc(func(ctx context.Context, _ gate.Ticket) (phase.Answer, error) {
				cancel(boom)
				<-ctx.Done()
				return tkYes(`"x"`), nil
			}),
		})
		w.spec.ToolExecution = exec
		res := w.runCtx(ctx, engine.Prompt("go"))
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		gbPaired(t, w.messages())
		require.Len(t, w.results(), 2)
		require.Equal(t, "interrupted: boom", w.results()[0].Content)
	}
}

// Fault B31. A fork of a run that waits for what a tool asked asks again, under an id of
// its own, and what is answered there is not answered here.
func TestForkWhileAToolWaits(t *testing.T) {
	for name, make := range tkAskers(gate.Ticket{Kind: gate.Text, Mode: gate.PassToTool}) {
		_, plugins := make()
		w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins})
		first := w.say("go").Tickets[0]
		before, err := w.thread.Export()
		require.NoError(t, err)
		fork, err := w.thread.Fork(t.Context(), w.thread.Snapshot().Revision(), "fork")
		require.NoError(t, err)
		require.Empty(t, fork.Tickets())
		_, err = fork.Resume(t.Context(), w.spec, engine.Input{}, engine.Decision{Answer: phase.Answer{Ticket: first.ID, Approved: true, Value: `"x"`}})
		require.ErrorIs(t, err, engine.ErrDecision, "the ticket is the other thread's")
		res, err := fork.Resume(t.Context(), w.spec, engine.Input{})
		require.NoError(t, err)
		require.Len(t, res.Tickets, 1, name)
		require.NotEqual(t, first.ID, res.Tickets[0].ID)
		_, err = fork.Resume(t.Context(), w.spec, engine.Input{}, engine.Decision{Answer: tkYes(`"there"`)})
		require.NoError(t, err)
		after, err := w.thread.Export()
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.Equal(t, []gate.Ticket{first}, w.thread.Tickets())
		w.resume(engine.Decision{Answer: tkYes(`"here"`)})
		require.Equal(t, `ran: true "here"`, w.one().Content)
		there := engine.Transcript.Get(fork.Snapshot())
		require.Contains(t, fmt.Sprint(gbTexts(there.Slice())), `ran: true "there"`)
	}
}

// A tool of one run only that waits, and is not there when the run goes on, is told to be
// missing, and the run goes on.
func TestToolIsGoneWhenAnswered(t *testing.T) {
	w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", "")))})
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{tkOnce(gate.Ticket{Kind: gate.Text})}
	require.Equal(t, phase.Waiting, w.run(in).Status)
	require.Equal(t, phase.Done, w.resume(engine.Decision{Answer: tkYes(`"x"`)}).Status)
	require.Contains(t, w.one().Content, `there is no tool "ask"`)
}
