package phase_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Fault B14. A context hands out values that cannot reach its own.
func TestContextIsFrozen(t *testing.T) {
	req := inference.Request{System: "s", Messages: []inference.Message{inference.User("hello")}, Tools: []inference.ToolSpec{{Name: "t"}}}
	resp := inference.Response{Message: inference.Assistant("hi", inference.ToolCall{ID: "c", Name: "t", Args: "{}"})}
	boom := errors.New("boom")
	pc := phase.NewContext(phase.Frame{
		Phase: phase.AfterToolExecute, Round: 2, Err: boom,
		Run:      &phase.RunInfo{ID: "r", Step: 3, Started: time.Unix(5, 0)},
		Agent:    phase.NewAgentInfo("a", "d", "m", map[string]any{"s": 1}),
		Messages: state.ListOf(inference.User("hello")),
		Request:  &req, Response: &resp,
		Call: &phase.CallFrame{
			Call: inference.ToolCall{ID: "c"}, Tool: inference.ToolSpec{Name: "t"}, Result: inference.ToolResult{CallID: "c"},
			Answer: &phase.Answer{Ticket: "q", Approved: true},
		},
	})
	got, ok := pc.Request()
	require.True(t, ok)
	got.Messages[0].Text, got.Tools[0].Name = "changed", "changed"
	said, ok := pc.Response()
	require.True(t, ok)
	said.Message.ToolCalls[0].Args = "changed"
	agent := pc.Agent()
	agent.ID = "changed"
	answer, ok := pc.Answer()
	require.True(t, ok)
	answer.Approved = false
	run := pc.Run()
	run.ID = "changed"

	got, _ = pc.Request()
	require.Equal(t, "hello", got.Messages[0].Text)
	require.Equal(t, "t", got.Tools[0].Name)
	said, _ = pc.Response()
	require.EqualValues(t, "{}", said.Message.ToolCalls[0].Args)
	require.Equal(t, "a", pc.Agent().ID)
	answer, _ = pc.Answer()
	require.True(t, answer.Approved)
	require.Equal(t, "r", pc.Run().ID)
	require.Equal(t, 3, pc.Run().Step)
	require.Equal(t, phase.AfterToolExecute, pc.Phase())
	require.Equal(t, 2, pc.Round())
	require.ErrorIs(t, pc.Err(), boom)
	require.Equal(t, "c", pc.Call().ID)
	require.Equal(t, "t", pc.Tool().Name)
	require.Equal(t, "c", pc.Result().CallID)
	require.Equal(t, 1, pc.Messages().Len())
	v, ok := pc.Agent().Section("s")
	require.True(t, ok)
	require.Equal(t, 1, v)
}

// Capability H6. An empty context answers everything without a panic.
func TestContextEmpty(t *testing.T) {
	pc := phase.NewContext(phase.Frame{})
	_, ok := pc.Request()
	require.False(t, ok)
	_, ok = pc.Response()
	require.False(t, ok)
	_, ok = pc.Answer()
	require.False(t, ok)
	require.Equal(t, phase.AgentInfo{}, pc.Agent())
	_, ok = pc.Agent().Section("x")
	require.False(t, ok)
	require.Zero(t, pc.Messages().Len())
	require.Zero(t, cmdCell.Get(pc.Snapshot()))
	require.NoError(t, pc.Err())
}
