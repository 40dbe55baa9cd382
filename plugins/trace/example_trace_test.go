package trace_test

import (
	"context"
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
	//     0.0000 run id-2 of agent scout: look around
	//     0.0080   step 1
	//     0.0170     model: 1 message, 1 tool
	//     0.0190     model answered in 2ms, 0 tokens in and 0 out, asks for 1 call
	//     0.0270     call look c1
	//     0.0270       tool_gate: 1 gate
	//     0.0270         gate loopguard/tool_gate/0 says abstain in 1ms
	//     0.0310         gates: abstain by default
	//     0.0320       tool_gate took 5ms
	//     0.0360       before_tool_execute: 1 hook
	//     0.0360         hook loopguard/before_tool_execute/0 took 1ms
	//     0.0420       before_tool_execute took 6ms
	//     0.0520     call look c1: ok in 25ms, its body 1ms
	//     0.0580   step 1 took 50ms
	//     0.0620   step 2
	//     0.0710     model: 3 messages, 1 tool
	//     0.0730     model answered in 2ms, 0 tokens in and 0 out
	//     0.0850   step 2 took 23ms
	//     0.0940 run ended: natural, after 94ms
	// summary of run id-2: 94ms
	//       time       self  share  what
	//       94ms       17ms 100.0%  run scout
	//        2ms        2ms   2.1%    run_start
	//       73ms       28ms  77.7%    step ×2
	//        4ms        4ms   4.3%      step_start ×2
	//        4ms        4ms   4.3%      before_inference ×2
	//        4ms        4ms   4.3%      model ×2
	//        4ms        4ms   4.3%      after_inference ×2
	//       25ms       11ms  26.6%      call look
	//        5ms        4ms   5.3%        tool_gate
	//        1ms        1ms   1.1%          gate loopguard/tool_gate/0
	//        6ms        5ms   6.4%        before_tool_execute
	//        1ms        1ms   1.1%          hook loopguard/before_tool_execute/0
	//        2ms        2ms   2.1%        after_tool_execute
	//        1ms        1ms   1.1%        body
	//        4ms        4ms   4.3%      step_end ×2
	//        2ms        2ms   2.1%    run_end
}
