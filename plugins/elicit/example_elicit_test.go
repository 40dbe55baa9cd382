package elicit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/elicit"
)

func Example() {
	question := elicit.Question{Kind: gate.Choice, Message: "Which region?", Choices: []string{"eu", "us"}}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{elicit.New()},
		Model:   enginetest.NewScript(enginetest.Call("c1", elicit.Tool, question), enginetest.Say("done")),
		Resolver: gate.ResolverFunc(func(_ context.Context, t gate.Ticket) (phase.Answer, error) {
			fmt.Println(t.Message, t.Choices)
			return phase.Answer{Approved: true, Value: `"eu"`}, nil
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := th.Run(context.Background(), engine.AgentSpec{ID: "clerk"}, engine.Prompt("Set me up")); err != nil {
		log.Fatal(err)
	}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Role == inference.RoleTool {
			fmt.Println(m.Text)
		}
	}
	// Output:
	// Which region? ["eu","us"]
	// {"status":"answered","kind":"choice","value":"eu"}
}

func ExampleParse() {
	_, err := elicit.Parse(`{"kind": "text", "mesage": "Name?"}`)
	fmt.Println(err)
	_, err = elicit.Parse(`{"kind": "choice", "message": "Which?", "choices": ["a", "b", "a"]}`)
	fmt.Println(err)
	// Output:
	// elicit: the arguments of ask_user: inference: bad JSON at offset 35: json: unknown field "mesage"
	// elicit: the arguments of ask_user: choices[2] is "a" again
}
