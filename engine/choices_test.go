package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// tkSchema is a checker that knows one schema: {"max":n} allows texts, lists and
// objects of at most n bytes.
func tkSchema(schema, value inference.JSON) error {
	var s struct {
		Max int `json:"max"`
	}
	if err := schema.Decode(&s); err != nil {
		return err
	}
	if len(value) > s.Max {
		return fmt.Errorf("longer than %d bytes: %s", s.Max, value)
	}
	return nil
}

// tkYes is an approving answer with a value.
func tkYes(value inference.JSON) phase.Answer { return phase.Answer{Approved: true, Value: value} }

// tkForms are tickets with answers that they refuse and one that they take.
var tkForms = []struct {
	name   string
	ticket gate.Ticket
	bad    []inference.JSON
	good   inference.JSON
}{
	{"text", gate.Ticket{Kind: gate.Text}, []inference.JSON{`5`, `null`, `{"a":1}`, `["x"]`, `"x" "y"`}, `"x"`},
	{"text by schema", gate.Ticket{Kind: gate.Text, Schema: `{"max":5}`}, []inference.JSON{``, `"abcdef"`, `1`}, `"abc"`},
	{"choice", gate.Ticket{Kind: gate.Choice, Choices: gate.Choices("a", "b")}, []inference.JSON{``, `"c"`, `""`, `"A"`, `["a"]`, `null`, `0`}, `"b"`},
	{"choice by schema", gate.Ticket{Kind: gate.Choice, Choices: gate.Choices("a", "long one"), Schema: `{"max":5}`}, []inference.JSON{`"long one"`, `"b"`}, `"a"`},
	{"multi choice", gate.Ticket{Kind: gate.MultiChoice, Choices: gate.Choices("a", "b", "c")}, []inference.JSON{``, `"a"`, `["a","d"]`, `["a",1]`, `null`, `{"a":true}`}, `["c","a"]`},
	{"no choice of many", gate.Ticket{Kind: gate.MultiChoice, Choices: gate.Choices("a", "b")}, []inference.JSON{`[""]`, `[null]`}, `[]`},
	{"confirm", gate.Ticket{Kind: gate.Confirm, Choices: gate.Choices("once", "always")}, []inference.JSON{`"never"`, `true`}, `"always"`},
	{"confirm without a value", gate.Ticket{Kind: gate.Confirm, Choices: gate.Choices("once", "always"), Schema: `{"max":9}`}, []inference.JSON{`"no"`}, ``},
	{"form", gate.Ticket{Kind: gate.Form, Schema: `{"max":20}`}, []inference.JSON{``, `[]`, `"x"`, `null`, `{"long":"0123456789"}`}, `{"x":[1,null]}`},
	{"texts with quotes", gate.Ticket{Kind: gate.Choice, Choices: gate.Choices(`say "hi"`, "ü<&>", "")}, []inference.JSON{`"say hi"`}, `"say \u0022hi\u0022"`},
	{"the empty text", gate.Ticket{Kind: gate.Choice, Choices: gate.Choices("", "a")}, []inference.JSON{`null`, ``}, `""`},
	{"secret", gate.Ticket{Kind: gate.Secret, Schema: `{"max":6}`}, []inference.JSON{``, `1234`, `"12345"`, `{"pin":1}`}, `"1234"`},
}

