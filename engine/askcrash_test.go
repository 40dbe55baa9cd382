package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// tkDying is a journal whose process dies after a number of appends: nothing is kept any
// more. A negative number lives for ever.
type tkDying struct {
	*memstore.Store
	mu   sync.Mutex
	left int
	dead bool
}

func (d *tkDying) Append(ctx context.Context, c engine.JournalCommit) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead = d.dead || d.left == 0; d.dead {
		return 0, errors.New("the process is dead")
	}
	d.left--
	return d.Store.Append(ctx, c)
}

// tkRerun is a tool that may run twice.
type tkRerun struct{ *gbTool }

func (tkRerun) Recovery() engine.Recovery { return engine.Rerun }

// tkLife runs the agent on the thread "thread" of a store in one process, from wherever
// it stands, until it is done or the process dies. answer is asked about one ticket after
// the other. done is false if it died.
func tkLife(t testing.TB, c engine.Config, store *memstore.Store, appends int, answer func(gate.Ticket) engine.Decision) (w *gbWorld, done bool) {
	t.Helper()
	journal := &tkDying{Store: store, left: appends}
	c.Journal = journal
	c.NewID = nil
	w = gbNew(t, c)
	var err error
	w.thread, err = w.engine.OpenThread(t.Context(), "thread")
	require.NoError(t, err)
	for n := 0; ; n++ {
		require.Less(t, n, 100, "the run does not come to an end")
		switch phase.RunLifecycle.Get(w.thread.Snapshot()).Status {
		case phase.Created:
			_, err = w.thread.Run(t.Context(), w.spec, engine.Prompt("go"))
		case phase.Running:
			_, err = w.thread.Resume(t.Context(), w.spec, engine.Input{})
		case phase.Waiting:
			open := w.thread.Tickets()
			require.NotEmpty(t, open)
			for _, ticket := range open {
				require.NotEmpty(t, ticket.ID, "a question that waits can be named")
				require.NotEmpty(t, ticket.Fingerprint)
			}
			_, err = w.thread.Resume(t.Context(), w.spec, engine.Input{}, answer(open[0]))
		default:
			return w, !journal.dead
		}
		if journal.dead {
			return w, false
		}
		require.NoError(t, err)
	}
}

