package gate

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// Subject is what a Policy judges: a call in its surroundings.
type Subject struct {
	Run      phase.RunInfo // with mode and adapter
	Agent    phase.AgentInfo
	Call     inference.ToolCall
	Tool     inference.ToolSpec // zero when the name is unknown
	Snapshot *state.Snapshot
	Answer   phase.Answer // zero until the call's ticket was answered
}

// VerdictKind is what a policy says.
type VerdictKind uint8

// Verdicts of a policy.
const (
	AuditOnly     VerdictKind = iota // no opinion; the reason goes to the trace
	PolicyAllow                      // approve
	PolicyDeny                       // block
	PolicySuspend                    // wait for an answer
	ReplaceResult                    // use Verdict.Result
)

// Verdict is a policy's answer. The zero Verdict is AuditOnly without a note.
type Verdict struct {
	Kind   VerdictKind
	Reason string
	Ticket Ticket               // for PolicySuspend
	Result inference.ToolResult // for ReplaceResult
}

// Policy is a typed gate. It takes part in the same resolution as other gates,
// under the same rules: pure, and fail closed.
type Policy interface {
	Judge(ctx context.Context, s Subject) (Verdict, error)
}

// PolicyFunc lets a function be a Policy.
type PolicyFunc func(ctx context.Context, s Subject) (Verdict, error)

// Judge calls f.
func (f PolicyFunc) Judge(ctx context.Context, s Subject) (Verdict, error) { return f(ctx, s) }

// FromPolicy lowers a policy to a gate.
func FromPolicy(p Policy) Gate {
	return Func(func(ctx context.Context, pc *phase.Context) (Decision, error) {
		answer, _ := pc.Answer()
		v, err := p.Judge(ctx, Subject{
			Run: pc.Run(), Agent: pc.Agent(), Call: pc.Call(), Tool: pc.Tool(),
			Snapshot: pc.Snapshot(), Answer: answer,
		})
		if err != nil {
			return Decision{}, err
		}
		decisions := [...]Decision{
			AuditOnly:     Abstain(),
			PolicyAllow:   Approve(),
			PolicyDeny:    Block(v.Reason),
			PolicySuspend: Suspend(v.Ticket),
			ReplaceResult: SetResult(v.Result),
		}
		if int(v.Kind) >= len(decisions) {
			return Decision{}, fmt.Errorf("%w: verdict %d", ErrUnknownKind, v.Kind)
		}
		return decisions[v.Kind].Because(v.Reason), nil
	})
}
