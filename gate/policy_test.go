package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

func frame() phase.Frame {
	return phase.Frame{
		Phase: phase.ToolGate,
		Run:   &phase.RunInfo{ID: "r", Mode: "batch", Adapter: "cli"},
		Agent: phase.NewAgentInfo("support", "", "large", nil),
		Call: &phase.CallFrame{
			Call:   inference.ToolCall{ID: "c", Name: "rm", Args: `{"path":"/"}`},
			Tool:   inference.ToolSpec{Name: "rm", Kind: "write"},
			Answer: &phase.Answer{Ticket: "t", Approved: true},
		},
	}
}

// Capability A11. Each verdict lowers to one decision, with its reason.
func TestVerdictsBecomeDecisions(t *testing.T) {
	ticket := gate.Ticket{Message: "sure?"}
	result := inference.ToolResult{Content: "cached"}
	for _, c := range []struct {
		verdict gate.Verdict
		want    gate.Decision
	}{
		{gate.Verdict{}, gate.Abstain()},
		{gate.Verdict{Kind: gate.AuditOnly, Reason: "seen"}, gate.Abstain().Because("seen")},
		{gate.Verdict{Kind: gate.PolicyAllow, Reason: "listed"}, gate.Approve().Because("listed")},
		{gate.Verdict{Kind: gate.PolicyDeny, Reason: "no"}, gate.Block("no")},
		{gate.Verdict{Kind: gate.PolicySuspend, Reason: "risky", Ticket: ticket}, gate.Suspend(ticket).Because("risky")},
		{gate.Verdict{Kind: gate.ReplaceResult, Result: result}, gate.SetResult(result)},
	} {
		d, err := gate.FromPolicy(gate.PolicyFunc(func(context.Context, gate.Subject) (gate.Verdict, error) {
			return c.verdict, nil
		})).Check(t.Context(), phase.NewContext(frame()))
		require.NoError(t, err)
		require.Equal(t, c.want, d)
	}
}

// Capability A11. Fault B21. An unknown verdict and an error are faults, not
// opinions.
func TestPolicyFaults(t *testing.T) {
	boom := errors.New("boom")
	pc := phase.NewContext(frame())
	d, err := gate.FromPolicy(gate.PolicyFunc(func(context.Context, gate.Subject) (gate.Verdict, error) {
		return gate.Verdict{Kind: 99}, nil
	})).Check(t.Context(), pc)
	require.ErrorIs(t, err, gate.ErrUnknownKind)
	require.ErrorContains(t, err, "99")
	require.Equal(t, gate.Decision{}, d)

	_, err = gate.FromPolicy(gate.PolicyFunc(func(context.Context, gate.Subject) (gate.Verdict, error) {
		return gate.Verdict{Kind: gate.PolicyAllow}, boom
	})).Check(t.Context(), pc)
	require.ErrorIs(t, err, boom)
}

// Capability A11. A policy sees the run's mode and adapter, the tool's kind, the
// arguments and the answer.
func TestPolicySeesItsSubject(t *testing.T) {
	f := frame()
	var got gate.Subject
	p := gate.FromPolicy(gate.PolicyFunc(func(_ context.Context, s gate.Subject) (gate.Verdict, error) {
		got = s
		return gate.Verdict{}, nil
	}))
	_, err := p.Check(t.Context(), phase.NewContext(f))
	require.NoError(t, err)
	require.Equal(t, gate.Subject{Run: *f.Run, Agent: *f.Agent, Call: f.Call.Call, Tool: f.Call.Tool, Answer: *f.Call.Answer}, got)

	f.Call.Answer = nil
	_, err = p.Check(t.Context(), phase.NewContext(f))
	require.NoError(t, err)
	require.Equal(t, phase.Answer{}, got.Answer)
}
