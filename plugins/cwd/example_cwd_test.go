package cwd_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/cwd"
)

func Example() {
	dir, err := os.MkdirTemp("", "cwd")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Mkdir(filepath.Join(dir, "garden"), 0o700); err != nil {
		log.Fatal(err)
	}
	place, err := cwd.New(dir, cwd.Options{})
	if err != nil {
		log.Fatal(err)
	}
	model := enginetest.NewScript(
		enginetest.Call("c1", cwd.ChangeTool, map[string]any{"directory": "garden"}),
		enginetest.Say("here I am"),
	)
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{place}, Model: model})
	if err != nil {
		log.Fatal(err)
	}
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := th.Run(context.Background(), engine.AgentSpec{ID: "gardener"}, engine.Prompt("go to the garden")); err != nil {
		log.Fatal(err)
	}
	for _, m := range model.Requests()[1].Messages[2:] {
		fmt.Printf("%s: %s\n", m.Role, m.Text)
	}
	fmt.Println(cwd.Dir.Get(th.Snapshot()))
	// Output:
	// tool: the working directory is garden
	// system: The working directory is now garden (before: .).
	// garden
}
