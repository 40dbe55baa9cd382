package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// rsWriter lets a list of lines be written to.
type rsWriter struct{ log *gbLog }

func (w rsWriter) Write(p []byte) (int, error) {
	w.log.add("%s", p)
	return len(p), nil
}

// rsLogger returns a logger that writes everything into log.
func rsLogger(log *gbLog) *slog.Logger {
	return slog.New(slog.NewTextHandler(rsWriter{log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Capability A14. A run that is ended while it waits needs no answers: when it goes
// on, its calls get results that say so, its tools do not run, and RunEnd comes
// once. Decisions that come along do not change that.
func TestEndWhileWaiting(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for name, ds := range map[string][]engine.Decision{"no decision": nil, "one": {rsYes("c1")}, "all": {rsYes("c1"), rsYes("c3")}} {
			t.Run(string(exec)+" "+name, func(t *testing.T) {
				rsPlaces(t, func(t *testing.T, then func(*gbWorld, engine.Config) *gbWorld) {
					log := &gbLog{}
					tool := gbToolOf("ask", nil)
					config := func() engine.Config {
						return engine.Config{
							Model:   gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "free", ""), gbCall("c3", "ask", ""))),
							Plugins: []engine.Plugin{gbTools(tool, gbToolOf("free", nil)), rsAsker(gate.Ticket{}), gbProbe(log)},
						}
					}
					w := gbNew(t, config())
					w.spec.ToolExecution = exec
					w.say("go")
					var cmd phase.Command
					cmd.EndRun("closing_time", "go home")
					_, err := w.thread.Submit(t.Context(), "admin", cmd)
					require.NoError(t, err)
					require.Empty(t, gbLines(log.all(), "run_end"), "nothing happens before the run goes on")
					w = then(w, config())
					res := w.resume(ds...)
					require.Equal(t, phase.Done, res.Status)
					require.Equal(t, phase.Reason("closing_time"), res.Reason)
					require.NoError(t, res.Err)
					require.Empty(t, res.Tickets)
					require.Zero(t, tool.ran())
					require.Equal(t, []string{"c2 ok", "c1 not_run", "c3 not_run"}, gbOutcomes(w.results()))
					require.Contains(t, w.results()[1].Content, "closing_time")
					require.Len(t, gbLines(log.all(), "run_end"), 1)
					require.Equal(t, phase.ReasonNatural, w.say("hello?").Reason)
				})
			})
		}
	}
}

// Fault B29. A run that is cancelled after it went on has one result for every call,
// the finished ones included, and the thread can be used again.
func TestCancelWhileResumed(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		log := &gbLog{}
		ctx, cancel := context.WithCancel(t.Context())
		boom := errors.New("boom")
		tool := gbToolOf("ask", func(ctx context.Context, pc *phase.Context) (engine.Output, error) {
			if pc.Call().ID == "c2" {
				cancel()
				return engine.Output{}, boom
			}
			return engine.Text("ok"), nil
		})
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "ask", ""), gbCall("c3", "ask", ""), gbCall("c4", "free", ""))),
			Plugins: []engine.Plugin{gbTools(tool, gbToolOf("free", nil)), rsAsker(gate.Ticket{}), gbProbe(log)},
			Limits:  engine.Limits{Concurrency: 1},
		})
		w.spec.ToolExecution = exec
		w.say("go")
		res, err := w.thread.Resume(ctx, w.spec, engine.Input{}, rsYes("c1"), rsYes("c2"))
		require.NoError(t, err)
		require.Equal(t, phase.Done, res.Status)
		require.Equal(t, phase.ReasonCancelled, res.Reason)
		require.Equal(t, []string{"c4 ok", "c1 ok", "c2 cancelled", "c3 not_run"}, gbOutcomes(w.results()))
		require.Len(t, gbLines(log.all(), "run_end"), 1)
		again := w.say("hello?")
		require.Equal(t, phase.ReasonNatural, again.Reason)
		require.Equal(t, 2, tool.ran())
	}
}

