package loopguard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/loopguard"
)

func Example() {
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{loopguard.New()},
		Model: enginetest.NewScript(
			enginetest.Call("c1", "roll", nil), enginetest.Call("c2", "roll", nil), enginetest.Call("c3", "roll", nil),
			enginetest.Say("I give up"),
		),
	})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("roll a six")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "roll"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
		return engine.Text("five"), nil
	})}
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := th.Run(context.Background(), engine.AgentSpec{ID: "gambler"}, in); err != nil {
		log.Fatal(err)
	}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Role == inference.RoleTool {
			fmt.Println(m.Text)
		}
	}
	// Output:
	// five
	// five
	// blocked: roll ran 2 times before with exactly these arguments; use the result you have, or change them
}
