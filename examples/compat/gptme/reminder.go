package main

import (
	"context"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/clock"
)

// evening is when the agent is asked to build.
var evening = time.Date(2026, time.November, 30, 23, 0, 0, 0, time.UTC)

// remind lets a model build a large program late in the evening, and returns what it was
// asked each time.
func remind(ctx context.Context) ([]inference.Request, error) {
	now := enginetest.NewClock(evening)
	model := enginetest.NewScript(
		enginetest.Call("c1", "look", nil), enginetest.Call("c2", "build", nil), enginetest.Say("It is built."))
	tool := func(name string, takes time.Duration) engine.Tool {
		return engine.NewTool(inference.ToolSpec{Name: name}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
			now.Advance(takes)
			return engine.Text("done"), nil
		})
	}
	in := engine.Prompt("Build it.")
	in.Tools = []engine.Tool{tool("look", time.Second), tool("build", 40*time.Minute)}
	_, err := run(ctx, engine.Config{
		Plugins: []engine.Plugin{clock.New(clock.Options{Now: now.Now})},
		Model:   model,
		Now:     now.Now,
	}, engine.AgentSpec{ID: "gptme"}, in)
	return model.Requests(), err
}
