package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// tkMove takes a waiting world to where it goes on.
type tkMove func(w *gbWorld, c engine.Config) *gbWorld

// tkPlaces runs a test in a bubble of its own for each place where a waiting run can
// go on: its own engine, one that imported the thread, and one that opened it from the
// journal. c is called for each engine.
func tkPlaces(t *testing.T, test func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove)) {
	t.Helper()
	inBubble := func(name string, begin func(*testing.T) func(engine.Config) *gbWorld, then tkMove) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, begin(t), then) })
		})
	}
	plain := func(t *testing.T) func(engine.Config) *gbWorld {
		return func(c engine.Config) *gbWorld { return gbNew(t, c) }
	}
	inBubble("same engine", plain, func(w *gbWorld, _ engine.Config) *gbWorld { return w })
	inBubble("imported", plain, func(w *gbWorld, c engine.Config) *gbWorld { return w.elsewhere(c) })
	var store *memstore.Store
	inBubble("journal", func(t *testing.T) func(engine.Config) *gbWorld {
		store = memstore.New(memstore.Options{})
		return func(c engine.Config) *gbWorld { c.Journal = store; return gbNew(t, c) }
	}, func(w *gbWorld, c engine.Config) *gbWorld { return tkOpen(w, c, store) })
}

// tkOpen opens the world's thread from the journal in another engine.
func tkOpen(w *gbWorld, c engine.Config, journal engine.Journal) *gbWorld {
	w.t.Helper()
	c.Journal = journal
	other := gbNew(w.t, c)
	other.spec = w.spec
	var err error
	other.thread, err = other.engine.OpenThread(w.t.Context(), "thread")
	require.NoError(w.t, err)
	return other
}

// tkAskers are the ways to ask t about calls of the tool ask, and the tool. A tool that
// asks by itself, and the others, tell what they were answered.
func tkAskers(t gate.Ticket) map[string]func() (*gbTool, []engine.Plugin) {
	told := func(pc *phase.Context) engine.Output {
		a, ok := pc.Answer()
		return engine.Text(fmt.Sprintf("ran: %v %s", ok && a.Approved, a.Value))
	}
	plain := func(more engine.Plugin) (*gbTool, []engine.Plugin) {
		tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) { return told(pc), nil })
		return tool, []engine.Plugin{gbTools(tool), more}
	}
	return map[string]func() (*gbTool, []engine.Plugin){
		"gate": func() (*gbTool, []engine.Plugin) { return plain(rsAsker(t)) },
		"action": func() (*gbTool, []engine.Plugin) {
			return plain(rsHold(phase.BeforeToolExecute, engine.SuspendCall.New(t)))
		},
		"tool": func() (*gbTool, []engine.Plugin) {
			tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
				if len(pc.Answers()) == 0 {
					return engine.Output{Ask: &t}, nil
				}
				return told(pc), nil
			})
			return tool, []engine.Plugin{gbTools(tool)}
		},
	}
}

// Capability M5. Capability A14. A question with a lifetime stands until then, and is
// answered by its default at the next Resume after that, wherever that is. Who answers
// later is refused, and nothing changes.
func TestQuestionsExpire(t *testing.T) {
	const life = time.Hour
	for _, c := range []struct {
		def      gate.Default
		fallback inference.JSON
		mode     gate.ResumeMode
		outcome  inference.Outcome
		content  string
	}{
		{gate.NoDefault, "", gate.PassToTool, inference.OutcomeCancelled, "called off: nobody answered in time"},
		{gate.DefaultCancel, "", gate.PassToTool, inference.OutcomeCancelled, "called off: nobody answered in time"},
		{gate.DefaultNo, "", gate.UseAsResult, inference.OutcomeDenied, "denied: nobody answered in time, and the default is no"},
		{gate.DefaultYes, "", gate.PassToTool, inference.OutcomeOK, "ran: true "},
		{gate.DefaultYes, `"blue"`, gate.PassToTool, inference.OutcomeOK, `ran: true "blue"`},
		{gate.DefaultYes, `"blue"`, gate.UseAsResult, inference.OutcomeSubstituted, `"blue"`},
		{gate.DefaultNo, `"blue"`, gate.PassToTool, inference.OutcomeDenied, "denied: nobody answered in time, and the default is no"},
	} {
		ticket := gate.Ticket{Kind: gate.Text, Message: "Colour?", Default: c.def, Fallback: c.fallback, Mode: c.mode, Lifetime: life}
		for name, asker := range tkAskers(ticket) {
			t.Run(fmt.Sprintf("%s/%s %s %s", name, c.def, c.fallback, c.mode), func(t *testing.T) {
				tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
					var log gbLog
					config := func() engine.Config {
						_, plugins := asker()
						return engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: append(plugins, gbProbe(&log))}
					}
					w := begin(config())
					asked := time.Now()
					res := w.say("go")
					require.Equal(t, phase.Waiting, res.Status, "a default with a lifetime waits for it")
					first := res.Tickets[0]
					require.True(t, asked.Add(life).Equal(first.Until))
					time.Sleep(life - 1)
					w = then(w, config())
					require.Equal(t, []gate.Ticket{first}, w.resume().Tickets, "it stands, and its end does not move")
					time.Sleep(time.Nanosecond)
					require.Equal(t, []gate.Ticket{first}, w.thread.Tickets())
					w = then(w, config())
					for _, late := range []engine.Decision{rsYes("c1"), rsNo("c1", "no"), {Answer: phase.Answer{Ticket: first.ID, Cancel: true}}, {}} {
						w.refused(engine.ErrLate, 0, late)
					}
					res = w.resume()
					require.Equal(t, phase.Done, res.Status)
					require.Equal(t, c.outcome, w.one().Outcome)
					require.Equal(t, c.content, w.one().Content)
					answered := gbOf[engine.TicketAnswered](w.events)
					require.Len(t, answered, 1)
					require.Equal(t, "expiry", answered[0].By)
					require.Equal(t, c.def == gate.DefaultYes, answered[0].Approved)
					require.Equal(t, []string{"after_tool_execute c1 " + string(c.outcome)}, gbLines(log.all(), "after_tool"))
				})
			})
		}
	}
}