// Capability G6. Capability A14. An answer is of its question's kind, among its choices
// and as its schema wants it. One that is not is refused with its batch: nothing changes,
// and the question stays open. It makes no difference who asks, or who answers where.
func TestAnswersFitTheirQuestions(t *testing.T) {
	for _, c := range tkForms {
		for name, make := range tkAskers(c.ticket) {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				tkPlaces(t, func(t *testing.T, begin func(engine.Config) *gbWorld, then tkMove) {
					config := func() engine.Config {
						_, plugins := make()
						return engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Schemas: engine.SchemaCheckerFunc(tkSchema)}
					}
					w := begin(config())
					first := w.say("go").Tickets
					require.Len(t, first, 1)
					require.Equal(t, c.ticket.Choices, first[0].Choices)
					w = then(w, config())
					open := w.thread.Tickets() // saving may change how a JSON text is written
					require.Len(t, open, 1)
					for _, bad := range c.bad {
						if bad == "" && name != "tool" && c.ticket.Schema == "" && c.ticket.Choices == "" {
							continue // to approve a call is enough
						}
						err := w.refused(engine.ErrBadAnswer, 0, engine.Decision{ID: "d", Call: "c1", Answer: tkYes(bad)})
						require.Contains(t, err.Error(), "does not fit its ticket")
						if c.ticket.Kind == gate.Secret && len(bad) > 0 {
							require.NotContains(t, err.Error(), strings.Trim(string(bad), `"`))
						}
						require.Equal(t, open, w.thread.Tickets())
					}
					res := w.resume(engine.Decision{ID: "d", Call: "c1", Answer: tkYes(c.good)})
					require.Equal(t, phase.Done, res.Status, "and a good one is taken after that, under the same id")
					require.Equal(t, inference.OutcomeOK, w.one().Outcome)
				})
			})
		}
	}
}

// Capability G6. The same holds for one who answers in place: what does not fit leaves
// the question open, and what is wrong is in a warning.
func TestAnswersInPlaceFitTheirQuestions(t *testing.T) {
	for _, c := range tkForms {
		for name, make := range tkAskers(c.ticket) {
			for _, value := range append(c.bad, c.good) {
				if value == "" && value != c.good {
					continue
				}
				_, plugins := make()
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Schemas: engine.SchemaCheckerFunc(tkSchema),
					Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) { return tkYes(value), nil }),
				})
				res := w.say("go")
				if value == c.good {
					require.Equal(t, phase.Done, res.Status, "%s %s", name, value)
					require.Equal(t, inference.OutcomeOK, w.one().Outcome)
					continue
				}
				require.Equal(t, phase.Waiting, res.Status, "%s %s", name, value)
				require.Empty(t, gbOf[engine.TicketAnswered](w.events))
				warnings := gbOf[engine.Warning](w.events)
				require.Len(t, warnings, 1)
				require.Contains(t, warnings[0].Message, "does not fit its ticket")
				require.Equal(t, phase.Done, w.resume(engine.Decision{Answer: tkYes(c.good)}).Status)
			}
		}
	}
}

// A no needs no value, whatever was asked, and neither does calling it off.
func TestANoNeedsNoValue(t *testing.T) {
	for _, c := range tkForms {
		for want, answer := range map[inference.Outcome]phase.Answer{
			inference.OutcomeDenied: {Reason: "no"}, inference.OutcomeCancelled: {Cancel: true},
		} {
			_, plugins := tkAskers(c.ticket)["tool"]()
			w := gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Schemas: engine.SchemaCheckerFunc(tkSchema)})
			w.say("go")
			w.resume(engine.Decision{Answer: answer})
			require.Equal(t, want, w.one().Outcome, c.name)
		}
	}
}

// A checker that fails, panics, ends its goroutine or hangs accepts nothing, and costs
// no more than Limits.JournalTimeout.
func TestFaultySchemaCheckers(t *testing.T) {
	for name, check := range map[string]engine.SchemaCheckerFunc{
		"error":  func(_, _ inference.JSON) error { return errors.New("boom") },
		"panic":  func(_, _ inference.JSON) error { panic("boom") },
		"goexit": func(_, _ inference.JSON) error { runtime.Goexit(); return nil },
		"hang":   func(_, _ inference.JSON) error { time.Sleep(time.Hour); return nil },
		"nil":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, plugins := tkAskers(gate.Ticket{Kind: gate.Text, Schema: `{}`})["gate"]()
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Schemas: check,
					Limits: engine.Limits{JournalTimeout: time.Second},
				})
				w.say("go")
				start := time.Now()
				w.refused(engine.ErrBadAnswer, 0, engine.Decision{Answer: tkYes(`"x"`)})
				require.LessOrEqual(t, time.Since(start), time.Second)
				require.Equal(t, phase.Done, w.resume(rsNo("c1", "no")).Status)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// Capability M5. A question that nobody could answer, or whose own default does not fit
