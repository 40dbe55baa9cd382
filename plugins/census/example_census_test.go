package census_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/census"
)

func Example() {
	dir := fstest.MapFS{"go.mod": {}, "cmd/main.go": {}, "cmd/internal/x.go": {}, "cmd/internal/y.go": {}}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{census.New(dir)},
		Model:   enginetest.NewScript(enginetest.Say("I see")),
	})
	if err != nil {
		log.Fatal(err)
	}
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	res, err := th.Run(context.Background(), engine.AgentSpec{ID: "counter"}, engine.Prompt("what is there?"))
	if err != nil {
		log.Fatal(err)
	}
	for _, level := range census.Levels.All(th.Snapshot()) {
		fmt.Println(level.Level, level.Files)
	}
	fmt.Println(res.Stats.MaxRounds, "rounds")
	// Output:
	// 1 1
	// 2 1
	// 3 2
	// 3 rounds
}
