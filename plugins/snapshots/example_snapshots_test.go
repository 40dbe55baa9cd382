package snapshots_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/files"
	"github.com/ddd26017/fixpoint/plugins/snapshots"
)

func Example() {
	top, err := os.MkdirTemp("", "snapshots")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(top) }()
	dir := filepath.Join(top, "workspace")
	if err := os.Mkdir(dir, 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plan.txt"), []byte("the plan"), 0o644); err != nil {
		log.Fatal(err)
	}
	tools, err := files.Open(dir, files.Options{})
	if err != nil {
		log.Fatal(err)
	}
	undo := snapshots.New(snapshots.Options{Dir: dir, Store: filepath.Join(top, "copies")})
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{tools, undo},
		Model: enginetest.NewScript(
			enginetest.Call("1", "write_file", inference.JSON(`{"path": "plan.txt", "content": "another"}`)),
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
	if _, err := thread.Run(ctx, engine.AgentSpec{ID: "planner"}, engine.Prompt("improve the plan")); err != nil {
		log.Fatal(err)
	}
	for _, s := range snapshots.List(thread.Snapshot()) {
		fmt.Println(s.ID, s.Why)
	}
	done, err := undo.Restore(ctx, thread, "s1")
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range done.Changes {
		fmt.Println(c.Kind, c.Path)
	}
	text, err := os.ReadFile(filepath.Join(dir, "plan.txt"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s; %s undoes it\n", text, done.Before)
	// Output:
	// s1 run_start
	// modified plan.txt
	// the plan; s2 undoes it
}
