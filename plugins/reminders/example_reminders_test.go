package reminders_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/reminders"
)

func Example() {
	model := enginetest.NewScript(
		enginetest.Call("c1", "write_file", nil),
		enginetest.Call("c2", reminders.Tool, map[string]any{"text": "tidy up", "after_steps": 1}),
		enginetest.Say("done"))
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{reminders.New()}, Model: model})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("write it")
	in.Tools = []engine.Tool{enginetest.StubTool("write_file", engine.Text("written"))}
	spec := engine.AgentSpec{ID: "writer", Sections: map[string]inference.JSON{"reminders": `{"rules": [
		{"name": "check", "text": "Run the tests before you go on.", "when": {"after_tool": "write_*"}, "times": 1}
	]}`}}
	if _, err := eng.Run(context.Background(), spec, in); err != nil {
		log.Fatal(err)
	}
	for _, m := range model.Requests()[2].Messages {
		if m.Role == inference.RoleSystem || m.Role == inference.RoleTool {
			fmt.Println(m.Role+":", m.Text)
		}
	}
	// Output:
	// tool: written
	// system: Run the tests before you go on.
	// tool: You will be reminded after 1 step.
	// system: You wanted to be reminded: tidy up
}
