package recording_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
	"github.com/ddd26017/fixpoint/state"
)

// recorded runs an agent whose two plugins both want to set the price, and whose guard
// lets nobody pay.
func recorded(o ...engine.Observer) {
	price := state.NewCell("price", state.Options[int]{})
	sets := func(name string, raise int) engine.Plugin {
		return engine.NewPlugin(name, func(r *engine.Registrar) error {
			if name == "shop" {
				r.Key(price)
			}
			r.Hook(phase.RunStart, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				return *cmd.Update(price.With(price.Get(pc.Snapshot()) + raise)), nil
			}), engine.Writes(price))
			return nil
		})
	}
	guard := engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Block("no money"), nil }))
		return nil
	})
	eng, err := engine.New(engine.Config{
		Observers: o,
		Plugins:   []engine.Plugin{sets("shop", 10), sets("tax", 2), guard},
		Model:     enginetest.NewScript(enginetest.Call("c1", "pay", map[string]int{"amount": 12}), enginetest.Say("never mind")),
		Now:       enginetest.NewClock(enginetest.Epoch()).Now,
		NewID:     enginetest.NewIDs("id"),
	})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("buy it")
	in.Tools = []engine.Tool{enginetest.StubTool("pay", engine.Text("paid"))}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "buyer"}, in); err != nil {
		log.Fatal(err)
	}
}

// Who wrote the price, and who had to try again?
func ExampleRecording_Explain() {
	rec := recording.New("example")
	recorded(rec)
	for _, rev := range []uint64{2, 0} {
		why, err := rec.Explain(recording.Query{Key: "price", Revision: rev})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(why)
	}
	_, err := rec.Explain(recording.Query{Key: "prize"})
	fmt.Println(err)
	// Output:
	// price at revision 2: 10
	//   Hook shop/run_start/0 wrote it at revision 2, in run_start.
	//   It had no value before, and became 10.
	//   Hook tax/run_start/0 lost price to shop, and wanted 2; its retry wrote it at revision 3: 12.
	//   After that, hook tax/run_start/0 wrote it at revision 3, in run_start, in a serial retry.
	// price at revision 12: 12
	//   Hook tax/run_start/0 wrote it at revision 3, in run_start, in a serial retry after a conflict: it lost price to shop.
	//   It changed from 10 to 12.
	//   Before that, hook shop/run_start/0 wrote it at revision 2, in run_start.
	// recording: unknown key “prize”; did you mean “price”?
}

// Why did the tool not run?
func ExampleRecording_Why() {
	rec := recording.New("example")
	recorded(rec)
	decisions, err := rec.Why("c1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(decisions[0])
	// Output:
	// call c1 (pay) in step 1 of run id-2: blocked
	//   The model asked for pay with {"amount":12}.
	//   The gates were asked: gate guard/tool_gate/0 says block: no money.
	//   Plugin guard blocked the call: no money.
	//   The tool did not run.
	//   The result that the model was given is blocked: “blocked: no money”.
}

// A trace that was written is read line by line.
func ExampleRecording_Add() {
	var file bytes.Buffer
	t := trace.New(trace.Options{Lines: &file})
	recorded(t)
	if err := t.Close(context.Background()); err != nil {
		log.Fatal(err)
	}

	rec := recording.New("run.trace")
	for line, err := range trace.Read(&file) {
		if err != nil {
			log.Fatal(err)
		}
		rec.Add(line)
	}
	view := rec.View()
	fmt.Println(view.Source, len(view.Runs), view.Runs[0].Status, view.Runs[0].Conflicts, view.Runs[0].Blocked)
	for _, span := range view.Spans {
		if span.Kind == recording.KindHook || span.Kind == recording.KindGate {
			fmt.Println(span.Phase, span.Name, span.Try, span.Status)
		}
	}
	// Output:
	// run.trace 1 done 1 1
	// run_start shop/run_start/0 1 ok
	// run_start tax/run_start/0 1 conflict
	// run_start tax/run_start/0 2 retried
	// tool_gate guard/tool_gate/0 0 block
}

// A page that is live asks for what changed.
func ExampleRecording_Since() {
	rec := recording.New("live")
	recorded(rec)
	all, cursor := rec.Since(0)
	fmt.Println(len(all.Runs), len(all.Calls))
	rec.Note("the disk is full")
	patch, _ := rec.Since(cursor)
	fmt.Println(len(patch.Runs), len(patch.Calls), patch.Notes)
	// Output:
	// 1 1
	// 0 0 [the disk is full]
}
