package confirm_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
)

type note struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// The person at the desk changes what is to be saved.
func Example() {
	desk := fstest.MapFS{"todo": {Data: []byte("milk\n")}}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{confirm.New(confirm.Options{
			Previews: map[string]confirm.Previewer{"save": confirm.FileDiff(desk, "path", "text")},
		})},
		Schemas: confirm.Schemas(nil),
		Model:   enginetest.NewScript(enginetest.Call("c1", "save", note{"todo", "milk\nrum\n"}), enginetest.Say("done")),
		Resolver: gate.ResolverFunc(func(_ context.Context, t gate.Ticket) (phase.Answer, error) {
			var shown confirm.Preview
			if err := t.Params.Decode(&shown); err != nil {
				return phase.Answer{}, err
			}
			fmt.Printf("%s\n%s%s\n", t.Message, shown.Diff, shown.Choices)
			return confirm.Answer{Choice: confirm.Edit, Args: `{"path": "todo", "text": "milk\ntea\n"}`}.Reply()
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("Add rum to my list")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "save", Kind: "write"},
		func(_ context.Context, _ *phase.Context, n note) (engine.Output, error) {
			fmt.Printf("saved %q\n", n.Text)
			return engine.Text("saved"), nil
		})}
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := th.Run(context.Background(), engine.AgentSpec{ID: "clerk"}, in); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Allow save?
	// --- a/todo
	// +++ b/todo
	// @@ -1,1 +1,2 @@
	//  milk
	// +rum
	// [yes no edit always times]
	// saved "milk\ntea\n"
}

func ExampleParse() {
	a, err := confirm.Parse(`{"choice": "always", "scope": "thread", "covers": "call"}`)
	fmt.Println(a.Choice, a.Scope, a.Covers, err)
	_, err = confirm.Parse(`{"choice": "times"}`)
	fmt.Println(err)
	// Output:
	// always thread call <nil>
	// confirm: the answer cannot be used: n is 0; use 1 to 1000
}
