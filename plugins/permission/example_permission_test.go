package permission_test

import (
	"fmt"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/permission"
)

func ExampleRules_Judge() {
	rules := permission.Rules{Allow: permission.Tools("kind:read"), Ask: permission.Tools("write_*"), Default: permission.Deny}
	for _, tool := range []inference.ToolSpec{{Name: "read_file", Kind: "read"}, {Name: "write_file", Kind: "write"}, {Name: "run", Kind: "exec"}} {
		verdict, rule := rules.Judge(tool)
		fmt.Printf("%s: %s by %s\n", tool.Name, verdict, rule)
	}
	// Output:
	// read_file: allow by the rule "kind:read"
	// write_file: ask by the rule "write_*"
	// run: deny by the default
}

func ExampleRules_JudgeCall() {
	rules := permission.Rules{
		Allow: []permission.Rule{{Tool: "write_file", Args: map[string]string{"path": "docs/**"}}},
		Deny:  []permission.Rule{{Tool: "*", Args: map[string]string{"path": "secrets/**"}}},
	}
	write := inference.ToolSpec{Name: "write_file", Kind: "write"}
	for _, args := range []inference.JSON{`{"path": "docs/a/b"}`, `{"path": "docs/../secrets/key"}`, `{"path": "docs/../b"}`} {
		verdict, rule := rules.JudgeCall(write, args)
		fmt.Printf("%s: %s by %s\n", args, verdict, rule)
	}
	// Output:
	// {"path": "docs/a/b"}: allow by the rule {"tool":"write_file","args":{"path":"docs/**"}}
	// {"path": "docs/../secrets/key"}: deny by the rule {"tool":"*","args":{"path":"secrets/**"}}
	// {"path": "docs/../b"}: ask by the default
}
