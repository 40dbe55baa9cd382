package budget_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/budget"
)

var nothing = engine.NewTool(inference.ToolSpec{Name: "nothing"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
	return engine.Text("ok"), nil
})

// run gives a model that uses 10 tokens in each step as many calls as asked, and
// returns the warnings that reached its requests.
func run(t *testing.T, section string, calls int) (*engine.Result, []string) {
	t.Helper()
	var answers []enginetest.Answer
	for i := range calls {
		answers = append(answers, enginetest.Call(string(rune('a'+i)), "nothing", nil).Costing(inference.Usage{InputTokens: 6, OutputTokens: 4}))
	}
	model := enginetest.NewScript(append(answers, enginetest.Say("done").Costing(inference.Usage{OutputTokens: 10}))...)
	config, _ := enginetest.Config(t, budget.New())
	config.Model = model
	eng, err := engine.New(config)
	require.NoError(t, err)
	spec := engine.AgentSpec{ID: "a"}
	if section != "" {
		spec.Sections = map[string]inference.JSON{budget.Name: inference.JSON(section)}
	}
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{nothing}
	res, err := eng.Run(t.Context(), spec, in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	var warnings []string
	requests := model.Requests()
	for _, m := range requests[len(requests)-1].Messages {
		if m.Role == inference.RoleSystem {
			warnings = append(warnings, m.Text)
		}
	}
	return res, warnings
}

// Capability G7. The model is warned once, and the run ends when the tokens are
// used.
func TestBudget(t *testing.T) {
	res, warnings := run(t, `{"tokens": 50}`, 9)
	require.Equal(t, phase.ReasonTokenBudget, res.Reason)
	require.Equal(t, "50 of 50 tokens used", res.Detail)
	require.Equal(t, 5, res.Steps)
	require.Len(t, warnings, 1)
	require.True(t, strings.HasPrefix(warnings[0], "40 of 50 tokens"), warnings[0])

	res, warnings = run(t, `{"tokens": 50, "warn_at": 0}`, 9)
	require.Equal(t, phase.ReasonTokenBudget, res.Reason)
	require.Empty(t, warnings)

	res, warnings = run(t, `{"tokens": 100}`, 3)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Empty(t, warnings)

	for _, unlimited := range []string{"", `{}`, `{"tokens": 0}`} {
		res, warnings = run(t, unlimited, 9)
		require.Equal(t, phase.ReasonNatural, res.Reason)
		require.Empty(t, warnings)
	}
}

// A warning that nobody would read is not left behind in the queue.
func TestNoWarningAtTheEnd(t *testing.T) {
	res, warnings := run(t, `{"tokens": 11}`, 0)
	require.Equal(t, phase.ReasonNatural, res.Reason)
	require.Empty(t, warnings)
	require.Zero(t, res.Stats.DeadLetters)
}

func TestFaultyLimits(t *testing.T) {
	for _, l := range []budget.Limits{{Tokens: -1}, {WarnAt: 1}, {WarnAt: -0.1}} {
		require.ErrorContains(t, l.Validate(), "budget: ")
	}
	require.NoError(t, budget.Limits{}.Validate())
}
