package budget_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/budget"
)

func Example() {
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{budget.New()},
		Model:   enginetest.NewScript(enginetest.Say("a long story").Costing(inference.Usage{OutputTokens: 900})),
	})
	if err != nil {
		log.Fatal(err)
	}
	spec := engine.AgentSpec{ID: "teller", Sections: map[string]inference.JSON{"budget": `{"tokens": 500}`}}
	res, err := eng.Run(context.Background(), spec, engine.Prompt("tell me one"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Reason, "-", res.Detail)
	// Output: token_budget - 900 of 500 tokens used
}
