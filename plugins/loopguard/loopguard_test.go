package loopguard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/loopguard"
)

type call struct{ tool, args string }

// run has the model make the calls, all in one step or each in its own, and
// returns the result of each.
func run(t *testing.T, spec engine.AgentSpec, steps ...[]call) []inference.ToolResult {
	t.Helper()
	tool := func(name string) engine.Tool {
		return engine.NewTool(inference.ToolSpec{Name: name}, func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
			return engine.Text("ok"), nil
		})
	}
	var answers []enginetest.Answer
	for i, calls := range steps {
		var a enginetest.Answer
		for j, c := range calls {
			a = a.And(enginetest.Call(string(rune('a'+i))+string(rune('a'+j)), c.tool, inference.JSON(c.args)))
		}
		answers = append(answers, a)
	}
	config, rec := enginetest.Config(t, loopguard.New())
	config.Model = enginetest.NewScript(append(answers, enginetest.Say("done"))...)
	eng, err := engine.New(config)
	require.NoError(t, err)
	spec.ID = "a"
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{tool("look"), tool("poll")}
	res, err := eng.Run(t.Context(), spec, in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	var out []inference.ToolResult
	for _, e := range enginetest.Select[engine.ToolFinished](rec.Events()) {
		out = append(out, e.Result)
	}
	return out
}

func outcomes(results []inference.ToolResult) (out []inference.Outcome) {
	for _, r := range results {
		out = append(out, r.Outcome)
	}
	return out
}

func with(section string) engine.AgentSpec {
	return engine.AgentSpec{Sections: map[string]inference.JSON{loopguard.Name: inference.JSON(section)}}
}

// Capability M1. The third call that is the same in all but white space is turned
// away with a reason.
func TestRepeats(t *testing.T) {
	got := run(t, engine.AgentSpec{},
		[]call{{"look", `{"at": 1, "x": 2}`}}, []call{{"look", `{"x":2,"at":1}`}}, []call{{"look", `{"at":1,"x":2}`}}, []call{{"look", `{"at":3}`}})
	require.Equal(t, []inference.Outcome{"ok", "ok", "blocked", "ok"}, outcomes(got))
	require.Contains(t, got[2].Content, "look ran 2 times before")
}

// Calls of one step count as well, also when they run at the same time.
func TestRepeatsWithinAStep(t *testing.T) {
	for _, how := range []engine.ToolExecution{engine.ToolsSequential, engine.ToolsParallel} {
		spec := with(`{"repeats": 1, "except": ["po*"]}`)
		spec.ToolExecution = how
		got := run(t, spec, []call{{"look", `{}`}, {"look", `{}`}, {"poll", `{}`}, {"poll", `{}`}, {"poll", `{}`}})
		require.Equal(t, []inference.Outcome{"ok", "blocked", "ok", "ok", "ok"}, outcomes(got), how)
		require.Contains(t, got[1].Content, "once before")
	}
}

func TestFaultySettings(t *testing.T) {
	require.ErrorContains(t, loopguard.Settings{}.Validate(), "loopguard: repeats")
	require.ErrorContains(t, loopguard.Settings{Repeats: 1, Except: []string{"["}}.Validate(), "no pattern")
	require.NoError(t, loopguard.Settings{Repeats: 1, Except: []string{"*"}}.Validate())
}
