package agentsmd_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/agentsmd"
)

func Example() {
	dir := fstest.MapFS{"AGENTS.md": &fstest.MapFile{Data: []byte("Run the tests before you say that it works.")}}
	model := enginetest.NewScript(enginetest.Say("it works"))
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{agentsmd.New(dir)}, Model: model})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "coder"}, engine.Prompt("does it work?")); err != nil {
		log.Fatal(err)
	}
	for _, m := range model.Requests()[0].Messages {
		fmt.Printf("%s: %s\n", m.Role, m.Text)
	}
	// Output:
	// user: does it work?
	// system: AGENTS.md says:
	//
	// Run the tests before you say that it works.
}
