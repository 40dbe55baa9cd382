package checks_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/plugins/files"
)

func Example() {
	dir, err := os.MkdirTemp("", "checks")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tools, err := files.Open(dir, files.Options{})
	if err != nil {
		log.Fatal(err)
	}
	write := func(id, text string) enginetest.Answer {
		return enginetest.Call(id, "write_file", map[string]string{"path": "x.txt", "content": text})
	}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{tools, checks.New(checks.Options{Dir: dir})},
		Model: enginetest.NewScript(
			write("1", "to do"), enginetest.Say("done"),
			write("2", "all of it"), enginetest.Say("done, really")),
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer func() { _ = eng.Close(ctx) }()
	thread, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	spec := engine.AgentSpec{ID: "writer", Sections: map[string]inference.JSON{
		"checks": `{"commands": [{"name": "unfinished", "args": ["sh", "-c", "! grep -n 'to do' x.txt"]}]}`,
	}}
	if _, err := thread.Run(ctx, spec, engine.Prompt("do it")); err != nil {
		log.Fatal(err)
	}
	for _, m := range engine.Transcript.Get(thread.Snapshot()).All() {
		if m.Role != inference.RoleTool && m.Text != "" {
			fmt.Printf("%s: %s\n", m.Role, m.Text)
		}
	}
	fmt.Println("passed:", checks.Last.Get(thread.Snapshot()).Passed())
	// Output:
	// user: do it
	// assistant: done
	// system: Checks failed. Fix what they found.
	//
	// unfinished: exit status 1
	// 1:to do
	// assistant: done, really
	// passed: true
}
