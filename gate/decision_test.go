package gate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

func TestZeroDecisionAbstains(t *testing.T) {
	require.Equal(t, gate.Abstain(), gate.Decision{})
	require.Equal(t, gate.KindAbstain, gate.Decision{}.Kind())
	_, edits := gate.Decision{}.Args()
	require.False(t, edits)
}

func TestKindsAsText(t *testing.T) {
	for k := gate.KindAbstain; k <= gate.KindBlock; k++ {
		text, err := k.MarshalText()
		require.NoError(t, err)
		var back gate.Kind
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, k, back)
	}
	var k gate.Kind
	require.ErrorContains(t, k.UnmarshalText([]byte("blok")), `"blok"`)
	require.Equal(t, "kind(99)", gate.Kind(99).String())
}

func TestDecisionsCarryWhatTheyWereGiven(t *testing.T) {
	ticket := gate.Ticket{Kind: gate.Text, Message: "why?"}
	result := inference.ToolResult{Content: "cached"}
	for _, c := range []struct {
		d    gate.Decision
		kind gate.Kind
	}{
		{gate.Abstain(), gate.KindAbstain},
		{gate.Ask(ticket), gate.KindAsk},
		{gate.Approve(), gate.KindApprove},
		{gate.SetResult(result), gate.KindSetResult},
		{gate.Suspend(ticket), gate.KindSuspend},
		{gate.Block("no"), gate.KindBlock},
	} {
		require.Equal(t, c.kind, c.d.Kind())
		require.Equal(t, c.kind == gate.KindBlock, c.d.EndRun().EndsRun(), "only a block can end the run")
		require.False(t, c.d.EndsRun(), "EndRun returns a new value")
		edited := c.d.Edit(`{"a":1}`).Because("r")
		args, ok := edited.Args()
		require.True(t, ok)
		require.Equal(t, inference.JSON(`{"a":1}`), args)
		require.Equal(t, "r", edited.Reason())
		require.Equal(t, c.kind, edited.Kind())
	}
	require.Equal(t, ticket, gate.Ask(ticket).Ticket())
	require.Equal(t, ticket, gate.Suspend(ticket).Ticket())
	require.Equal(t, result, gate.SetResult(result).Result())
	require.Equal(t, "no", gate.Block("no").Reason())
	_, empty := gate.Edit("").Args()
	require.True(t, empty, "editing to no arguments is an edit")
}

func TestFuncAdapters(t *testing.T) {
	pc := phase.NewContext(phase.Frame{Phase: phase.ToolGate})
	d, err := gate.Func(func(_ context.Context, got *phase.Context) (gate.Decision, error) {
		require.Same(t, pc, got)
		return gate.Approve(), nil
	}).Check(t.Context(), pc)
	require.NoError(t, err)
	require.Equal(t, gate.Approve(), d)

	a, err := gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
		return phase.Answer{Ticket: ticket.ID, Approved: true}, nil
	}).Resolve(t.Context(), gate.Ticket{ID: "t1"})
	require.NoError(t, err)
	require.Equal(t, phase.Answer{Ticket: "t1", Approved: true}, a)
}
