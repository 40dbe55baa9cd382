package activecontext_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/activecontext"
)

func Example() {
	dir := fstest.MapFS{
		"plan.md": &fstest.MapFile{Data: []byte("1. Read.\n2. Write.")},
		"main.go": &fstest.MapFile{Data: []byte("package main")},
	}
	model := enginetest.NewScript(enginetest.Call("c1", "format", map[string]any{"path": "main.go"}), enginetest.Say("done"))
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{activecontext.New(dir)}, Model: model})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("format the program")
	in.Tools = []engine.Tool{enginetest.StubTool("format", engine.Text("formatted"))}
	spec := engine.AgentSpec{ID: "coder", Sections: map[string]inference.JSON{"activecontext": `{"files": ["plan.md"]}`}}
	if _, err := eng.Run(context.Background(), spec, in); err != nil {
		log.Fatal(err)
	}
	last := model.Requests()[1].Messages
	fmt.Println(last[len(last)-1].Text)
	// Output:
	// What follows is context, not a request. It is as of now and replaces what earlier messages show of it.
	//
	// === plan.md ===
	// 1. Read.
	// 2. Write.
	//
	// === main.go ===
	// package main
}
