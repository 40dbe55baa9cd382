package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// What an answer cost counts also when it cannot be used, so that budgets see it.
func TestUsageOfAFailedInferenceCounts(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		resp inference.Response
		err  error
		want inference.Usage
	}{
		"the model failed":        {inference.Response{Usage: inference.Usage{InputTokens: 7, OutputTokens: 2, ReasoningTokens: 1}}, broken, inference.Usage{InputTokens: 7, OutputTokens: 2, ReasoningTokens: 1}},
		"its answer is no use":    {inference.Response{Message: inference.User("x"), Usage: inference.Usage{InputTokens: 3}}, nil, inference.Usage{InputTokens: 3}},
		"it told nothing":         {inference.Response{}, broken, inference.Usage{}},
		"it claims to have given": {inference.Response{Usage: inference.Usage{InputTokens: 9, OutputTokens: -1}}, broken, inference.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := gbNew(t, engine.Config{Model: gbScript(func(context.Context, inference.Request) (inference.Response, error) { return c.resp, c.err })})
			res, err := w.thread.Run(t.Context(), w.spec, engine.Prompt("x"))
			require.NoError(t, err)
			require.Error(t, res.Err)
			require.Equal(t, c.want, res.Usage)
		})
	}
}

// A call that the token limit cut off before its arguments is not a call without any.
func TestACallThatWasCutOffDoesNotRun(t *testing.T) {
	for stop, ran := range map[inference.StopReason]int{inference.StopMaxTokens: 1, inference.StopToolUse: 2} {
		t.Run(string(stop), func(t *testing.T) {
			got := 0
			tool := engine.NewTool(inference.ToolSpec{Name: "wipe"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
				got++
				return engine.Output{Content: "wiped"}, nil
			})
			w := gbNew(t, engine.Config{Plugins: []engine.Plugin{gaPlugin("p", func(r *engine.Registrar) { r.Tool(tool) })},
				Model: gbScript(func(context.Context, inference.Request) (inference.Response, error) {
					return inference.Response{Message: inference.Assistant("", gbCall("a", "wipe", ""), gbCall("b", "wipe", "")), Stop: stop}, nil
				})})
			_, err := w.thread.Run(t.Context(), w.spec, engine.Prompt("x"))
			require.NoError(t, err)
			require.Equal(t, ran, got)
			results := gbOf[engine.ToolFinished](w.events)
			require.Len(t, results, 2)
			require.Equal(t, stop == inference.StopMaxTokens, results[1].Result.IsError)
		})
	}
}
