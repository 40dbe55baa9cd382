package compact_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/compact"
)

// echo is a model that answers with what it was given.
var echo = inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
	return inference.Response{Message: inference.Assistant(words(r.Messages))}, nil
})

func talk(plugins ...engine.Plugin) {
	eng, err := engine.New(engine.Config{Plugins: plugins, Model: echo})
	if err != nil {
		log.Fatal(err)
	}
	ctx, spec := context.Background(), engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{
		compact.Name: `{"max_tokens": 60, "keep_recent": 1, "min_saving": 5}`,
	}}
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{
		"My name is Ada and I have a rather long story to tell, which begins at home.",
		"Then I went to the sea, where I met an old friend of mine who sails.",
		"What is my name?",
	} {
		res, err := th.Run(ctx, spec, engine.Prompt(text))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Text)
	}
}

// From the second on requests would be too large: a summary takes the place of what is
// older.
func Example() {
	talk(compact.New(compact.Options{Summarizer: compact.SummarizerFunc(
		func(_ context.Context, in compact.Input) (compact.Output, error) {
			return compact.Output{Text: fmt.Sprintf("Ada told %d messages", len(in.Messages))}, nil
		})}))
	// Output:
	// u:My name is Ada and I have a rather long story to tell, which begins at home.
	// u:<Ada told 2 messages> u:Then I went to the sea, where I met an old friend of mine who sails.
	// u:<Ada told 2 messages> u:What is my name?
}

// Another plugin cancels a compaction, or brings a summary of its own.
func ExamplePrepare() {
	own := engine.NewPlugin("own", func(r *engine.Registrar) error {
		r.ActionGate(gate.OnAction(compact.Compact, func(_ context.Context, pc *phase.Context, args compact.Args) (gate.Ruling, error) {
			cut, err := compact.Prepare(pc, args)
			if err != nil {
				return gate.Ruling{}, err
			}
			if len(cut.Messages) < 2 {
				return gate.Cancel("not worth it"), nil
			}
			cmd, err := cut.Command("her name is Ada")
			return gate.Replace("knows what matters", cmd), err
		}))
		return nil
	})
	talk(compact.New(compact.Options{}), own)
	// Output:
	// u:My name is Ada and I have a rather long story to tell, which begins at home.
	// u:<her name is Ada> u:Then I went to the sea, where I met an old friend of mine who sails.
	// u:<her name is Ada> u:What is my name?
}