// Capability A14. Of several open questions those expire whose time is over. A batch
// with a decision about one of them is refused as a whole.
func TestOneOfSeveralQuestionsExpires(t *testing.T) {
	tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
		var bodies gbLog
		config := func() engine.Config {
			tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
				bodies.add("%s", pc.Call().ID)
				return engine.Text("ran"), nil
			})
			tickets := map[string]gate.Ticket{
				"c1": {Lifetime: time.Minute, Default: gate.DefaultYes},
				"c2": {Lifetime: time.Hour, Default: gate.DefaultYes},
				"c3": {},
			}
			asker := gbGate("asker", func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
				return gate.Suspend(tickets[pc.Call().ID]), nil
			})
			return engine.Config{
				Model:   gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "ask", ""), gbCall("c3", "ask", ""))),
				Plugins: []engine.Plugin{gbTools(tool), asker},
			}
		}
		w := begin(config())
		w.say("go")
		w = then(w, config())
		time.Sleep(2 * time.Minute)
		w.refused(engine.ErrLate, 1, rsYes("c2"), rsNo("c1", "no"))
		res := w.resume(rsNo("c2", "not now"))
		require.Equal(t, []string{"c1 ok", "c2 denied"}, gbOutcomes(w.results()))
		require.Len(t, res.Tickets, 1)
		require.Equal(t, "c3", res.Tickets[0].Call)
		var by []string
		for _, a := range gbOf[engine.TicketAnswered](w.events) {
			by = append(by, a.Call+" "+a.By)
		}
		require.Equal(t, []string{"c2 decision", "c1 expiry"}, by, "what somebody decided comes first")
		time.Sleep(1000 * time.Hour)
		w = then(w, config())
		require.Len(t, w.resume().Tickets, 1, "a question without a lifetime stands for ever")
		require.Equal(t, phase.Done, w.resume(rsYes("c3")).Status)
		require.Equal(t, []string{"c1", "c3"}, bodies.all())
		gbPaired(t, w.messages())
	})
}

// A withheld result stays hidden when nobody releases it in time, unless its default is
// yes.
func TestWithheldResultExpires(t *testing.T) {
	for def, want := range map[gate.Default]string{
		gate.NoDefault:     "called off: nobody answered in time",
		gate.DefaultCancel: "called off: nobody answered in time",
		gate.DefaultNo:     "denied: nobody answered in time, and the default is no",
		gate.DefaultYes:    "the result",
	} {
		tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
			tool := gbToolOf("ask", func(context.Context, *phase.Context) (engine.Output, error) {
				return engine.Output{Content: "the result", Details: `{"n":1}`}, nil
			})
			config := func() engine.Config {
				hold := engine.WithholdResult.New(gate.Ticket{Lifetime: time.Minute, Default: def})
				return engine.Config{
					Model:   gbScript(gbAsk(gbCall("c1", "ask", ""))),
					Plugins: []engine.Plugin{gbTools(tool), rsHold(phase.AfterToolExecute, hold)},
				}
			}
			w := begin(config())
			require.Equal(t, phase.Waiting, w.say("go").Status)
			w = then(w, config())
			time.Sleep(time.Minute)
			w.refused(engine.ErrLate, 0, rsYes("c1"))
			require.Equal(t, phase.Done, w.resume().Status)
			require.Equal(t, want, w.one().Content)
			if def != gate.DefaultYes {
				require.Empty(t, w.one().Details)
			}
			require.Equal(t, 1, tool.ran())
		})
	}
}

