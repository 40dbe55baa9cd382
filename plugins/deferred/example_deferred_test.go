package deferred_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/deferred"
)

func Example() {
	var tools []engine.Tool
	for _, thing := range []string{"invoice", "meeting", "parcel"} {
		tools = append(tools, engine.NewTool(inference.ToolSpec{Name: "find_" + thing, Description: "Find a certain " + thing + "."},
			func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
				return engine.Text("found the " + thing), nil
			}))
	}
	model := enginetest.NewScript(
		enginetest.Call("c1", deferred.SearchTool, map[string]any{"query": "where is my parcel"}),
		enginetest.Call("c2", "find_parcel", nil),
		enginetest.Say("It is on its way."))
	eng, err := engine.New(engine.Config{Model: model, Plugins: []engine.Plugin{deferred.New(deferred.Options{Tools: tools})}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "clerk"}, engine.Prompt("Where is my parcel?")); err != nil {
		log.Fatal(err)
	}
	for i, r := range model.Requests() {
		fmt.Printf("request %d offers", i+1)
		for _, t := range r.Tools {
			fmt.Print(" ", t.Name)
		}
		fmt.Println()
	}
	// Output:
	// request 1 offers search_tools
	// request 2 offers search_tools find_parcel
	// request 3 offers search_tools find_parcel
}