// Fault B34. Capability A14. A process may die at any commit of a run that asks, and be
// followed by others: every question is asked until it is answered, what was answered
// is not asked again, and the end is the same, with one result per call. In particular
// nothing that was denied runs, and nothing that was withheld is shown.
func TestQuestionsSurviveCrashes(t *testing.T) {
	tell := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
		a, _ := pc.Answer()
		return engine.Text("the result of " + string(pc.Call().Args) + " " + string(a.Value)), nil
	})
	hold := rsHold(phase.AfterToolExecute, engine.WithholdResult.New(gate.Ticket{Message: "Show?"}))
	before := gbHook("before", phase.BeforeToolExecute, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		cmd.Schedule(engine.SuspendCall.New(gate.Ticket{Message: "Really?"}))
		return cmd, nil
	})
	pay := gbVote("pay", gate.Suspend(gate.Ticket{Message: "Pay?"}))
	yes, no := phase.Answer{Approved: true}, phase.Answer{Reason: "no"}
	for name, c := range map[string]struct {
		tool    engine.Tool
		plugins []engine.Plugin
		answers map[string]phase.Answer
		want    string
		never   string // in no result
		bodies  bool   // may run
	}{
		"gate, yes":     {tell, []engine.Plugin{pay}, map[string]phase.Answer{"Pay?": yes}, "the result of {} ", "", true},
		"gate, edit":    {tell, []engine.Plugin{pay}, map[string]phase.Answer{"Pay?": {Approved: true, Args: `{"n":2}`}}, `the result of {"n":2} `, "of {} ", true},
		"gate, no":      {tell, []engine.Plugin{pay}, map[string]phase.Answer{"Pay?": no}, "denied: no", "the result", false},
		"action, yes":   {tell, []engine.Plugin{before}, map[string]phase.Answer{"Really?": yes}, "the result of {} ", "", true},
		"action, no":    {tell, []engine.Plugin{before}, map[string]phase.Answer{"Really?": no}, "denied: no", "the result", false},
		"withheld, yes": {tell, []engine.Plugin{hold}, map[string]phase.Answer{"Show?": yes}, "the result of {} ", "", true},
		"withheld, no":  {tell, []engine.Plugin{hold}, map[string]phase.Answer{"Show?": no}, "denied: no", "the result", true},
		"denied, and what that gives withheld": {tell, []engine.Plugin{pay, hold}, map[string]phase.Answer{"Pay?": no, "Show?": yes},
			"denied: no", "the result", false},
		"all three": {tell, []engine.Plugin{pay, before, hold}, map[string]phase.Answer{"Pay?": yes, "Really?": yes, "Show?": no},
			"denied: no", "the result", true},
		"tool":           {tkChat(2, gate.Ticket{}), nil, map[string]phase.Answer{"Question 1 of c1?": tkYes(`"a"`), "Question 2 of c1?": tkYes(`"b"`)}, `"a" "b"`, "", true},
		"tool, no":       {tkChat(2, gate.Ticket{}), nil, map[string]phase.Answer{"Question 1 of c1?": tkYes(`"a"`), "Question 2 of c1?": no}, "denied: no", "", true},
		"tool, withheld": {tkChat(1, gate.Ticket{}), []engine.Plugin{hold}, map[string]phase.Answer{"Question 1 of c1?": tkYes(`"a"`), "Show?": yes}, `"a"`, "", true},
	} {
		for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			t.Run(name+"/"+string(exec), func(t *testing.T) {
				crashes := 0
				for at := 0; ; at++ {
					store := memstore.New(memstore.Options{})
					tool := c.tool.(*gbTool)
					ran := tool.ran()
					config := func() engine.Config {
						return engine.Config{
							Model: gbScript(gbAsk(gbCall("c1", "ask", "{}"), gbCall("c2", "plain", ""))),
							Plugins: append([]engine.Plugin{gbTools(tkRerun{tool}, tkRerun{gbToolOf("plain", nil)}),
								gaPlugin("keys", func(r *engine.Registrar) { r.Key(tkCount) })}, c.plugins...),
						}
					}
					asked := map[string]int{} // decisions that were kept, by ticket
					ids := map[string]string{}
					answer := func(ticket gate.Ticket) engine.Decision {
						if asked[ticket.ID]++; asked[ticket.ID] > 3 {
							t.Errorf("crash at %d: %s %q was answered in each process and is still open", at, ticket.ID, ticket.Message)
						}
						once := ticket.Call + " " + ticket.Message
						if id, ok := ids[once]; ok && id != ticket.ID {
							t.Errorf("crash at %d: %q was asked as %s and as %s", at, once, id, ticket.ID)
						}
						ids[once] = ticket.ID
						a, ok := c.answers[ticket.Message]
						if ticket.Call == "c2" {
							a, ok = yes, true
						}
						require.True(t, ok, ticket.Message)
						return engine.Decision{ID: "d " + ticket.ID, Call: ticket.Call, Answer: a}
					}
					_, done := tkLife(t, config(), store, at, answer)
					if !done {
						crashes++
						// The next one dies too, so that what comes after a crash is cut off as well.
						_, _ = tkLife(t, config(), store, at%5, answer)
					}
					w, finished := tkLife(t, config(), store, -1, answer)
					require.True(t, finished)
					require.Len(t, w.results(), 2, "crash at %d", at)
					got := tkResults(w)["c1"].Content
					require.Equal(t, c.want, got, "crash at %d", at)
					require.Equal(t, "plain ran", tkResults(w)["c2"].Content)
					if c.never != "" {
						require.NotContains(t, strings.Join(gbTexts(w.messages()), "\n"), c.never, "crash at %d", at)
					}
					if !c.bodies {
						require.Equal(t, ran, tool.ran(), "crash at %d: it was denied", at)
					}
					if done {
						require.Greater(t, crashes, 10)
						return
					}
				}
			})
		}
	}
}

// A run whose end was committed before its calls had results, and whose process ended
// then, gives them results when it goes on.
func TestEndedRunThatCrashedClosesItsCalls(t *testing.T) {
	for _, exec := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		for at, done := 0, false; !done; at++ {
			store := memstore.New(memstore.Options{})
			tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (out engine.Output, err error) {
				out.Content = "ran"
				if pc.Call().ID == "c2" {
					out.Command.EndRun("enough", "")
				}
				return out, nil
			})
			config := engine.Config{Model: gbScript(gbAsk(tkCalls(3)...)), Plugins: []engine.Plugin{gbTools(tkRerun{tool})}}
			_, done = tkLife(t, config, store, at, nil)
			w, _ := tkLife(t, config, store, -1, nil)
			gbPaired(t, w.messages())
			require.Len(t, w.results(), 3, fmt.Sprintf("%s, crash at %d", exec, at))
			require.Contains(t, []inference.Outcome{inference.OutcomeNotRun, inference.OutcomeOK, inference.OutcomeCancelled}, w.results()[2].Outcome)
		}
	}
}
