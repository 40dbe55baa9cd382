package picture_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/picture"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// titles is an engine in which two hooks write one key.
func titles(observers ...engine.Observer) (*engine.Engine, error) {
	title := state.NewCell("title", state.Options[string]{})
	set := func(text string) phase.Hook {
		return phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, _ error) {
			cmd.Update(title.With(text))
			return cmd, nil
		})
	}
	return engine.New(engine.Config{
		Model: inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) { return inference.Response{}, nil }),
		Plugins: []engine.Plugin{
			engine.NewPlugin("namer", func(r *engine.Registrar) error {
				r.Key(title)
				r.Hook(phase.StepEnd, set("a name"), engine.Writes(title))
				return nil
			}),
			engine.NewPlugin("editor", func(r *engine.Registrar) error {
				r.Hook(phase.StepEnd, set("a better name"), engine.Writes(title))
				return nil
			}),
		},
		Observers: observers,
	})
}

func ExampleText() {
	eng, err := titles()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(picture.Text(eng.Describe()))
	// Output:
	// plugin namer
	//   from github.com/ddd26017/fixpoint/engine/picture_test
	//   key title; run; exclusive
	//   hook namer/step_end/0; tier 0; on error fail; writes title
	// plugin editor
	//   from github.com/ddd26017/fixpoint/engine/picture_test
	//   hook editor/step_end/0; tier 0; on error fail; writes title
	// could conflict
	//   step_end; tier 0; exclusive key title; written by namer/step_end/0, editor/step_end/0
}

func ExampleConflicts() {
	eng, err := titles()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(picture.Conflicts(eng.Describe(), nil))
	// Output:
	// step_end, tier 0
	//   exclusive key title
	//     written by namer/step_end/0
	//     written by editor/step_end/0
	//     when both write it, editor/step_end/0 runs again on what namer/step_end/0 wrote
}

func ExampleObserved() {
	var seen picture.Observed
	eng, err := titles(&seen)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "author"}, engine.Prompt("Write.")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(picture.Conflicts(eng.Describe(), &seen))
	for h := range seen.Hooks() {
		fmt.Println(h.Hook, h.Runs, h.Lost)
	}
	// Output:
	// step_end, tier 0
	//   exclusive key title
	//     written by namer/step_end/0 (declared, observed in 1 commit)
	//     written by editor/step_end/0 (declared, observed in 1 commit)
	//     when both write it, editor/step_end/0 runs again on what namer/step_end/0 wrote
	//     observed: editor/step_end/0 lost it to namer once
	// editor/step_end/0 1 [{title namer 1}]
	// namer/step_end/0 1 []
}

func ExampleMermaid() {
	eng, err := titles()
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(picture.Mermaid(eng.Describe())) {
		if strings.Contains(line, "k0") {
			fmt.Print(line)
		}
	}
	// Output:
	//     k0[("title")]:::fought
	//     p0h0 -->|writes| k0
	//     p1h0 -->|writes| k0
}

func ExampleDOT() {
	eng, err := titles()
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(picture.DOT(eng.Describe())) {
		if strings.Contains(line, "p1") {
			fmt.Print(line)
		}
	}
	// Output:
	//   p1h0 [shape=box, label="editor/step_end/0\ntier 0"]
	//   phase8 -> p1h0 [arrowhead=none]
	//   p1h0 -> k0 [label="writes", penwidth=2, color="#c0392b"]
}

func ExampleSVG() {
	eng, err := titles()
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(picture.SVG(eng.Describe())) {
		if strings.Contains(line, "<desc") {
			fmt.Print(line)
		}
	}
	// Output:
	// <desc id="picture-desc">2 plugins, 2 hooks, 0 gates, 1 key that hooks could fight over, 0 active hooks without declared writes.</desc>
}
