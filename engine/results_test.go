package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// gbEditor is a plugin that edits results.
func gbEditor(name string, fn func(cmd *phase.Command, res inference.ToolResult), options ...engine.HookOption) engine.Plugin {
	return gbHook(name, phase.AfterToolExecute, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
		fn(&cmd, pc.Result())
		return cmd, nil
	}, options...)
}

// gbSecretTool answers with something to redact.
func gbSecretTool() *gbTool {
	return gbToolOf("read", func(context.Context, *phase.Context) (engine.Output, error) {
		return engine.Output{Content: "key=hunter2", Details: `{"n":1}`}, nil
	})
}

// Capability M2. Scenario: redaction. A redaction survives a formatter in either order
// of registration: the later of the two runs again on the former's edit.
func TestRedactionSurvivesAFormatter(t *testing.T) {
	redact := gbEditor("redact", func(cmd *phase.Command, res inference.ToolResult) {
		cmd.EditContent(res.CallID, strings.ReplaceAll(res.Content, "hunter2", "***"))
	})
	format := gbEditor("format", func(cmd *phase.Command, res inference.ToolResult) {
		cmd.EditContent(res.CallID, "> "+res.Content)
	})
	for _, plugins := range [][]engine.Plugin{{redact, format}, {format, redact}} {
		w := gbNew(t, engine.Config{
			Model:   gbScript(gbAsk(gbCall("c1", "read", ""))),
			Plugins: append([]engine.Plugin{gbTools(gbSecretTool())}, plugins...),
		})
		w.say("go")
		require.Equal(t, "> key=***", w.one().Content)
		require.Equal(t, inference.JSON(`{"n":1}`), w.one().Details)
		for _, m := range w.messages() {
			require.NotContains(t, m.Text, "hunter2")
		}
		finished := gbOf[engine.ToolFinished](w.events)
		require.Equal(t, "> key=***", finished[0].Result.Content)
	}
}

// Capability M2. Report 2. Content, details and error flag are edited field by field: hooks
// that edit different fields do not conflict, and a field that nobody edits stays.
func TestResultFieldsAreEditedApart(t *testing.T) {
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "read", ""), gbCall("c2", "read", ""))),
		Plugins: []engine.Plugin{
			gbTools(gbSecretTool()),
			gbEditor("content", func(cmd *phase.Command, res inference.ToolResult) {
				if res.CallID == "c1" {
					cmd.EditContent(res.CallID, "new")
				}
			}),
			gbEditor("details", func(cmd *phase.Command, res inference.ToolResult) { cmd.EditDetails(res.CallID, `{"n":2}`) }),
			gbEditor("flag", func(cmd *phase.Command, res inference.ToolResult) { cmd.EditIsError(res.CallID, true) }),
		},
	})
	w.say("go")
	require.Empty(t, gbOf[engine.Conflict](w.events))
	require.Equal(t, []inference.ToolResult{
		{CallID: "c1", Name: "read", Content: "new", Details: `{"n":2}`, IsError: true, Outcome: inference.OutcomeOK},
		{CallID: "c2", Name: "read", Content: "key=hunter2", Details: `{"n":2}`, IsError: true, Outcome: inference.OutcomeOK},
	}, w.results())
}

// An edit belongs to its call, also when a later step reuses the call's id.
func TestEditsDoNotOutliveTheirStep(t *testing.T) {
	first := true
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "read", "")), gbAsk(gbCall("c1", "read", ""))),
		Plugins: []engine.Plugin{gbTools(gbSecretTool()), gbEditor("once", func(cmd *phase.Command, res inference.ToolResult) {
			if first {
				cmd.EditContent(res.CallID, "edited").EditIsError(res.CallID, true)
				first = false
			}
		})},
	})
	w.say("go")
	require.Equal(t, "edited", w.results()[0].Content)
	require.Equal(t, "key=hunter2", w.results()[1].Content)
	require.False(t, w.results()[1].IsError)
}

