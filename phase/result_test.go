package phase_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Capability M2. A result is edited field by field: what nobody names stays, and
// zero values are edits like any other.
func TestResultEdits(t *testing.T) {
	s := newStore(t)
	r := inference.ToolResult{CallID: "c", Name: "t", Content: "secret", Details: `{"a":1}`, IsError: true, Outcome: inference.OutcomeError}
	require.Equal(t, r, phase.EditedResult(s.Snapshot(), r))
	var cmd phase.Command
	cmd.EditContent("c", "")
	require.NoError(t, commit(t, s, cmd))
	want := r
	want.Content = ""
	require.Equal(t, want, phase.EditedResult(s.Snapshot(), r))
	cmd = phase.Command{}
	cmd.EditIsError("c", false).EditDetails("c", `[]`)
	require.NoError(t, commit(t, s, cmd))
	want.IsError, want.Details = false, `[]`
	require.Equal(t, want, phase.EditedResult(s.Snapshot(), r))
	other := r
	other.CallID = "d"
	require.Equal(t, other, phase.EditedResult(s.Snapshot(), other), "edits belong to one call")
}

// Capability M2. Edits of different fields or calls do not conflict; two of one
// field do, so that the second is made with the first in view.
func TestResultEditsConflictPerField(t *testing.T) {
	s := newStore(t)
	edit := func(f func(*phase.Command)) state.Batch {
		var cmd phase.Command
		f(&cmd)
		return state.Batch{Owner: "x", Base: s.Snapshot(), Updates: cmd.Updates()}
	}
	res, err := s.Commit(
		edit(func(c *phase.Command) { c.EditContent("c", "a") }),
		edit(func(c *phase.Command) { c.EditDetails("c", "1") }),
		edit(func(c *phase.Command) { c.EditIsError("c", true) }),
		edit(func(c *phase.Command) { c.EditContent("d", "b") }),
		edit(func(c *phase.Command) { c.EditContent("c", "z") }),
	)
	require.NoError(t, err)
	require.Len(t, res.Rejected, 1)
	require.Equal(t, 4, res.Rejected[0].Index)
}

// Capability M2. Clearing drops all edits, in as many updates as there are kinds of
// them.
func TestResultClearEdits(t *testing.T) {
	s := newStore(t)
	require.Empty(t, phase.ClearEdits(s.Snapshot()))
	var cmd phase.Command
	cmd.EditContent("c", "x").EditIsError("d", true)
	require.NoError(t, commit(t, s, cmd))
	us := phase.ClearEdits(s.Snapshot())
	require.Len(t, us, 2)
	cmd = phase.Command{}
	cmd.Update(us...)
	require.NoError(t, commit(t, s, cmd))
	r := inference.ToolResult{CallID: "c", Content: "kept"}
	require.Equal(t, r, phase.EditedResult(s.Snapshot(), r))
	require.Empty(t, phase.ClearEdits(s.Snapshot()))
}
