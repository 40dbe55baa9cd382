package headline_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/headline"
)

func Example() {
	rec := &enginetest.Recorder{}
	eng, err := engine.New(engine.Config{
		Plugins:   []engine.Plugin{headline.New(), headline.Focus(), headline.Outline()},
		Model:     enginetest.NewScript(enginetest.Call("c1", "read", map[string]any{"path": "go.mod"}), enginetest.Say("read it")),
		Observers: []engine.Observer{rec},
	})
	if err != nil {
		log.Fatal(err)
	}
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("read go.mod")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "read"}, func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
		return engine.Text("module example.com"), nil
	})}
	if _, err := th.Run(context.Background(), engine.AgentSpec{ID: "reader"}, in); err != nil {
		log.Fatal(err)
	}
	for _, c := range enginetest.Select[engine.Conflict](rec.Events()) {
		fmt.Printf("%s: %s before %s, which was %s\n", c.Key, c.Winner, c.Loser, c.Fate)
	}
	fmt.Println(headline.Key.Get(th.Snapshot()))
	// Output:
	// headline: focus before outline, which was retried
	// step 2, 1 call, last read go.mod
}
