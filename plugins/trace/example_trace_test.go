package trace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/loopguard"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

func Example() {
	t := trace.New(trace.Options{Text: os.Stdout})
	eng, err := engine.New(engine.Config{
		Observers: []engine.Observer{t},
		Plugins:   []engine.Plugin{t, loopguard.New()},
		Model:     enginetest.NewScript(enginetest.Call("c1", "look", nil), enginetest.Say("nothing there")),
		Now:       enginetest.NewClock(enginetest.Epoch()).Now,
		NewID:     enginetest.NewIDs("id"),
	})
	if err != nil {
		log.Fatal(err)
	}
	in := engine.Prompt("look around")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "look"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
		return engine.Text("a wall"), nil
	})}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "scout"}, in); err != nil {
		log.Fatal(err)
	}
	if err := eng.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0.0000 run id-2 of agent scout: look around
	//     0.0080   step 1
	//     0.0170     model: 1 message, 1 tool
	//     0.0190     model answered in 2ms, 0 tokens in and 0 out, asks for 1 call
	//     0.0230     after_inference: 1 hook
	//     0.0240       hook loopguard/after_inference/0 took 1ms
	//     0.0280     after_inference took 5ms
	//     0.0300     call look c1
	//     0.0300       tool_gate: 1 gate
	//     0.0310         gate loopguard/tool_gate/0 says abstain in 1ms
	//     0.0340         gates: abstain by default
	//     0.0350       tool_gate took 5ms
	//     0.0390       before_tool_execute: 1 hook
	//     0.0400         hook loopguard/before_tool_execute/0 took 1ms
	//     0.0450       before_tool_execute took 6ms
	//     0.0550     call look c1: ok in 25ms, its body 1ms
	//     0.0610   step 1 took 53ms
	//     0.0650   step 2
	//     0.0740     model: 3 messages, 1 tool
	//     0.0760     model answered in 2ms, 0 tokens in and 0 out
	//     0.0800     after_inference: 1 hook
	//     0.0810       hook loopguard/after_inference/0 took 1ms
	//     0.0860     after_inference took 6ms
	//     0.0920   step 2 took 27ms
	//     0.1010 run ended: natural, after 101ms
	// summary of run id-2: 101ms
	//       time       self  share  what
	//      101ms       17ms 100.0%  run scout
	//        2ms        2ms   2.0%    run_start
	//       80ms       28ms  79.2%    step ×2
	//        4ms        4ms   4.0%      step_start ×2
	//        4ms        4ms   4.0%      before_inference ×2
	//        4ms        4ms   4.0%      model ×2
	//       11ms        9ms  10.9%      after_inference ×2
	//        2ms        2ms   2.0%        hook loopguard/after_inference/0 ×2
	//       25ms       11ms  24.8%      call look
	//        5ms        4ms   5.0%        tool_gate
	//        1ms        1ms   1.0%          gate loopguard/tool_gate/0
	//        6ms        5ms   5.9%        before_tool_execute
	//        1ms        1ms   1.0%          hook loopguard/before_tool_execute/0
	//        2ms        2ms   2.0%        after_tool_execute
	//        1ms        1ms   1.0%        body
	//        4ms        4ms   4.0%      step_end ×2
	//        2ms        2ms   2.0%    run_end
}

// A trace as JSON lines, without what its rules hide, that is read again.
func ExampleRead() {
	var file bytes.Buffer
	t := trace.New(trace.Options{Lines: &file, Rules: trace.Rules{Secrets: []string{"open sesame"}, Members: []string{"door"}}})
	eng, err := engine.New(engine.Config{
		Observers: []engine.Observer{t},
		Model:     enginetest.NewScript(enginetest.Call("c1", "look", map[string]any{"door": 7, "apiKey": "x", "say": "open sesame!"}), enginetest.Say("done")),
		Now:       enginetest.NewClock(enginetest.Epoch()).Now,
		NewID:     enginetest.NewIDs("id"),
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "scout"}, engine.Prompt("look around")); err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(eng.Close(context.Background()), t.Close(context.Background())); err != nil {
		log.Fatal(err)
	}
	for line, err := range trace.Read(&file) {
		if err != nil {
			log.Fatal(err)
		}
		switch e := line.Event.(type) {
		case nil:
			fmt.Println("version", line.Version)
		case engine.InferenceFinished:
			for _, call := range e.ToolCalls {
				fmt.Println(call.Name, call.Args)
			}
		}
	}
	// Output:
	// version 1
	// look {"apiKey":{"$hidden":true},"door":{"$hidden":true},"say":"[hidden]!"}
}
