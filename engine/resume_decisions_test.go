package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
)

// rsTwo is a world whose run waits for two answers, about c1 and c2, after c0 ran
// without being asked about.
func rsTwo(t *testing.T, ticket gate.Ticket) (w *gbWorld, tool *gbTool, tickets []gate.Ticket) {
	t.Helper()
	tool = gbToolOf("ask", nil)
	w = gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c0", "free", ""), gbCall("c1", "ask", ""), gbCall("c2", "ask", ""))),
		Plugins: []engine.Plugin{gbTools(tool, gbToolOf("free", nil)), rsAsker(ticket)},
	})
	res := w.say("go")
	require.Equal(t, phase.Waiting, res.Status)
	require.Len(t, res.Tickets, 2)
	return w, tool, res.Tickets
}

// refused resumes with a batch that must be refused, and checks that it changed
// nothing.
func (w *gbWorld) refused(want error, index int, ds ...engine.Decision) *engine.DecisionError {
	w.t.Helper()
	revision, tickets, events := w.thread.Snapshot().Revision(), w.thread.Tickets(), len(w.events.all())
	res, err := w.thread.Resume(w.t.Context(), w.spec, engine.Input{}, ds...)
	require.ErrorIs(w.t, err, want)
	require.Nil(w.t, res)
	require.Equal(w.t, revision, w.thread.Snapshot().Revision(), "nothing changed")
	require.Equal(w.t, tickets, w.thread.Tickets())
	require.Len(w.t, w.events.all(), events, "nothing happened")
	var de *engine.DecisionError
	require.True(w.t, errors.As(err, &de))
	require.ErrorIs(w.t, err, engine.ErrDecision)
	require.Equal(w.t, index, de.Index)
	require.ErrorContains(w.t, err, "nothing was applied")
	return de
}

// Fault B27. A decision names its ticket by ticket id, by call id or by both. Without
// a name it is accepted while only one ticket is open.
func TestDecisionsFindTheirTickets(t *testing.T) {
	for name, address := range map[string]func(gate.Ticket) engine.Decision{
		"ticket": func(t gate.Ticket) engine.Decision { return engine.Decision{Answer: phase.Answer{Ticket: t.ID}} },
		"call":   func(t gate.Ticket) engine.Decision { return engine.Decision{Call: t.Call} },
		"both": func(t gate.Ticket) engine.Decision {
			return engine.Decision{Call: t.Call, Answer: phase.Answer{Ticket: t.ID}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, tool, tickets := rsTwo(t, gate.Ticket{})
			d := address(tickets[1])
			d.Answer.Approved = true
			res := w.resume(d)
			require.Equal(t, tickets[:1], res.Tickets)
			require.Equal(t, 1, tool.ran())
			require.Equal(t, []string{"c0 ok", "c2 ok"}, gbOutcomes(w.results()))
			res = w.resume(engine.Decision{Answer: phase.Answer{Approved: true}})
			require.Equal(t, phase.Done, res.Status)
			require.Equal(t, 2, tool.ran())
			require.Equal(t, []string{"c0 ok", "c2 ok", "c1 ok"}, gbOutcomes(w.results()))
		})
	}
}

