package worker_test

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func Example() {
	journal := memstore.New(memstore.Options{}) // workers in several processes share one that they all reach
	client, err := worker.NewClient(worker.ClientConfig{Journal: journal})
	if err != nil {
		panic(err)
	}
	w, err := worker.New(worker.Config{
		Journal: journal,
		Engine: func(c engine.Config) (*engine.Engine, error) {
			c.Model = inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
				return inference.Response{Message: inference.Assistant("Hello to you.")}, nil
			})
			return engine.New(c)
		},
		Specs: func(_ context.Context, agent string) (engine.AgentSpec, error) {
			return engine.AgentSpec{ID: agent}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error)
	go func() { over <- w.Run(ctx) }()

	hello := worker.Activation{
		Thread: "t1", Agent: "helper", Messages: []inference.Message{inference.User("Hello!")}, Key: "message 17",
	}
	receipt, err := client.Submit(ctx, hello)
	if err != nil {
		panic(err)
	}
	again, err := client.Submit(ctx, hello) // a double click
	fmt.Println(again.Repeated, again.Run == receipt.Run, err)

	outcome, err := client.Await(ctx, receipt)
	fmt.Println(outcome.Fate, outcome.Status, outcome.Reason, err)
	cancel()
	fmt.Println(<-over)
	// Output:
	// true true <nil>
	// applied done natural <nil>
	// <nil>
}

func ExampleClient_Cancel() {
	ctx := context.Background()
	client, err := worker.NewClient(worker.ClientConfig{Journal: memstore.New(memstore.Options{})})
	if err != nil {
		panic(err)
	}
	receipt, err := client.Cancel(ctx, "t1", "changed my mind")
	fmt.Println(receipt.Seq, err)
	status, err := client.Status(ctx, "t1")
	for _, item := range status.Pending {
		fmt.Println(item.Activation.Kind, item.Activation.Reason, err)
	}
	// Output:
	// 1 <nil>
	// cancel changed my mind <nil>
}

func ExampleLane() {
	fmt.Println(worker.Lane{Priority: worker.High, Tenant: "acme/eu"})
	lane, ok := worker.ParseLane("run/low/acme")
	fmt.Println(lane.Priority, lane.Tenant, ok)
	// Output:
	// run/high/acme%2Feu
	// low acme true
}
