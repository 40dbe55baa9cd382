package cost_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/cost"
)

func Example() {
	costs := cost.New(cost.Options{Tell: func(_ context.Context, r cost.Report) error {
		fmt.Printf("%s: %s %s for %d calls\n", r.Event, r.RunTotal.Amount, r.Currency, r.RunTotal.Calls)
		return nil
	}})
	usage := inference.Usage{InputTokens: 120_000, CachedTokens: 100_000, OutputTokens: 1_000}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{costs},
		Models:  map[string]inference.Model{"small": enginetest.NewScript(enginetest.Say("a long story").Costing(usage))},
	})
	if err != nil {
		log.Fatal(err)
	}
	spec := engine.AgentSpec{ID: "teller", ModelID: "small", Sections: map[string]inference.JSON{"cost": `{
		"prices": {"small": {"input": 0.15, "cached": 0.075, "output": 0.60}},
		"tell_at": [0.01]
	}`}}
	if _, err := eng.Run(context.Background(), spec, engine.Prompt("tell me one")); err != nil {
		log.Fatal(err)
	}
	// Output:
	// passed: 0.0111 USD for 1 calls
	// summary: 0.0111 USD for 1 calls
}