// Fault B27. Fault F29. A decision that is badly addressed is a typed error that
// names it, and nothing changes, whatever else is in its batch; a following good
// batch works.
func TestBadlyAddressedDecisions(t *testing.T) {
	yes := engine.Decision{Answer: phase.Answer{Approved: true}}
	at := func(call, ticket string) engine.Decision {
		return engine.Decision{Call: call, Answer: phase.Answer{Ticket: ticket, Approved: true}}
	}
	withID := func(id string, d engine.Decision) engine.Decision { d.ID = id; return d }
	w, tool, tickets := rsTwo(t, gate.Ticket{})
	one, two := tickets[0].ID, tickets[1].ID

	w.refused(engine.ErrAmbiguous, 0, yes)
	w.refused(engine.ErrAmbiguous, 1, rsYes("c1"), yes)
	require.Contains(t, w.refused(engine.ErrUnknownTicket, 1, rsYes("c1"), rsYes("c9")).Error(), "c9")
	w.refused(engine.ErrUnknownTicket, 0, rsYes("c9"), rsYes("c1"))
	w.refused(engine.ErrUnknownTicket, 0, at("", "nobody/1/c1/1"))
	w.refused(engine.ErrUnknownTicket, 0, at("", strings.Replace(one, "c1", "c9", 1)))
	w.refused(engine.ErrUnknownTicket, 0, at("c1", two))
	w.refused(engine.ErrUnknownTicket, 0, at("c9", one))
	w.refused(engine.ErrUnknownTicket, 0, rsYes("c0"))
	w.refused(engine.ErrRepeated, 1, rsYes("c1"), rsNo("c1", ""))
	w.refused(engine.ErrRepeated, 1, rsYes("c1"), at("", one))
	w.refused(engine.ErrRepeated, 2, rsYes("c1"), rsYes("c2"), rsYes("c1"))
	w.refused(engine.ErrRepeated, 1, withID("d1", rsYes("c1")), withID("d1", rsYes("c2")))
	require.Zero(t, tool.ran())

	res := w.resume(rsYes("c1"), rsYes("c2"))
	require.Equal(t, phase.Done, res.Status)
	require.Equal(t, 2, tool.ran())
	require.Equal(t, []string{"c0 ok", "c1 ok", "c2 ok"}, gbOutcomes(w.results()))
	_, err := w.thread.Resume(t.Context(), w.spec, engine.Input{}, rsYes("c1"))
	require.ErrorIs(t, err, engine.ErrNotWaiting)
}

// Fault B27. Fault F29. A second decision about a ticket that was answered does not
// replace the first: it comes too late, by whatever name, also in a later step.
func TestLateDecisions(t *testing.T) {
	tool := gbToolOf("ask", nil)
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "ask", ""), gbCall("c2", "ask", "")), gbAsk(gbCall("c3", "ask", ""))),
		Plugins: []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{})},
	})
	tickets := w.say("go").Tickets
	late := engine.Decision{Answer: phase.Answer{Ticket: tickets[0].ID, Approved: true}}
	w.resume(rsNo("c1", "no"))
	w.refused(engine.ErrLate, 0, rsYes("c1"))
	w.refused(engine.ErrLate, 0, late)
	w.refused(engine.ErrLate, 1, rsYes("c2"), late)
	w.resume(rsYes("c2"))
	require.Equal(t, 1, tool.ran())
	w.refused(engine.ErrLate, 0, late)
	w.refused(engine.ErrUnknownTicket, 0, rsYes("c1"))
	require.Equal(t, phase.Done, w.resume(rsYes("c3")).Status)
	require.Equal(t, []string{"c1 denied", "c2 ok", "c3 ok"}, gbOutcomes(w.results()))
}

// A ticket of a call that was asked about again is late, the new one is not.
func TestFormerTicketOfACall(t *testing.T) {
	tool := gbToolOf("ask", nil)
	w := gbNew(t, engine.Config{
		Model:   gbScript(gbAsk(gbCall("c1", "ask", ""))),
		Plugins: []engine.Plugin{gbTools(tool), gbVote("a", gate.Suspend(gate.Ticket{})), gbVote("b", gate.Suspend(gate.Ticket{}))},
	})
	first := w.say("go").Tickets[0]
	w.resume(rsYes("c1"))
	w.refused(engine.ErrLate, 0, engine.Decision{Answer: phase.Answer{Ticket: first.ID, Approved: true}})
	require.Equal(t, phase.Done, w.resume(rsYes("c1")).Status)
	require.Equal(t, 1, tool.ran())
}

