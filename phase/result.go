package phase

import (
	"errors"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// Result edits are kept per call and per field, each field an entry of its own
// Exclusive table. So two hooks that edit different fields do not conflict, and
// of two that edit the same field the later one runs again and sees the former's
// edit in Context.Result: a redaction survives a formatter in either order.
var (
	resultContent = state.NewTable[string]("fixpoint.result.content", state.Options[string]{})
	resultDetails = state.NewTable[string]("fixpoint.result.details", state.Options[inference.JSON]{Check: checkDetails})
	resultIsError = state.NewTable[string]("fixpoint.result.is_error", state.Options[bool]{})
)

// EditContent replaces the content of a tool result. Meant for AfterToolExecute,
// with call the id of Context.Call.
func (c *Command) EditContent(call, content string) *Command {
	return c.Update(resultContent.Put(call, content))
}

// EditDetails replaces the structured details of a tool result.
func (c *Command) EditDetails(call string, details inference.JSON) *Command {
	return c.Update(resultDetails.Put(call, details))
}

// EditIsError sets or clears the error flag of a tool result.
func (c *Command) EditIsError(call string, isError bool) *Command {
	return c.Update(resultIsError.Put(call, isError))
}

// EditedResult returns r with the edits that snap holds for its call.
func EditedResult(snap *state.Snapshot, r inference.ToolResult) inference.ToolResult {
	if v, ok := resultContent.Get(snap, r.CallID); ok {
		r.Content = v
	}
	if v, ok := resultDetails.Get(snap, r.CallID); ok {
		r.Details = v
	}
	if v, ok := resultIsError.Get(snap, r.CallID); ok {
		r.IsError = v
	}
	return r
}

// ClearEdits returns the updates that drop all edits that snap holds, for the
// step that brings new calls.
func ClearEdits(snap *state.Snapshot) []state.Update {
	var us []state.Update
	for _, edits := range []interface {
		Len(*state.Snapshot) int
		Reset() state.Update
	}{resultContent, resultDetails, resultIsError} {
		if edits.Len(snap) > 0 {
			us = append(us, edits.Reset())
		}
	}
	return us
}

// checkDetails refuses details that could not be saved.
func checkDetails(_, next inference.JSON) error {
	if !next.Valid() {
		return errors.New("phase: the details of a result are not JSON; encode them with inference.ToJSON")
	}
	return nil
}
