package gate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// permute calls fn with every order of items.
func permute[T any](items []T, fn func([]T)) {
	var walk func(n int)
	walk = func(n int) {
		if n == len(items) {
			fn(slices.Clone(items))
			return
		}
		for i := n; i < len(items); i++ {
			items[n], items[i] = items[i], items[n]
			walk(n + 1)
			items[n], items[i] = items[i], items[n]
		}
	}
	walk(0)
}

// strictest lists one vote of every kind, strictest first.
func strictest() []gate.Vote {
	return []gate.Vote{
		{Plugin: "block", Decision: gate.Block("no")},
		{Plugin: "suspend", Decision: gate.Suspend(gate.Ticket{Message: "sure?"})},
		{Plugin: "set", Decision: gate.SetResult(inference.ToolResult{Content: "cached"})},
		{Plugin: "approve", Decision: gate.Approve()},
		{Plugin: "ask", Decision: gate.Ask(gate.Ticket{Message: "ok?"})},
		{Plugin: "abstain"},
	}
}

// Capability A10. The strictest decision wins in every order of registration,
// whatever subset of the kinds takes part.
func TestStrictestDecisionWinsInEveryOrder(t *testing.T) {
	all := strictest()
	for from := range all {
		want := all[from]
		permute(slices.Clone(all[from:]), func(votes []gate.Vote) {
			res := gate.Resolve(inference.ToolCall{ID: "c"}, votes)
			require.Equal(t, want.Decision.Kind(), res.Decision.Kind())
			require.Equal(t, want.Decision, res.Decision)
			require.Empty(t, res.Clashes)
			require.Nil(t, res.Edit)
			require.NoError(t, res.Err)
			if want.Plugin == "abstain" {
				require.Empty(t, res.Plugin)
				require.Equal(t, gate.ByDefault, res.Cause)
				return
			}
			require.Equal(t, want.Plugin, res.Plugin)
			require.Equal(t, gate.Decided, res.Cause)
		})
	}
}

func TestNoVotesMeansTheDefault(t *testing.T) {
	res := gate.Resolve(inference.ToolCall{}, nil)
	require.Equal(t, gate.Resolution{Index: -1, Cause: gate.ByDefault}, res)
}

// Capability A10. Between equals the first registered wins, and every other one
// is reported with both names. A disagreement below the winning kind decided
// nothing and is not reported.
func TestTiesKeepTheFirstAndReportTheRest(t *testing.T) {
	result := func(s string) gate.Decision { return gate.SetResult(inference.ToolResult{Content: s}) }
	res := gate.Resolve(inference.ToolCall{}, []gate.Vote{
		{Plugin: "a", Decision: result("1")},
		{Plugin: "b", Decision: result("2")},
		{Plugin: "c", Decision: gate.Approve()},
		{Plugin: "d", Decision: result("3")},
	})
	require.Equal(t, "a", res.Plugin)
	require.Equal(t, "1", res.Decision.Result().Content)
	require.Equal(t, []gate.Clash{
		{Kind: gate.KindSetResult, Winner: "a", Loser: "b"},
		{Kind: gate.KindSetResult, Winner: "a", Loser: "d"},
	}, res.Clashes)

	res = gate.Resolve(inference.ToolCall{}, []gate.Vote{
		{Plugin: "a", Decision: result("1")},
		{Plugin: "b", Decision: result("2")},
		{Plugin: "c", Decision: gate.Block("no")},
	})
	require.Equal(t, "c", res.Plugin)
	require.Empty(t, res.Clashes)
}

// Two gates that approve agree: there is nothing to report.
func TestAgreementIsNoClash(t *testing.T) {
	res := gate.Resolve(inference.ToolCall{}, []gate.Vote{
		{Plugin: "a", Decision: gate.Approve()},
		{Plugin: "b", Decision: gate.Approve()},
		{Plugin: "c"}, {Plugin: "d"},
	})
	require.Equal(t, "a", res.Plugin)
	require.Empty(t, res.Clashes)
}

// Capability M2. An edit is orthogonal: it is there under every kind but Block,
// which drops it, and the first of several wins.
func TestEditsAreOrthogonalAndDroppedByABlock(t *testing.T) {
	call := inference.ToolCall{ID: "c", Args: `{"n":1}`}
	for _, v := range strictest() {
		votes := []gate.Vote{{Plugin: "mute"}, {Plugin: "editor", Decision: gate.Edit(`{"n":2}`)}, v}
		permute(votes, func(votes []gate.Vote) {
			res := gate.Resolve(call, votes)
			if v.Plugin == "block" {
				require.Nil(t, res.Edit)
				return
			}
			require.Equal(t, &gate.EditOf{Plugin: "editor", Args: `{"n":2}`}, res.Edit)
			require.Equal(t, v.Decision.Kind(), res.Decision.Kind())
		})
	}
	res := gate.Resolve(call, []gate.Vote{
		{Plugin: "same", Decision: gate.Edit(call.Args)},
		{Plugin: "a", Decision: gate.Approve().Edit(`{"n":2}`)},
		{Plugin: "b", Decision: gate.Edit(`{"n":3}`)},
		{Plugin: "c", Decision: gate.Edit(`{"n":2}`)},
	})
	require.Equal(t, "a", res.Edit.Plugin)
	require.Equal(t, []gate.Clash{{Edit: true, Winner: "a", Loser: "b"}}, res.Clashes)
}