// Capability A14. Decisions with an id may be repeated, here and in another process:
// a repeat changes nothing and tells where the run stands. An id stands for one
// decision only.
func TestDecisionsAreIdempotent(t *testing.T) {
	w, tool, tickets := rsTwo(t, gate.Ticket{})
	d1 := engine.Decision{ID: "d1", Call: "c1", Answer: phase.Answer{Approved: true}}
	d2 := engine.Decision{ID: "d2", Answer: phase.Answer{Approved: true}}
	first := w.resume(d1)
	repeat := func(w *gbWorld, ds ...engine.Decision) *engine.Result {
		revision, events := w.thread.Snapshot().Revision(), len(w.events.all())
		res := w.resume(ds...)
		require.Equal(t, revision, w.thread.Snapshot().Revision())
		require.Len(t, w.events.all(), events)
		require.Equal(t, first.Run, res.Run)
		return res
	}
	for range 2 {
		res := repeat(w, d1)
		require.Equal(t, phase.Waiting, res.Status)
		require.Equal(t, phase.ReasonWaiting, res.Reason)
		require.Equal(t, tickets[1:], res.Tickets)
		require.Equal(t, 1, res.Steps)
	}
	byTicket := d1
	byTicket.Call, byTicket.Answer.Ticket = "", tickets[0].ID
	repeat(w, byTicket)
	for _, other := range []engine.Decision{{ID: "d1", Call: "c2"}, {ID: "d1", Answer: phase.Answer{Ticket: tickets[1].ID}}} {
		w.refused(engine.ErrRepeated, 0, other)
		w.refused(engine.ErrRepeated, 1, d2, other)
	}

	other := w.elsewhere(engine.Config{
		Model:   gbScript(gbAsk()),
		Plugins: []engine.Plugin{gbTools(tool, gbToolOf("free", nil)), rsAsker(gate.Ticket{})},
	})
	repeat(other, d1)
	res := other.resume(d1, d2) // the first again, the second for the first time
	require.Equal(t, phase.Done, res.Status)
	require.Equal(t, 2, tool.ran())
	res = repeat(other, d1, d2)
	require.Equal(t, phase.Done, res.Status)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Empty(t, res.Tickets)
	_, err := other.thread.Resume(t.Context(), other.spec, engine.Input{}, engine.Decision{ID: "d1", Call: "c2"})
	require.ErrorIs(t, err, engine.ErrRepeated)
}

// A decision that is repeated while the run goes on hears so and changes nothing.
func TestDecisionRepeatedWhileTheRunGoesOn(t *testing.T) {
	var w *gbWorld
	d := engine.Decision{ID: "d1", Call: "c1", Answer: phase.Answer{Approved: true}}
	tool := gbToolOf("ask", func(ctx context.Context, _ *phase.Context) (engine.Output, error) {
		res, err := w.thread.Resume(ctx, w.spec, engine.Input{}, d)
		if err != nil {
			return engine.Output{}, err
		}
		_, err = w.thread.Resume(ctx, w.spec, engine.Input{}, rsYes("c1"))
		if !errors.Is(err, engine.ErrBusy) {
			return engine.Output{}, err
		}
		return engine.Text(string(res.Status + " " + phase.RunStatus(res.Reason))), nil
	})
	w = gbNew(t, engine.Config{Model: gbScript(gbAsk(gbCall("c1", "ask", ""))), Plugins: []engine.Plugin{gbTools(tool), rsAsker(gate.Ticket{})}})
	w.say("go")
	w.resume(d)
	require.Equal(t, "running ", w.one().Content)
	require.Equal(t, 1, tool.ran())
}

