package autocommit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/autocommit"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/plugins/files"
)

func Example() {
	dir, err := os.MkdirTemp("", "autocommit")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := exec.Command("git", "init", "-q", dir).Run(); err != nil {
		log.Fatal(err)
	}
	tools, err := files.Open(dir, files.Options{})
	if err != nil {
		log.Fatal(err)
	}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{
			tools,
			checks.New(checks.Options{Dir: dir}), // in an earlier tier than what follows
			autocommit.New(autocommit.Options{Dir: dir, Name: "Agent", Email: "agent@example.com"}),
		},
		Model: enginetest.NewScript(
			enginetest.Call("1", "write_file", map[string]string{"path": "hello.txt", "content": "hello\n"}),
			enginetest.Say("done")),
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
	spec := engine.AgentSpec{ID: "greeter", Sections: map[string]inference.JSON{
		"checks":     `{"commands": [{"args": ["git", "grep", "--untracked", "-q", "hello"]}]}`,
		"autocommit": `{"enabled": true, "message": "{{.Task}}"}`,
	}}
	if _, err := thread.Run(ctx, spec, engine.Prompt("Say hello in a file")); err != nil {
		log.Fatal(err)
	}
	res := autocommit.Last.Get(thread.Snapshot())
	fmt.Println(res.Status, res.Paths)
	out, err := exec.Command("git", "-C", dir, "log", "--format=%an: %s").Output()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", out)
	// Output:
	// committed [hello.txt]
	// Agent: Say hello in a file
}
