//go:build unix

package exechook_test

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
)

func Example() {
	settings, err := exechook.Parse("settings.json", []byte(`{"hooks": {"PreToolUse": [
	  {"matcher": "Bash", "hooks": [{"type": "command",
	    "command": "grep -q 'rm -rf' || exit 0; echo 'deleting is not allowed' >&2; exit 2"}]}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{exechook.New(exechook.Options{Settings: settings})},
		Model: enginetest.NewScript(
			enginetest.Call("1", "shell", map[string]string{"command": "rm -rf build"}),
			enginetest.Call("2", "shell", map[string]string{"command": "ls"}),
			enginetest.Say("done"),
		),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := engine.Prompt("clean up")
	in.Tools = []engine.Tool{enginetest.StubTool("shell", engine.Text("README.md"))}
	for e := range eng.Events(context.Background(), engine.AgentSpec{ID: "worker"}, in) {
		if e, ok := e.(engine.ToolFinished); ok {
			fmt.Printf("%s: %s\n", e.Call.Args, e.Result.Content)
		}
	}
	// Output:
	// {"command":"rm -rf build"}: blocked: deleting is not allowed
	// {"command":"ls"}: README.md
}

func ExampleParse() {
	_, err := exechook.Parse("settings.json", []byte(`{"hooks": {
  "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard", "timeout": -5}]}],
  "Stopp": []
}}`))
	fmt.Println(err)
	// Output:
	// exechook: settings.json:2:99: the timeout is -5; want seconds, more than 0 and at most 86400
	// exechook: settings.json:3:3: there is no event "Stopp"; use one of Notification, PermissionRequest, PostToolUse, PostToolUseFailure, PreCompact, PreToolUse, SessionEnd, SessionStart, Stop, SubagentStart, SubagentStop, UserPromptSubmit
}
