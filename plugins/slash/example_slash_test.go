package slash_test

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/slash"
)

// A plugin counts messages for whoever asks.
func Example() {
	count := slash.New("count", "tells how many messages there are", "",
		func(_ context.Context, pc *phase.Context, _ struct{}) (slash.Reply, error) {
			return slash.Reply{Text: fmt.Sprintf("%d messages", pc.Messages().Len())}, nil
		})
	eng, err := engine.New(engine.Config{
		Model: inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
			return inference.Response{Message: inference.Assistant("Hello.")}, nil
		}),
		Plugins: []engine.Plugin{engine.NewPlugin("counter", func(r *engine.Registrar) error { r.Extra(count); return nil })},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, agent := context.Background(), engine.AgentSpec{ID: "a"}
	th, _ := eng.NewThread("")
	if _, err := th.Run(ctx, agent, engine.Prompt("Hi.")); err != nil {
		fmt.Println(err)
		return
	}
	set, err := slash.For(eng, agent)
	if err != nil {
		fmt.Println(err)
		return
	}
	for c := range set.All() {
		fmt.Println(c.Usage(), c.Description())
	}
	reply, err := set.Run(ctx, th, nil, "/count")
	fmt.Println(reply.Text, err)
	// Output:
	// /count tells how many messages there are
	// 2 messages <nil>
}
