package files_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/files"
)

func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("water the plants\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	tools, err := files.Open(dir, files.Options{})
	if err != nil {
		log.Fatal(err)
	}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{tools},
		Model: enginetest.NewScript(
			enginetest.Call("c1", files.SearchTool, map[string]any{"pattern": "plants"}),
			enginetest.Say("found it"),
		),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = eng.Close(context.Background()) }()
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := th.Run(context.Background(), engine.AgentSpec{ID: "gardener"}, engine.Prompt("what is to do?")); err != nil {
		log.Fatal(err)
	}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		fmt.Print(m.Result.Content)
	}
	// Output:
	// 1 line in 1 of 1 file
	// notes.txt:1: water the plants
}
