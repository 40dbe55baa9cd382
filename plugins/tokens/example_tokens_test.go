package tokens_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/tokens"
)

func Example() {
	model := enginetest.NewScript(
		enginetest.Call("c1", "look", nil).Costing(inference.Usage{InputTokens: 700, OutputTokens: 100}),
		enginetest.Say("done"))
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{tokens.New()}, Model: model})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("look around")
	in.Tools = []engine.Tool{enginetest.StubTool("look", engine.Text("a garden"))}
	spec := engine.AgentSpec{ID: "scout", Sections: map[string]inference.JSON{"tokens": `{"budget": 5000, "windows": {"*": 2000}}`}}
	if _, err := eng.Run(context.Background(), spec, in); err != nil {
		log.Fatal(err)
	}
	for _, m := range model.Requests()[1].Messages {
		if m.Role == inference.RoleSystem {
			fmt.Println(m.Text)
		}
	}
	// Output:
	// You may use 5000 tokens in this run. Your context window has 2000 tokens.
	// This run has used 800 of its 5000 tokens; 4200 are left. Your context holds 800 of 2000 tokens.
}