// Capability B5. An answer that does not have the form that its ticket asks for is
// refused with its batch, and a good one is taken afterwards.
func TestBadAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		ticket gate.Ticket
		bad    []phase.Answer
		good   phase.Answer
	}{
		{"confirm", gate.Ticket{}, []phase.Answer{{Approved: true, Value: `{`}, {Approved: true, Args: `{"a"`}, {Value: `nope`}, {Approved: true, Cancel: true}}, phase.Answer{Approved: true}},
		{"text", gate.Ticket{Kind: gate.Text}, []phase.Answer{{Approved: true, Value: `5`}, {Approved: true, Value: `{"a":1}`}, {Approved: true, Value: `null`}}, phase.Answer{Approved: true, Value: `"x"`}},
		{"text as the result", gate.Ticket{Kind: gate.Text, Mode: gate.UseAsResult}, []phase.Answer{{Approved: true}, {Approved: true, Value: `["x"]`}}, phase.Answer{Approved: true, Value: `"x"`}},
		{"text for the tool", gate.Ticket{Kind: gate.Text, Mode: gate.PassToTool}, []phase.Answer{{Approved: true}}, phase.Answer{Approved: true, Value: `"x"`}},
		{"secret for the tool", gate.Ticket{Kind: gate.Secret, Mode: gate.PassToTool}, []phase.Answer{{Approved: true}, {Approved: true, Value: `5`}}, phase.Answer{Approved: true, Value: `"x"`}},
		{"choice", gate.Ticket{Kind: gate.Choice}, []phase.Answer{{Approved: true, Value: `["x"]`}}, phase.Answer{Approved: true, Value: `"x"`}},
		{"choices", gate.Ticket{Kind: gate.MultiChoice}, []phase.Answer{{Approved: true, Value: `"x"`}, {Approved: true, Value: `[1]`}}, phase.Answer{Approved: true, Value: `["x"]`}},
		{"form", gate.Ticket{Kind: gate.Form}, []phase.Answer{{Approved: true, Value: `"x"`}, {Approved: true, Value: `[]`}}, phase.Answer{Approved: true, Value: `{"x":[1,{"y":null}]}`}},
		{"denied all the same", gate.Ticket{Kind: gate.Form, Mode: gate.UseAsResult}, nil, phase.Answer{Reason: "no"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _, _ := rsTwo(t, c.ticket)
			good := engine.Decision{Call: "c2", Answer: c.good}
			for _, bad := range c.bad {
				w.refused(engine.ErrBadAnswer, 0, engine.Decision{Call: "c1", Answer: bad})
				w.refused(engine.ErrBadAnswer, 1, good, engine.Decision{Call: "c1", Answer: bad})
			}
			res := w.resume(good)
			require.Len(t, res.Tickets, 1)
			_, err := w.thread.Export()
			require.NoError(t, err)
		})
	}
}

// Resume refuses what makes no sense and changes nothing.
func TestResumeRefuses(t *testing.T) {
	w := gbNew(t, engine.Config{Model: gbScript()})
	_, err := w.thread.Resume(t.Context(), w.spec, engine.Input{})
	require.ErrorIs(t, err, engine.ErrNotWaiting)
	w.say("go")
	_, err = w.thread.Resume(t.Context(), w.spec, engine.Input{}, rsYes("c1"))
	require.ErrorIs(t, err, engine.ErrNotWaiting)
	_, err = w.thread.Resume(t.Context(), engine.AgentSpec{ID: "other"}, engine.Input{}, rsYes("c1"))
	require.ErrorIs(t, err, engine.ErrNotWaiting)

	w, _, _ = rsTwo(t, gate.Ticket{})
	revision := w.thread.Snapshot().Revision()
	for _, in := range []engine.Input{engine.Prompt("hello"), {RunID: "mine"}, {Tools: []engine.Tool{nil}}} {
		_, err = w.thread.Resume(t.Context(), w.spec, in, rsYes("c1"))
		require.ErrorIs(t, err, engine.ErrInput)
	}
	_, err = w.thread.Resume(t.Context(), engine.AgentSpec{ID: "agent", PluginIDs: []string{"nobody"}}, engine.Input{}, rsYes("c1"))
	require.ErrorIs(t, err, engine.ErrSpec)
	boom := errors.New("boom")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(boom)
	_, err = w.thread.Resume(ctx, w.spec, engine.Input{}, rsYes("c1"))
	require.ErrorIs(t, err, boom, "a decision is not spent on a run that could not go on")
	require.Equal(t, revision, w.thread.Snapshot().Revision())
	require.NoError(t, w.engine.Close(t.Context()))
	_, err = w.thread.Resume(t.Context(), w.spec, engine.Input{}, rsYes("c1"))
	require.ErrorIs(t, err, engine.ErrClosed)
	require.Equal(t, revision, w.thread.Snapshot().Revision())
}
