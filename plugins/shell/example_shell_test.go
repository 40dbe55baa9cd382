//go:build unix

package shell_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/cwd"
	"github.com/ddd26017/fixpoint/plugins/shell"
)

func Example() {
	dir, err := os.MkdirTemp("", "shell")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	place, err := cwd.New(dir, cwd.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sh, err := shell.New(dir, shell.Options{Cwd: cwd.Dir})
	if err != nil {
		log.Fatal(err)
	}
	model := enginetest.NewScript(
		enginetest.Call("c1", shell.Tool, map[string]any{"command": "mkdir -p src && cd src && echo 'package garden' > garden.go"}),
		enginetest.Call("c2", shell.Tool, map[string]any{"command": "ls; exit 3"}),
		enginetest.Say("done"),
	)
	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{place, sh}, Model: model})
	if err != nil {
		log.Fatal(err)
	}
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := th.Run(context.Background(), engine.AgentSpec{ID: "coder"}, engine.Prompt("begin a package")); err != nil {
		log.Fatal(err)
	}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		if m.Text != "" {
			fmt.Printf("%s: %s\n", m.Role, m.Text)
		}
	}
	// Output:
	// user: begin a package
	// tool: [no output]
	// system: The working directory is now src (before: .).
	// tool: garden.go
	// [exit code 3]
	// assistant: done
}
