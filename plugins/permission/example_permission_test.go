package permission_test

import (
	"fmt"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/permission"
)

func ExampleRules_Judge() {
	rules := permission.Rules{Allow: []string{"kind:read"}, Ask: []string{"write_*"}, Default: permission.Deny}
	for _, tool := range []inference.ToolSpec{{Name: "read_file", Kind: "read"}, {Name: "write_file", Kind: "write"}, {Name: "run", Kind: "exec"}} {
		verdict, rule := rules.Judge(tool)
		fmt.Printf("%s: %s by %s\n", tool.Name, verdict, rule)
	}
	// Output:
	// read_file: allow by the rule "kind:read"
	// write_file: ask by the rule "write_*"
	// run: deny by the default
}
