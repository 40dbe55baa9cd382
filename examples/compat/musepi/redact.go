package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// key matches an API key as it stands in a settings file, also in a JSON text.
var key = regexp.MustCompile(`API_KEY=[^\s"\\]+`)

func redacted(text string) string { return key.ReplaceAllString(text, "API_KEY=[redacted]") }

// redactor is a plugin that takes API keys out of what tools return, failed ones too.
func redactor() engine.Plugin {
	return afterTool("redactor", func(r inference.ToolResult) (cmd phase.Command) {
		if clean := redacted(r.Content); clean != r.Content {
			cmd.EditContent(r.CallID, clean)
		}
		if clean := redacted(string(r.Details)); clean != string(r.Details) {
			cmd.EditDetails(r.CallID, inference.JSON(clean))
		}
		return cmd
	})
}

// formatter is a plugin that numbers the lines of what tools return.
func formatter() engine.Plugin {
	return afterTool("formatter", func(r inference.ToolResult) (cmd phase.Command) {
		var numbered strings.Builder
		n := 0
		for line := range strings.Lines(r.Content) {
			n++
			fmt.Fprintf(&numbered, "%d %s", n, line)
		}
		cmd.EditContent(r.CallID, numbered.String())
		return cmd
	})
}

// afterTool is a plugin with a hook that edits results. Two such hooks run at the same time;
// when both edit a content, the one registered later runs again and gets what the other made
// of it.
func afterTool(name string, edit func(inference.ToolResult) phase.Command) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Hook(phase.AfterToolExecute, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			return edit(pc.Result()), nil
		}))
		return nil
	})
}

// settings is the file that the model reads.
const settings = "HOST=localhost\nAPI_KEY=k-0123456789\nDEBUG=1\n"

// read lets a model read the settings and returns what it is told, and the thread.
func read(ctx context.Context, plugins ...engine.Plugin) (inference.ToolResult, *engine.Thread, error) {
	in := engine.Prompt("What is in .env?")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "read", Kind: "read"},
		func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
			details, err := inference.ToJSON(map[string]any{"path": ".env", "lines": strings.Fields(settings)})
			return engine.Output{Content: settings, Details: details}, err
		})}
	th, _, err := run(ctx, config(script("read", nil, "Settings."), plugins...), in)
	if err != nil {
		return inference.ToolResult{}, nil, err
	}
	return results(th)[0], th, nil
}
