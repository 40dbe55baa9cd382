package clock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/clock"
)

func Example() {
	now := enginetest.NewClock(time.Date(2026, time.November, 30, 9, 30, 0, 0, time.UTC))
	build := engine.NewTool(inference.ToolSpec{Name: "build"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
		now.Advance(7 * time.Minute) // it is a large program
		return engine.Text("built"), nil
	})
	model := enginetest.NewScript(enginetest.Call("c1", "build", nil), enginetest.Say("done"))
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{clock.New(clock.Options{Now: now.Now})}, Model: model, Now: now.Now})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("build it")
	in.Tools = []engine.Tool{build}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "builder"}, in); err != nil {
		log.Fatal(err)
	}
	for _, m := range model.Requests()[1].Messages {
		if m.Role == inference.RoleSystem {
			fmt.Println(m.Text)
		}
	}
	// Output:
	// It is Monday, 30 November 2026, 09:30 UTC.
	// This run has taken 7 min so far. It is 09:37 UTC.
}
