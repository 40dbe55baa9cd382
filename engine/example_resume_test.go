package engine_test

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// newShop is a program that asks before it sells, over a journal that outlives it.
func newShop(journal engine.Journal) *engine.Engine {
	shop := engine.NewPlugin("shop", func(r *engine.Registrar) error {
		r.Tool(engine.NewTool(inference.ToolSpec{Name: "sell"},
			func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
				fmt.Println("selling")
				return engine.Text("sold"), nil
			}))
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
			return gate.Ask(gate.Ticket{Message: "Sell the last one?"}), nil
		}))
		return nil
	})
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{shop}, Journal: journal,
		Model: enginetest.NewScript(enginetest.Call("c1", "sell", struct{}{}), enginetest.Say("done")),
	})
	if err != nil {
		panic(err)
	}
	return eng
}

// A run waits for a person's answer; another process opens the thread, brings the
// answer, and finishes the run.
func ExampleThread_Resume() {
	ctx, spec := context.Background(), engine.AgentSpec{ID: "seller"}
	journal := memstore.New(memstore.Options{}) // store/bolt keeps threads in a file

	thread, err := newShop(journal).NewThread("order-7")
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := thread.Run(ctx, spec, engine.Prompt("sell it"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status, res.Tickets[0].Message)

	again, err := newShop(journal).OpenThread(ctx, "order-7")
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err = again.Resume(ctx, spec, engine.Input{}, engine.Decision{
		ID: "click-1", Answer: phase.Answer{Ticket: again.Tickets()[0].ID, Approved: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status, res.Text)
	// Output:
	// waiting Sell the last one?
	// selling
	// done done
}