// Results that no body made can be edited like the others.
func TestEveryOutcomeCanBeEdited(t *testing.T) {
	for name, plugin := range map[string]engine.Plugin{
		"blocked":     gbVote("g", gate.Block("secret reason")),
		"substituted": gbVote("g", gate.SetResult(inference.ToolResult{Content: "secret"})),
		"denied":      gbVote("g", gate.Suspend(gate.Ticket{Default: gate.DefaultNo})),
		"not_run": gbHook("g", phase.AfterInference, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			cmd.EndRun("secret", "")
			return cmd, nil
		}),
		"error": gbVote("g", gate.Edit("nope")),
	} {
		t.Run(name, func(t *testing.T) {
			w := gbNew(t, engine.Config{
				Model: gbScript(gbAsk(gbCall("c1", "read", ""))),
				Plugins: []engine.Plugin{gbTools(gbSecretTool()), plugin, gbEditor("edit", func(cmd *phase.Command, res inference.ToolResult) {
					cmd.EditContent(res.CallID, "edited "+string(res.Outcome))
				})},
			})
			w.say("go")
			if name == "error" {
				name = "blocked"
			}
			require.Equal(t, "edited "+name, w.one().Content)
			require.Equal(t, inference.Outcome(name), w.one().Outcome)
		})
	}
}

// A hook cannot put a result into state that could not be saved.
func TestEditedDetailsMustBeJSON(t *testing.T) {
	w := gbNew(t, engine.Config{
		Model: gbScript(gbAsk(gbCall("c1", "read", ""))),
		Plugins: []engine.Plugin{gbTools(gbSecretTool()), gbEditor("sloppy", func(cmd *phase.Command, res inference.ToolResult) {
			cmd.EditDetails(res.CallID, `{"n":`)
		}, engine.OnError(engine.Skip))},
	})
	res := w.say("go")
	require.NoError(t, res.Err, "the hook's rule is to skip it")
	require.Equal(t, inference.JSON(`{"n":1}`), w.one().Details)
	_, err := w.thread.Export()
	require.NoError(t, err)
}

// Scenario: one shape. Whoever makes a result, hooks after the call see it in the same
// place and form: a typed tool, one without a type, one that the run brought, a gate in
// the tool's stead, a person's answer, and under a model that streams or does not.
func TestResultsHaveOneShape(t *testing.T) {
	const content, details = "as ever", inference.JSON(`{"n":1}`)
	output := engine.Output{Content: content, Details: details}
	free := func() engine.Tool {
		return gbToolOf("t", func(context.Context, *phase.Context) (engine.Output, error) { return output, nil })
	}
	typed := engine.NewTool(inference.ToolSpec{Name: "t"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) { return output, nil })
	for _, stream := range []bool{false, true} {
		for name, c := range map[string]struct {
			plugins []engine.Plugin
			brought []engine.Tool
			want    inference.Outcome
		}{
			"typed":   {[]engine.Plugin{gbTools(typed)}, nil, inference.OutcomeOK},
			"untyped": {[]engine.Plugin{gbTools(free())}, nil, inference.OutcomeOK},
			"brought": {nil, []engine.Tool{free()}, inference.OutcomeOK},
			"with parts": {[]engine.Plugin{gbTools(engine.WithParts(free(), func(*engine.Registrar) error { return nil }))},
				nil, inference.OutcomeOK},
			"of a gate": {[]engine.Plugin{gbTools(free()), gbVote("g", gate.SetResult(inference.ToolResult{Content: content, Details: details}))},
				nil, inference.OutcomeSubstituted},
		} {
			t.Run(fmt.Sprint(name, " ", stream), func(t *testing.T) {
				var seen []inference.ToolResult
				model := gbScript(gbAsk(gbCall("c1", "t", "{}")))
				config := engine.Config{Model: model, Stream: stream, Plugins: append(c.plugins, gbHook("look", phase.AfterToolExecute,
					func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
						seen = append(seen, pc.Result())
						return cmd, nil
					}))}
				if stream {
					config.Model = gbStreamer{model}
				}
				w := gbNew(t, config)
				in := engine.Prompt("go")
				in.Tools = c.brought
				w.run(in)
				want := inference.ToolResult{CallID: "c1", Name: "t", Content: content, Details: details, Outcome: c.want}
				require.Equal(t, []inference.ToolResult{want}, seen)
				require.Equal(t, want, w.one())
			})
		}
	}
}
