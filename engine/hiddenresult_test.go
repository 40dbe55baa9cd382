package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// When a hook that was to look at a result fails its phase, edits of its tier do not
// count, so nobody gets to see the result as it was: no model of this run or a later
// one, and no observer. A hook that may be skipped lets it through.
//
// Capability M2.
func TestResultIsHiddenWhenAHookThatEditsItFails(t *testing.T) {
	for name, c := range map[string]struct {
		rule  engine.ErrorRule
		tiers [2]int // of the redactor and of the one that fails
		want  string
	}{
		"same tier": {engine.Fail, [2]int{0, 0}, "hidden"},
		"before":    {engine.Fail, [2]int{1, 0}, "hidden"},
		"after":     {engine.Fail, [2]int{0, 1}, "hidden"},
		"skipped":   {engine.Skip, [2]int{0, 0}, "the key is ***"},
	} {
		for _, how := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
			t.Run(name+"/"+string(how), func(t *testing.T) {
				boom := errors.New("boom")
				failing := true
				config, rec := enginetest.Config(t,
					gaTools(engine.NewTool(inference.ToolSpec{Name: "read"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
						return engine.Output{Content: "the key is s3cret", Details: `{"key":"s3cret"}`}, nil
					})),
					gaOn("redact", phase.AfterToolExecute, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
						cmd.EditContent(pc.Call().ID, strings.ReplaceAll(pc.Result().Content, "s3cret", "***")).EditDetails(pc.Call().ID, `{}`)
						return cmd, nil
					}, engine.Tier(c.tiers[0])),
					gaOn("fails", phase.AfterToolExecute, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
						if failing {
							return cmd, boom
						}
						return cmd, nil
					}, engine.Tier(c.tiers[1]), engine.OnError(c.rule)))
				var seen []string
				script := enginetest.NewScript(enginetest.Call("c1", "read", inference.JSON(`{}`)), enginetest.Say("done"), enginetest.Say("done"))
				config.Model = inference.ModelFunc(func(ctx context.Context, req inference.Request) (inference.Response, error) {
					for _, m := range req.Messages {
						seen = append(seen, m.Text, m.Result.Content, string(m.Result.Details))
					}
					return script.Generate(ctx, req)
				})
				eng := gaNew(t, config)
				th, err := eng.NewThread("")
				require.NoError(t, err)
				spec := engine.AgentSpec{ID: "a", ToolExecution: how}
				res, err := th.Run(t.Context(), spec, engine.Prompt("go"))
				require.NoError(t, err)
				if c.rule == engine.Fail {
					require.ErrorIs(t, res.Err, boom)
				} else {
					require.NoError(t, res.Err)
				}
				failing = false
				res, err = th.Run(t.Context(), spec, engine.Prompt("again"))
				require.NoError(t, err)
				require.NoError(t, res.Err)
				all := strings.Join(seen, "\n")
				require.NotContains(t, all, "s3cret")
				require.Contains(t, all, c.want)
				for _, e := range enginetest.Select[engine.ToolFinished](rec.Events()) {
					require.NotContains(t, e.Result.Content+string(e.Result.Details), "s3cret")
				}
			})
		}
	}
}