// it, is not asked: the call fails, and the reason says what to do about it.
func TestUnanswerableQuestionsAreNotAsked(t *testing.T) {
	checker := engine.SchemaCheckerFunc(tkSchema)
	for name, c := range map[string]struct {
		ticket  gate.Ticket
		schemas engine.SchemaChecker
		says    string
	}{
		"a schema and no checker":          {gate.Ticket{Kind: gate.Text, Schema: `{"max":9}`}, nil, "Config.Schemas has nobody to check"},
		"no such kind":                     {gate.Ticket{Kind: "poll"}, nil, `kind "poll"`},
		"no choices":                       {gate.Ticket{Kind: gate.Choice, Choices: gate.Choices()}, nil, "use gate.Choices"},
		"an empty list":                    {gate.Ticket{Kind: gate.Choice, Choices: `[]`}, nil, "use gate.Choices"},
		"choices of another form":          {gate.Ticket{Kind: gate.Choice, Choices: `{"a":1}`}, nil, "use gate.Choices"},
		"numbers as choices":               {gate.Ticket{Kind: gate.Choice, Choices: `[1,2]`}, nil, "use gate.Choices"},
		"a negative lifetime":              {gate.Ticket{Lifetime: -1}, nil, "negative lifetime"},
		"a fallback of the wrong kind":     {gate.Ticket{Kind: gate.Form, Default: gate.DefaultYes, Fallback: `[]`}, nil, "fallback that its own question does not allow"},
		"a fallback not among the choices": {gate.Ticket{Kind: gate.Choice, Choices: gate.Choices("a"), Fallback: `"b"`, Default: gate.DefaultYes}, nil, `"b" is not among`},
		"a fallback against the schema":    {gate.Ticket{Kind: gate.Text, Schema: `{"max":3}`, Fallback: `"long"`, Default: gate.DefaultYes}, checker, "longer than 3 bytes"},
		"a secret as the result":           {gate.Ticket{Kind: gate.Secret, Mode: gate.UseAsResult}, nil, "which the model would see"},
		"a secret that is known":           {gate.Ticket{Kind: gate.Secret, Fallback: `"hunter2"`}, nil, "which would be in state"},
	} {
		askers := tkAskers(c.ticket)
		askers["result"] = func() (*gbTool, []engine.Plugin) {
			tool := gbToolOf("ask", nil)
			return tool, []engine.Plugin{gbTools(tool), rsHold(phase.AfterToolExecute, engine.WithholdResult.New(c.ticket))}
		}
		for asker, make := range askers {
			t.Run(name+"/"+asker, func(t *testing.T) {
				tool, plugins := make()
				w := gbNew(t, engine.Config{
					Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Schemas: c.schemas,
					Resolver: gate.ResolverFunc(func(context.Context, gate.Ticket) (phase.Answer, error) {
						t.Error("it was asked")
						return tkYes(`"x"`), nil
					}),
				})
				require.Equal(t, phase.Done, w.say("go").Status)
				require.Empty(t, gbOf[engine.TicketOpened](w.events))
				require.True(t, w.one().IsError)
				require.Contains(t, w.one().Content, c.says)
				require.NotContains(t, w.one().Content, "hunter2")
				require.NotContains(t, w.one().Content, "ask ran")
				if asker == "gate" || asker == "action" {
					require.Zero(t, tool.ran())
					require.Equal(t, inference.OutcomeBlocked, w.one().Outcome)
				}
			})
		}
	}
}

// A thread that waits for an answer by a schema, and is taken to an engine without a
// checker, gets no answer there but a no.
func TestSchemaWithoutACheckerElsewhere(t *testing.T) {
	make := tkAskers(gate.Ticket{Kind: gate.Text, Schema: `{"max":9}`})["gate"]
	config := func(schemas engine.SchemaChecker) engine.Config {
		_, plugins := make()
		return engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: plugins, Schemas: schemas}
	}
	w := gbNew(t, config(engine.SchemaCheckerFunc(tkSchema)))
	w.say("go")
	w = w.elsewhere(config(nil))
	err := w.refused(engine.ErrBadAnswer, 0, engine.Decision{Answer: tkYes(`"x"`)})
	require.Contains(t, err.Error(), "Config.Schemas has nobody to check answers by it")
	require.Equal(t, phase.Done, w.resume(rsNo("c1", "no")).Status)
}
