package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// tkCount counts the commands of tools.
var tkCount = state.NewCounter("tk.count", state.Options[int64]{Scope: state.ScopeThread})

// tkChat is a tool that asks n questions one after the other and then tells what it was
// answered. With each question, and with its result, comes a command that counts one.
func tkChat(n int, ticket gate.Ticket) *gbTool {
	return gbToolOf("ask", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
		out.Command.Update(tkCount.With(1))
		given := pc.Answers()
		if len(given) < n {
			t := ticket
			t.Message = fmt.Sprintf("Question %d of %s?", len(given)+1, pc.Call().ID)
			t.Kind = gate.Text
			out.Ask = &t
			out.Content, out.Details, out.IsError = "not this", `{`, true
			return out, nil
		}
		var texts []string
		for _, a := range given {
			texts = append(texts, string(a.Value))
		}
		last, ok := pc.Answer()
		if n > 0 && (!ok || last != given[n-1]) {
			return out, errors.New("the last answer is another one")
		}
		out.Content = strings.Join(texts, " ")
		return out, nil
	})
}

func tkChatConfig(n int, calls []inference.ToolCall, log *gbLog) engine.Config {
	return engine.Config{
		Model: gbScript(gbAsk(calls...)),
		Plugins: []engine.Plugin{gbTools(tkChat(n, gate.Ticket{})), gbProbe(log),
			gaPlugin("keys", func(r *engine.Registrar) { r.Key(tkCount) })},
	}
}

func tkCalls(n int) (calls []inference.ToolCall) {
	for i := range n {
		calls = append(calls, gbCall(fmt.Sprintf("c%d", i+1), "ask", inference.JSON(fmt.Sprintf(`{"n":%d}`, i))))
	}
	return calls
}

// Capability G6. Capability A14. A tool may ask as much as it wants to know. Its calls
// take up where they stood, each in its own time, also in another process; what it did
// with a question is committed with it, once; AfterToolExecute comes once, after the last.
func TestToolsThatAsk(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for _, questions := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s/%d", exec, questions), func(t *testing.T) {
				tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
					var log gbLog
					calls := tkCalls(3)
					model := gbScript(gbAsk(calls...))
					config := func() engine.Config {
						c := tkChatConfig(questions, calls, &log)
						c.Model = model
						return c
					}
					w := begin(config())
					w.spec.ToolExecution = exec
					res := w.say("go")
					ids, runs, done := map[string]bool{}, int64(3), 0
					for n := 1; n <= questions; n++ {
						for _, call := range []string{"c2", "c3", "c1"} { // not in the order of the calls
							require.Equal(t, phase.Waiting, res.Status)
							require.Len(t, res.Tickets, 3-done)
							require.Len(t, w.results(), done)
							for _, ticket := range res.Tickets {
								require.Equal(t, "tool ask", ticket.Plugin)
								ids[ticket.ID] = true
							}
							require.Equal(t, runs, tkCount.Get(w.thread.Snapshot()))
							w = then(w, config())
							res = w.resume(engine.Decision{Call: call, Answer: tkYes(inference.JSON(fmt.Sprintf(`"%s %d"`, call, n)))})
							if runs++; n == questions {
								done++
							}
						}
					}
					require.Equal(t, phase.Done, res.Status)
					require.NoError(t, res.Err)
					require.Len(t, ids, 3*questions, "every question has an id of its own")
					require.EqualValues(t, 3*(questions+1), tkCount.Get(w.thread.Snapshot()))
					for _, call := range calls {
						require.Len(t, gbLines(log.all(), "before_tool_execute "+call.ID), 1)
						require.Equal(t, []string{"after_tool_execute " + call.ID + " ok"}, gbLines(log.all(), "after_tool_execute "+call.ID))
					}
					last := model.sent()
					gbPaired(t, last[len(last)-1].Messages)
					require.Len(t, w.results(), 3)
					for _, r := range w.results() {
						var want []string
						for n := range questions {
							want = append(want, fmt.Sprintf(`"%s %d"`, r.CallID, n+1))
						}
						require.Equal(t, strings.Join(want, " "), r.Content)
					}
				})
			})
		}
	}
}

// tkInPlace answers questions by a function of their message.
func tkInPlace(answer func(t gate.Ticket) phase.Answer) gate.Resolver {
	return gate.ResolverFunc(func(_ context.Context, t gate.Ticket) (phase.Answer, error) { return answer(t), nil })
}