// A run that waits holds no goroutine, not even one of an observer's or a
// deadline's, and the time that it waits counts against no limit.
func TestWaitingCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := gbGoroutines() // of former tests that leave some behind on purpose
		tool := gbToolOf("ask", nil)
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "ask", ""))),
			Plugins: []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{})},
			Limits:  engine.Limits{HookTimeout: time.Second, ToolTimeout: time.Second, ActionTimeout: time.Second},
		})
		w.spec.StopConditions = []engine.StopCondition{{Type: engine.StopTypeTimeout, Seconds: 60}}
		require.Equal(t, phase.Waiting, w.say("go").Status)
		synctest.Wait()
		require.LessOrEqual(t, gbGoroutines(), before)
		time.Sleep(72 * time.Hour)
		require.LessOrEqual(t, gbGoroutines(), before)
		res := w.resume(rsYes("c1"))
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.Less(t, res.Elapsed, time.Hour)
		require.Equal(t, inference.OutcomeOK, w.one().Outcome)
	})
}

// Capability A14. A run that waited tells when it goes on and how its tickets were
// answered; its step ends once. Each part of the run numbers its events from 1.
func TestEventsOfAResumedRun(t *testing.T) {
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "ask", ""))),
		Plugins: []engine.Plugin{gbTools(gbToolOf("ask", nil)), rsAsker(gate.Ticket{})},
	})
	numbered := func(events []engine.Event, run string) {
		for i, e := range events {
			require.Equal(t, uint64(i+1), e.Head().Seq, e.Type())
			require.Equal(t, run, e.Head().Run)
		}
	}
	res := w.say("go")
	first := w.events.all()
	numbered(first, res.Run)
	require.IsType(t, engine.RunSuspended{}, first[len(first)-1])
	require.Len(t, gbOf[engine.StepStarted](w.events), 1)
	require.Empty(t, gbOf[engine.StepFinished](w.events))

	yes, no := rsYes("c1"), rsNo("c2", "no")
	w.resume(yes)
	second := w.events.all()[len(first):]
	numbered(second, res.Run)
	resumed, ok := second[0].(engine.RunResumed)
	require.True(t, ok, "%T", second[0])
	require.Equal(t, 1, resumed.Step)
	require.Equal(t, "agent", resumed.Agent)
	require.IsType(t, engine.RunSuspended{}, second[len(second)-1])
	require.Equal(t, w.thread.Tickets(), second[len(second)-1].(engine.RunSuspended).Tickets)
	require.Empty(t, gbOf[engine.StepFinished](w.events))

	w.resume(no)
	third := w.events.all()[len(first)+len(second):]
	numbered(third, res.Run)
	require.IsType(t, engine.RunResumed{}, third[0])
	require.IsType(t, engine.RunFinished{}, third[len(third)-1])
	require.Len(t, gbOf[engine.RunStarted](w.events), 1)
	require.Len(t, gbOf[engine.RunFinished](w.events), 1)
	var started, finished []int
	for _, e := range gbOf[engine.StepStarted](w.events) {
		started = append(started, e.Step)
	}
	for _, e := range gbOf[engine.StepFinished](w.events) {
		finished = append(finished, e.Step)
	}
	require.Equal(t, []int{1, 2}, started)
	require.Equal(t, []int{1, 2}, finished)
	answered := gbOf[engine.TicketAnswered](w.events)
	require.Len(t, answered, 2)
	require.Equal(t, engine.TicketAnswered{Header: answered[0].Header, Ticket: res.Tickets[0].ID, Call: "c1", Approved: true, By: "decision"}, answered[0])
	require.Equal(t, engine.TicketAnswered{Header: answered[1].Header, Ticket: res.Tickets[1].ID, Call: "c2", Reason: "no", By: "decision"}, answered[1])
	require.Len(t, gbOf[engine.ToolFinished](w.events), 2)
	// The order of revisions is that of events, over all parts.
	last := uint64(0)
	for _, e := range w.events.all() {
		require.GreaterOrEqual(t, e.Head().Revision, last)
		last = e.Head().Revision
	}
}