// A resolver has as long as the question stands. One that is too slow, deaf or gone then
// leaves it to the default; one that is in time counts.
func TestSlowResolvers(t *testing.T) {
	const life = time.Minute
	silent := func(wait time.Duration, deaf bool) gate.ResolverFunc {
		return func(ctx context.Context, _ gate.Ticket) (phase.Answer, error) {
			if deaf {
				time.Sleep(wait)
			} else {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return phase.Answer{Approved: true}, ctx.Err()
				}
			}
			return phase.Answer{Approved: true, Reason: "by hand"}, nil
		}
	}
	for name, resolver := range map[string]gate.ResolverFunc{
		"slow": silent(2*life, false),
		"deaf": silent(2*life, true),
		"gone": func(context.Context, gate.Ticket) (phase.Answer, error) {
			time.Sleep(life)
			return phase.Answer{}, gate.ErrLeftOpen
		},
	} {
		for def, want := range map[gate.Default]inference.Outcome{
			gate.NoDefault: inference.OutcomeCancelled, gate.DefaultYes: inference.OutcomeOK,
			gate.DefaultNo: inference.OutcomeDenied, gate.DefaultCancel: inference.OutcomeCancelled,
		} {
			for asker, make := range tkAskers(gate.Ticket{Lifetime: life, Default: def}) {
				t.Run(fmt.Sprintf("%s/%s/%s", name, asker, def), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						_, plugins := make()
						w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Resolver: resolver})
						start := time.Now()
						require.Equal(t, phase.Done, w.say("go").Status)
						require.Equal(t, life, time.Since(start))
						require.Equal(t, want, w.one().Outcome)
						answered := gbOf[engine.TicketAnswered](w.events)
						require.Len(t, answered, 1)
						require.Equal(t, "expiry", answered[0].By)
						require.Empty(t, gbOf[engine.Warning](w.events), "the default was foreseen")
						time.Sleep(2 * life)
					})
				})
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		_, plugins := tkAskers(gate.Ticket{Lifetime: life, Default: gate.DefaultNo})["tool"]()
		w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Resolver: silent(life-1, false)})
		w.say("go")
		require.Equal(t, "resolver", gbOf[engine.TicketAnswered](w.events)[0].By)
		require.Equal(t, inference.OutcomeOK, w.one().Outcome)
	})
	synctest.Test(t, func(t *testing.T) {
		_, plugins := tkAskers(gate.Ticket{Lifetime: life, Default: gate.DefaultYes})["gate"]()
		left := gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return phase.Answer{}, gate.ErrLeftOpen })
		w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Resolver: left})
		require.Equal(t, phase.Waiting, w.say("go").Status, "who leaves it open before its end does not decide")
		require.Equal(t, phase.Done, w.resume(rsYes("c1")).Status)
	})
}

// The time that others are asked counts: a question that is over before its turn comes
// is not asked, and one that has some time left is asked for no longer.
func TestQuestionsExpireWhileOthersAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked gbLog
		tool := gbToolOf("ask", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
			if a, ok := pc.Answer(); ok {
				return engine.Text(a.Reason), nil
			}
			return engine.Output{Ask: &gate.Ticket{Lifetime: time.Minute, Default: gate.DefaultYes}}, nil
		})
		start := time.Now()
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "ask", ""), gbCall("c3", "ask", ""))),
			Plugins: []engine.Plugin{gbTools(tool)},
			Resolver: gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
				asked.add("%s after %s", ticket.Call, time.Since(start))
				time.Sleep(40 * time.Second)
				return phase.Answer{Approved: true, Reason: "by hand"}, nil
			}),
		})
		w.spec.ToolExecution = engine.ToolsParallel
		w.say("go")
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, []string{"c1 after 0s", "c2 after 40s"}, asked.all())
		var contents []string
		for _, r := range w.results() {
			contents = append(contents, r.Content)
		}
		require.Equal(t, []string{"by hand", "", ""}, contents)
		time.Sleep(time.Minute)
	})
}

// Capability M5. Without a user interface every question of every kind has its stated
// default at once: yes with its value or without one, no, or called off.
func TestEveryKindHasADefault(t *testing.T) {
	values := map[gate.TicketKind]inference.JSON{
		gate.Confirm: "", gate.Text: `""`, gate.Choice: `"b"`, gate.MultiChoice: `[]`, gate.Form: `{}`,
	}
	for _, kind := range []gate.TicketKind{gate.Confirm, gate.Text, gate.Choice, gate.MultiChoice, gate.Form, gate.Secret} {
		for def, want := range map[gate.Default]string{
			gate.DefaultYes:    "ok ran: true " + string(values[kind]),
			gate.DefaultNo:     "denied denied: nobody is there to ask, and the default is no",
			gate.DefaultCancel: "cancelled called off: nobody is there to ask",
		} {
			ticket := gate.Ticket{Kind: kind, Default: def, Mode: gate.PassToTool}
			if kind == gate.Choice || kind == gate.MultiChoice {
				ticket.Choices = gate.Choices("a", "b")
			}
			if def == gate.DefaultYes {
				ticket.Fallback = values[kind]
			}
			for asker, make := range tkAskers(ticket) {
				t.Run(fmt.Sprintf("%s/%s/%s", kind, def, asker), func(t *testing.T) {
					_, plugins := make()
					w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins})
					require.Equal(t, phase.Done, w.say("go").Status)
					if kind == gate.Secret && def == gate.DefaultYes {
						require.Contains(t, w.one().Content, "asks for a secret with a default of yes")
						require.True(t, w.one().IsError)
						return
					}
					require.Equal(t, want, string(w.one().Outcome)+" "+w.one().Content)
				})
			}
		}
	}
}