// Somebody who is there is asked in the order of the calls, and hears of every question
// once. The events tell each question before its answer, and both before the call's end.
func TestToolsThatAskInPlace(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		var log, asked gbLog
		c := tkChatConfig(2, tkCalls(2), &log)
		c.Resolver = tkInPlace(func(t gate.Ticket) phase.Answer {
			asked.add("%s %s", t.ID, t.Message)
			return tkYes(inference.JSON(fmt.Sprintf("%q", t.Message)))
		})
		w := gbNew(t, c)
		w.spec.ToolExecution = exec
		require.Equal(t, phase.Done, w.say("go").Status)
		require.Equal(t, []string{
			"id-1/1/c1/1 Question 1 of c1?", "id-1/1/c1/2 Question 2 of c1?",
			"id-1/1/c2/1 Question 1 of c2?", "id-1/1/c2/2 Question 2 of c2?",
		}, asked.all())
		var order []string
		for _, e := range w.events.all() {
			switch e := e.(type) {
			case engine.TicketOpened:
				order = append(order, "? "+e.Ticket.ID[5:])
			case engine.TicketAnswered:
				order = append(order, "! "+e.Ticket[5:])
			case engine.ToolFinished:
				order = append(order, "finished "+e.Call.ID)
			}
		}
		require.Equal(t, []string{
			"? 1/c1/1", "! 1/c1/1", "? 1/c1/2", "! 1/c1/2", "finished c1",
			"? 1/c2/1", "! 1/c2/1", "? 1/c2/2", "! 1/c2/2", "finished c2",
		}, order)
		gbPaired(t, w.messages())
		require.Equal(t, `"Question 1 of c1?" "Question 2 of c1?"`, w.results()[0].Content)
		require.EqualValues(t, 6, tkCount.Get(w.thread.Snapshot()))
		require.Len(t, gbLines(log.all(), "after_tool_execute"), 2)
	}
}

// A no or a cancellation ends the call without running the tool again; the answer can be
// the result; what the tool did when it asked stays done.
func TestHowQuestionsOfToolsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		mode    gate.ResumeMode
		answer  phase.Answer
		outcome inference.Outcome
		content string
	}{
		"denied":         {gate.Replay, phase.Answer{Reason: "none of your business"}, inference.OutcomeDenied, "denied: none of your business"},
		"called off":     {gate.PassToTool, phase.Answer{Cancel: true}, inference.OutcomeCancelled, "called off: nobody decided"},
		"as the result":  {gate.UseAsResult, tkYes(`"blue"`), inference.OutcomeSubstituted, `"blue"`},
		"denied as that": {gate.UseAsResult, phase.Answer{}, inference.OutcomeDenied, "denied: the answer was no"},
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			for _, inPlace := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/%v", name, exec, inPlace), func(t *testing.T) {
					var log gbLog
					config := tkChatConfig(1, tkCalls(2), &log)
					tool := tkChat(1, gate.Ticket{Mode: c.mode})
					config.Plugins[0] = gbTools(tool)
					answers := map[string]phase.Answer{"c1": c.answer, "c2": tkYes(`"red"`)}
					if inPlace {
						config.Resolver = tkInPlace(func(t gate.Ticket) phase.Answer { return answers[t.Call] })
					}
					w := gbNew(t, config)
					w.spec.ToolExecution = exec
					w.say("go")
					if !inPlace {
						w.resume(engine.Decision{Call: "c1", Answer: answers["c1"]}, engine.Decision{Call: "c2", Answer: answers["c2"]})
					}
					require.Equal(t, c.outcome, w.results()[0].Outcome)
					require.Equal(t, c.content, w.results()[0].Content)
					require.Equal(t, `"red"`, w.results()[1].Content)
					want := 3
					if c.mode == gate.UseAsResult {
						want = 2
					}
					require.Equal(t, want, tool.ran())
					require.EqualValues(t, want, tkCount.Get(w.thread.Snapshot()))
					require.Equal(t, []string{"after_tool_execute c1 " + string(c.outcome)}, gbLines(log.all(), "after_tool_execute c1"))
					gbPaired(t, w.messages())
				})
			}
		}
	}
}

// A tool that goes on asking gets its last word from Limits.PhaseRounds, wherever it is
// asked, and the run goes on.
func TestToolsThatAskTooMuch(t *testing.T) {
	tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
		config := func() engine.Config {
			c := tkChatConfig(1000, tkCalls(1), &gbLog{})
			c.Limits.PhaseRounds = 5
			return c
		}
		w := begin(config())
		res := w.say("go")
		for range 5 {
			require.Equal(t, phase.Waiting, res.Status)
			w = then(w, config())
			res = w.resume(engine.Decision{Answer: tkYes(`"x"`)})
		}
		require.Equal(t, phase.Done, res.Status)
		require.Equal(t, "error: ask asked 5 times and still has no result", w.one().Content)
		require.EqualValues(t, 5, tkCount.Get(w.thread.Snapshot()), "what came with the refused question is dropped")
	})
	c := tkChatConfig(1000, tkCalls(1), &gbLog{})
	c.Resolver = tkInPlace(func(gate.Ticket) phase.Answer { return tkYes(`"x"`) })
	w := gbNew(t, c)
	require.Equal(t, phase.Done, w.say("go").Status)
	require.Contains(t, w.one().Content, "asked 16 times")
}