// Capability A14. What the run used and how far it came is counted over its parts:
// limits hold for the whole run.
func TestLimitsHoldOverResumption(t *testing.T) {
	usage := inference.Usage{InputTokens: 10}
	asks := func(id string) gbStep {
		return func(context.Context, inference.Request) (inference.Response, error) {
			return inference.Response{Message: inference.Assistant("", gbCall(id, "ask", "")), Usage: usage, Stop: inference.StopToolUse}, nil
		}
	}
	for name, stop := range map[phase.Reason]engine.StopCondition{
		phase.ReasonTokenBudget: {Type: engine.StopTypeTokenBudget, Tokens: 20},
		phase.ReasonMaxRounds:   {Type: engine.StopTypeMaxRounds, Rounds: 2},
		phase.ReasonLoop:        {Type: engine.StopTypeLoopDetection, Repeats: 2},
	} {
		t.Run(string(name), func(t *testing.T) {
			config := func() engine.Config {
				return engine.Config{
					Model:   gbScript(asks("c1"), asks("c2"), asks("c3"), asks("c4")),
					Plugins: []engine.Plugin{gbTools(gbToolOf("ask", nil)), rsAsker(gate.Ticket{})},
				}
			}
			w := gbNew(t, config())
			w.spec.StopConditions = []engine.StopCondition{stop}
			w.say("go")
			w = w.elsewhere(config())
			require.Equal(t, phase.Waiting, w.resume(rsYes("c1")).Status)
			w = w.elsewhere(config())
			res := w.resume(rsYes("c2"))
			require.Equal(t, name, res.Reason)
			require.Equal(t, 2, res.Steps)
			require.Equal(t, int64(20), res.Usage.Total())
		})
	}
}

// A delegate whose child waits has nobody to give the answer to: the call gets an
// error that says so, and the parent neither waits nor is stuck. A delegate whose
// own call waited runs its child when it goes on, and what resolves tickets then
// answers for the child too.
func TestResumeAndDelegates(t *testing.T) {
	tool := gbToolOf("ask", nil)
	config := func() engine.Config {
		c := gbBoss(gbScript(gbAsk(gbCall("c1", "ask", ""))))
		c.Plugins = []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{}),
			gbGate("careful", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				if pc.Tool().Kind == "delegate" {
					return gate.Suspend(gate.Ticket{Message: "Delegate?"}), nil
				}
				return gate.Abstain(), nil
			})}
		return c
	}
	wait := func() (*gbWorld, *engine.Result) {
		w := gbNew(t, config())
		w.spec.Delegates = []string{"worker"}
		res := w.say("go")
		require.Equal(t, phase.Waiting, res.Status)
		require.Len(t, res.Tickets, 1)
		return w.elsewhere(config()), res
	}
	w, _ := wait()
	res := w.resume(rsYes("d1"))
	require.Equal(t, phase.Done, res.Status)
	require.Equal(t, inference.OutcomeError, w.one().Outcome)
	require.Contains(t, w.one().Content, "waits for an answer")
	require.Zero(t, tool.ran())
	ended := gbOf[engine.RunFinished](w.events)
	require.Len(t, ended, 2, "the child has its end too, before the parent's")
	require.Equal(t, "worker", ended[0].Agent)
	require.Equal(t, phase.ReasonCancelled, ended[0].Reason)
	require.Equal(t, phase.ReasonNatural, w.say("hello?").Reason)

	w, _ = wait()
	in := engine.Input{Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
		return phase.Answer{Approved: true}, nil
	})}
	res, err := w.thread.Resume(t.Context(), w.spec, in, rsYes("d1"))
	require.NoError(t, err)
	require.Equal(t, phase.Done, res.Status)
	require.Equal(t, inference.OutcomeOK, w.one().Outcome)
	require.Equal(t, 1, tool.ran())
	for i, e := range w.events.all() {
		require.Equal(t, uint64(i+1), e.Head().Seq)
	}
}
