package enginetest_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// A script made in Go plays the model of a run.
func ExampleNewScript() {
	script := enginetest.NewScript(
		enginetest.Call("c1", "add", map[string]int{"a": 2, "b": 3}),
		enginetest.Say("The sum is 5."),
	)
	eng, err := engine.New(engine.Config{Model: script})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := engine.Prompt("What is 2 + 3?")
	in.Tools = []engine.Tool{enginetest.StubTool("add", engine.Text("5"))}
	res, err := eng.Run(context.Background(), engine.AgentSpec{ID: "adder"}, in)
	fmt.Println(res.Text, err)
	fmt.Println("the model saw:", script.Requests()[1].Messages[2].Text)
	// Output:
	// The sum is 5. <nil>
	// the model saw: 5
}

// A script from a file refers to what tools returned.
func ExampleParseScript() {
	script, err := enginetest.ParseScript("survey.json", []byte(`{"answers": [
		{"tool_calls": [{"id": "list", "tool": "list_files"}]},
		{"text": "{{ (.Result \"list\").Content | lines | len }} files, the first is {{ (.Result \"list\").Content | lines | at 0 }}."}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	eng, err := engine.New(engine.Config{Model: script})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := engine.Prompt("What is here?")
	in.Tools = []engine.Tool{enginetest.StubTool("list_files", engine.Text("go.mod\nmain.go\n"))}
	res, err := eng.Run(context.Background(), engine.AgentSpec{ID: "surveyor"}, in)
	fmt.Println(res.Text, err)
	// Output: 2 files, the first is go.mod. <nil>
}

// Clock and ids come from the test, so that a run can be compared with another.
func ExampleNewClock() {
	clock, id := enginetest.NewClock(enginetest.Epoch()), enginetest.NewIDs("run")
	fmt.Println(clock.Now().Format("15:04:05.000"), id())
	fmt.Println(clock.Now().Format("15:04:05.000"), id())
	// Output:
	// 00:00:00.000 run-1
	// 00:00:00.001 run-2
}

// exampleTest stands for the *testing.T that a test has.
type exampleTest struct{ fakeT }

func (e *exampleTest) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

var greeting = state.NewCell[string]("example.greeting", state.Options[string]{})

func greeter() engine.Plugin {
	return engine.NewPlugin("greeter", func(r *engine.Registrar) error {
		r.Key(greeting)
		r.Hook(phase.AfterToolExecute, phase.HookFunc(func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			cmd.Update(greeting.With("hello " + pc.Result().Content))
			return cmd, nil
		}))
		return nil
	})
}

// A Driver takes a plugin through one phase, here that of a tool call.
func ExampleDriver() {
	t := &exampleTest{fakeT{ctx: context.Background()}} // a *testing.T in a test
	d := enginetest.Driver{
		Plugins: []engine.Plugin{greeter()},
		Call:    inference.ToolCall{ID: "c1", Name: "whoami"},
		Tools:   []engine.Tool{enginetest.StubTool("whoami", engine.Text("Ada"))},
	}
	out := d.RunPhase(t, phase.AfterToolExecute)
	fmt.Println(greeting.Get(out.Snapshot), out.Err)
	fmt.Println(out.Report.Hooks[0].Hook, out.Report.Hooks[0].Status)
	// Output:
	// hello Ada <nil>
	// greeter/after_tool_execute/0 committed
}

// A Recorder keeps the events of a run.
func ExampleRecorder() {
	t := &exampleTest{fakeT{ctx: context.Background()}}
	config, rec := enginetest.Config(t)
	config.Model = enginetest.NewScript(enginetest.Say("hi"))
	_, err := enginetest.Engine(t, config).Run(context.Background(), engine.AgentSpec{ID: "agent"}, engine.Prompt("hello"))
	fmt.Println(err, rec.Lines()[0])
	for _, e := range enginetest.Select[engine.InferenceFinished](rec.Events()) {
		fmt.Println(e.Step, e.Text)
	}
	// Output:
	// <nil> {"type":"run_started","seq":1,"run":"id-2","thread":"id-1","agent":"agent","step":0,"revision":0,"input":"hello"}
	// 1 hi
}

// The reducer of a Commutative key must not care about order.
func ExampleCheckCommutative() {
	t := &exampleTest{fakeT{ctx: context.Background()}}
	longest := state.NewKey("example.longest", state.KeyConfig[string, string]{
		Merge: state.Commutative,
		Apply: func(v, u string) string {
			if len(u) > len(v) {
				return u
			}
			return v // of two equally long ones the first stays: the fault
		},
	})
	enginetest.CheckCommutative(t, longest, nil, []string{"a", "bb"})
	fmt.Println(t.Failed())
	enginetest.CheckCommutative(t, longest, nil, []string{"aa", "bb"})
	fmt.Println(t.Failed())
	// Output:
	// false
	// true
}

// Results by index do not depend on timing; results by completion would.
func ExampleCheckDeterminism() {
	t := &exampleTest{fakeT{ctx: context.Background()}}
	enginetest.CheckDeterminism(t, 9, func(shuffle enginetest.Shuffle) []string {
		lines := make([]string, 4)
		var wg sync.WaitGroup
		for i := range lines {
			wg.Go(func() {
				shuffle()
				lines[i] = fmt.Sprint("hook ", i)
			})
		}
		wg.Wait()
		return lines
	})
	fmt.Println(t.Failed())
	// Output: false
}

// CheckLeaks comes first in a test, so that it looks last.
func ExampleCheckLeaks() {
	t := try(context.Background(), func(t enginetest.TB) {
		enginetest.CheckLeaks(t)
		eng := enginetest.Engine(t, engine.Config{Model: enginetest.NewScript(enginetest.Say("hi"))})
		for range eng.Events(t.Context(), engine.AgentSpec{ID: "agent"}, engine.Prompt("hello")) {
			break // the run is cancelled and has ended when the loop is left
		}
	})
	fmt.Println(t.Failed())
	// Output: false
}
