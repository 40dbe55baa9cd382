package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

func ExampleGate() {
	// A gate that keeps deletes inside one folder.
	var g gate.Gate = gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
		call := pc.Call()
		if call.Name != "delete" {
			return gate.Abstain(), nil
		}
		var args struct {
			Path string `json:"path"`
		}
		if err := call.Args.Decode(&args); err != nil {
			return gate.Decision{}, err // fails closed: the call is blocked
		}
		if !strings.HasPrefix(args.Path, "/tmp/") {
			return gate.Block("only files below /tmp may be deleted"), nil
		}
		return gate.Approve(), nil
	})

	for _, path := range []string{"/tmp/x", "/etc/passwd"} {
		args, _ := inference.ToJSON(map[string]string{"path": path})
		d, err := g.Check(context.Background(), phase.NewContext(phase.Frame{
			Phase: phase.ToolGate,
			Call:  &phase.CallFrame{Call: inference.ToolCall{ID: "c1", Name: "delete", Args: args}},
		}))
		fmt.Println(path, d.Kind(), d.Reason(), err)
	}
	// Output:
	// /tmp/x approve  <nil>
	// /etc/passwd block only files below /tmp may be deleted <nil>
}

func ExampleResolve() {
	res := gate.Resolve(inference.ToolCall{ID: "c1", Name: "shell"}, []gate.Vote{
		{Plugin: "allowlist", Decision: gate.Approve()},
		{Plugin: "prompt", Decision: gate.Ask(gate.Ticket{Message: "Run it?"})},
		{Plugin: "guard", Decision: gate.Block("rm is not allowed")},
	})
	fmt.Println(res.Decision.Kind(), "by", res.Plugin, "-", res.Decision.Reason())
	// Output: block by guard - rm is not allowed
}

func ExampleResolve_failClosed() {
	res := gate.Resolve(inference.ToolCall{ID: "c1", Name: "shell"}, []gate.Vote{
		{Plugin: "allowlist", Decision: gate.Approve()},
		{Plugin: "guard", Err: errors.New("the policy server is down")},
	})
	fmt.Println(res.Decision.Kind(), res.Cause)
	fmt.Println(res.Err)
	// Output:
	// block gate_failed
	// gate: the policy of guard could not be checked: the policy server is down
}

func ExampleEdit() {
	call := inference.ToolCall{ID: "c1", Name: "search", Args: `{"limit":1000}`}
	res := gate.Resolve(call, []gate.Vote{
		{Plugin: "allowlist", Decision: gate.Approve()},
		{Plugin: "clamp", Decision: gate.Edit(`{"limit":50}`)},
	})
	fmt.Println(res.Decision.Kind(), res.Edit.Plugin, res.Edit.Args)
	// Output: approve clamp {"limit":50}
}

func ExampleFromPolicy() {
	readOnly := gate.PolicyFunc(func(_ context.Context, s gate.Subject) (gate.Verdict, error) {
		switch {
		case s.Tool.Kind == "read":
			return gate.Verdict{Kind: gate.PolicyAllow}, nil
		case s.Run.Mode == "batch":
			return gate.Verdict{Kind: gate.PolicyDeny, Reason: "nobody is watching"}, nil
		default:
			return gate.Verdict{Kind: gate.PolicySuspend, Ticket: gate.Ticket{Message: "Let it write?"}}, nil
		}
	})
	d, err := gate.FromPolicy(readOnly).Check(context.Background(), phase.NewContext(phase.Frame{
		Phase: phase.ToolGate,
		Run:   &phase.RunInfo{Mode: "batch"},
		Call:  &phase.CallFrame{Tool: inference.ToolSpec{Name: "delete", Kind: "write"}},
	}))
	fmt.Println(d.Kind(), d.Reason(), err)
	// Output: block nobody is watching <nil>
}

func ExampleFingerprint() {
	asked := inference.ToolCall{ID: "c1", Name: "pay", Args: `{"to":"ann","amount":5}`}
	same := inference.ToolCall{ID: "c1", Name: "pay", Args: `{ "amount": 5, "to": "ann" }`}
	other := inference.ToolCall{ID: "c1", Name: "pay", Args: `{"to":"ann","amount":500}`}
	fmt.Println(gate.Fingerprint(asked) == gate.Fingerprint(same))
	fmt.Println(gate.Fingerprint(asked) == gate.Fingerprint(other))
	// Output:
	// true
	// false
}
