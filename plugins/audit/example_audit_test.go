package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/audit"
)

func Example() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{audit.New(audit.Options{Dir: dir})},
		Model:   enginetest.NewScript(enginetest.Say("nothing to do")),
		NewID:   enginetest.NewIDs("id"),
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "idler"}, engine.Prompt("hello")); err != nil {
		log.Fatal(err)
	}
	if err := eng.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, audit.DefaultPath))
	if err != nil {
		log.Fatal(err)
	}
	var entry audit.Entry
	if err := json.Unmarshal(text, &entry); err != nil {
		log.Fatal(err)
	}
	fmt.Println(entry.Agent, entry.Event, entry.Reason)
	// Output: idler run_end natural
}