// Capability M1. Fault B21. A gate that failed blocks, naming itself and its
// cause; only FailOpen turns it into a gate without an opinion. What a failing
// gate wanted to edit does not count.
func TestFailedGateBlocksUnlessFailOpen(t *testing.T) {
	boom := errors.New("boom")
	votes := []gate.Vote{
		{Plugin: "ok", Decision: gate.Approve()},
		{Plugin: "guard", Err: boom, Decision: gate.Approve().Edit(`{}`)},
	}
	res := gate.Resolve(inference.ToolCall{Args: `{"n":1}`}, votes)
	require.Equal(t, gate.KindBlock, res.Decision.Kind())
	require.Equal(t, gate.GateFailed, res.Cause)
	require.Equal(t, "guard", res.Plugin)
	require.Contains(t, res.Decision.Reason(), "guard")
	require.Contains(t, res.Decision.Reason(), "could not be checked")
	require.ErrorIs(t, res.Err, gate.ErrFailed)
	require.ErrorIs(t, res.Err, boom)
	var failed *gate.FailedError
	require.ErrorAs(t, res.Err, &failed)
	require.Equal(t, "guard", failed.Plugin)

	votes[1].FailOpen = true
	res = gate.Resolve(inference.ToolCall{Args: `{"n":1}`}, votes)
	require.Equal(t, gate.KindApprove, res.Decision.Kind())
	require.Equal(t, gate.Decided, res.Cause)
	require.NoError(t, res.Err)
	require.Nil(t, res.Edit)
}

// A deliberate block and one for a fault are told apart, whichever is first.
func TestDeliberateBlockAndFailureAreToldApart(t *testing.T) {
	deliberate := gate.Vote{Plugin: "deny", Decision: gate.Block("no")}
	failure := gate.Vote{Plugin: "broken", Err: errors.New("x")}
	res := gate.Resolve(inference.ToolCall{}, []gate.Vote{deliberate, failure})
	require.Equal(t, gate.Decided, res.Cause)
	require.Equal(t, "no", res.Decision.Reason())
	require.NoError(t, res.Err)
	res = gate.Resolve(inference.ToolCall{}, []gate.Vote{failure, deliberate})
	require.Equal(t, gate.GateFailed, res.Cause)
	require.Equal(t, "broken", res.Plugin)
}

// Capability A10. Against a simple model over random votes: the winner is the
// first vote of the highest kind, and the input is left alone.
func TestResolveAgainstAModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		votes := make([]gate.Vote, rng.IntN(7))
		for i := range votes {
			name := fmt.Sprint(rng.IntN(3))
			v := gate.Vote{Plugin: fmt.Sprintf("p%d", i), FailOpen: rng.IntN(2) == 0}
			v.Decision = []gate.Decision{
				{}, gate.Ask(gate.Ticket{Message: name}), gate.Approve().Because(name),
				gate.SetResult(inference.ToolResult{Content: name}), gate.Suspend(gate.Ticket{Message: name}), gate.Block(name),
			}[rng.IntN(6)]
			if rng.IntN(4) == 0 {
				v.Decision = v.Decision.Edit(inference.JSON(name))
			}
			if rng.IntN(8) == 0 {
				v.Err = errors.New("fault")
			}
			votes[i] = v
		}
		before := slices.Clone(votes)

		call := inference.ToolCall{Args: "1"}
		var kind gate.Kind
		plugin := ""
		var edit *gate.EditOf
		for _, v := range votes {
			k := v.Decision.Kind()
			if v.Err != nil && v.FailOpen {
				k = gate.KindAbstain
			} else if v.Err != nil {
				k = gate.KindBlock
			}
			if k > kind {
				kind, plugin = k, v.Plugin
			}
			if args, ok := v.Decision.Args(); ok && v.Err == nil && args != call.Args && edit == nil {
				edit = &gate.EditOf{Plugin: v.Plugin, Args: args}
			}
		}
		if kind == gate.KindBlock {
			edit = nil
		}

		res := gate.Resolve(call, votes)
		require.Equal(t, kind, res.Decision.Kind())
		require.Equal(t, plugin, res.Plugin)
		require.Equal(t, edit, res.Edit)
		require.Equal(t, before, votes)
		require.Equal(t, res, gate.Resolve(call, votes), "Resolve is pure")
		for _, c := range res.Clashes {
			require.NotEqual(t, c.Winner, c.Loser)
		}
	}
}
