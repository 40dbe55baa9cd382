package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

func ExampleParseSpec() {
	_, err := engine.ParseSpec("agent.json", []byte(`{
  "id": "support",
  "max_rounds": -1,
  "active_hook_fliter": ["audit"]
}`))
	fmt.Println(err)
	// Output:
	// engine: agent.json:3:17: max_rounds: want 0 (for 25) or more, got -1
	// engine: agent.json:4:3: active_hook_fliter: no field "active_hook_fliter"; did you mean "active_hook_filter"?
}

func ExampleAgentSpec() {
	spec := engine.AgentSpec{
		ID:             "support",
		StopConditions: []engine.StopCondition{engine.StopAfter(30 * time.Second), engine.StopOnTool("done")},
		Params:         inference.Params{Temperature: inference.Some(0.0)},
		ToolExecution:  engine.ToolsParallel,
	}
	fmt.Println(spec.Validate())
	text, _ := json.Marshal(spec)
	fmt.Println(string(text))
	// Output:
	// <nil>
	// {"id":"support","stop_conditions":[{"type":"timeout","seconds":30},{"type":"stop_on_tool","tool":"done"}],"params":{"temperature":0},"tool_execution":"parallel"}
}

func ExampleParseSpecs() {
	specs, err := engine.ParseSpecs("agents.json", []byte(`[{"id": "front"}, {"id": "back"}]`))
	fmt.Println(len(specs), specs[1].ID, err)
	// Output: 2 back <nil>
}

func ExampleConfigKey() {
	type Config struct {
		Limit int    `json:"limit"`
		Unit  string `json:"unit"`
	}
	key := engine.NewConfigKey("budget", engine.ConfigOptions[Config]{
		Default: func() Config { return Config{Limit: 100, Unit: "tokens"} },
	})
	c, err := key.From(engine.AgentSpec{ID: "x", Sections: map[string]inference.JSON{"budget": `{"limit": 5}`}})
	fmt.Println(c, err)
	_, err = key.From(engine.AgentSpec{ID: "x", Sections: map[string]inference.JSON{"budget": `{"limti": 5}`}})
	fmt.Println(err)
	// Output:
	// {5 tokens} <nil>
	// engine: agent "x": sections.budget.limti: no field "limti"; did you mean "limit"?
}

func ExampleEngine_Describe() {
	title := state.NewCell("title", state.Options[string]{})
	hook := phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, nil })
	e, err := engine.New(engine.Config{
		Model: inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) { return inference.Response{}, nil }),
		Plugins: []engine.Plugin{
			engine.NewPlugin("namer", func(r *engine.Registrar) error {
				r.Key(title)
				r.Hook(phase.StepEnd, hook, engine.Writes(title))
				return nil
			}),
			engine.NewPlugin("editor", func(r *engine.Registrar) error {
				r.Hook(phase.StepEnd, hook, engine.Writes(title))
				return nil
			}),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range e.Describe().Conflicts {
		fmt.Println(c.Phase, c.Key, c.Hooks)
	}
	// Output:
	// step_end title [namer/step_end/0 editor/step_end/0]
}
