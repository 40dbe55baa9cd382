package headline_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/headline"
)

func run(t *testing.T, plugins ...engine.Plugin) (headline.Line, []engine.Event, *enginetest.Script) {
	t.Helper()
	model := enginetest.NewScript(
		enginetest.Call("c1", "read", map[string]any{"path": "a.go"}),
		enginetest.Call("c2", "read", map[string]any{"path": "b.go"}).And(enginetest.Call("c3", "nope", nil)),
		enginetest.Say("done"))
	config, rec := enginetest.Config(t, append(plugins, headline.New())...)
	config.Model = model
	eng, err := engine.New(config)
	require.NoError(t, err)
	th, err := eng.NewThread("")
	require.NoError(t, err)
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{engine.NewTool(inference.ToolSpec{Name: "read"},
		func(context.Context, *phase.Context, map[string]any) (engine.Output, error) {
			return engine.Text("ok"), nil
		})}
	res, err := th.Run(t.Context(), engine.AgentSpec{ID: "a"}, in)
	require.NoError(t, err)
	require.NoError(t, res.Err)
	return headline.Key.Get(th.Snapshot()), rec.Events(), model
}

// Capability A4. Two plugins change one Exclusive key in the same phase: the
// second runs again on what the first wrote, and neither loses anything,
// whichever order they are registered in.
func TestNoUpdateIsLost(t *testing.T) {
	for _, order := range [][]engine.Plugin{{headline.Focus(), headline.Outline()}, {headline.Outline(), headline.Focus()}} {
		line, events, _ := run(t, slices.Clone(order)...)
		require.Equal(t, headline.Line{Step: 3, Calls: 3, Failed: 1, Focus: "last nope"}, line)
		require.Equal(t, "step 3, 3 calls, 1 failed, last nope", line.String())
		conflicts := enginetest.Select[engine.Conflict](events)
		require.Len(t, conflicts, 2, "the last step has no calls, so Focus writes nothing")
		for _, c := range conflicts {
			require.Equal(t, headline.Name, c.Key)
			require.Equal(t, []string{order[0].Name(), order[1].Name(), "retried"}, []string{c.Winner, c.Loser, c.Fate})
		}
	}
}

// Alone, either works, and there is no conflict.
func TestAlone(t *testing.T) {
	line, events, _ := run(t, headline.Focus())
	require.Equal(t, headline.Line{Focus: "last nope"}, line)
	require.Empty(t, enginetest.Select[engine.Conflict](events))
	line, events, model := run(t, headline.Outline())
	require.Equal(t, headline.Line{Step: 3, Calls: 3, Failed: 1}, line)
	require.Empty(t, enginetest.Select[engine.Conflict](events))

	last := model.Requests()[2].Messages
	require.Equal(t, "So far: step 2, 3 calls, 1 failed", last[len(last)-1].Text)
	require.NotContains(t, last[:len(last)-1], inference.System("So far: step 1, 1 call"), "it is told for one step only")
}

// Capability B10. The conflict can be told before anything runs.
func TestManifestShowsTheConflict(t *testing.T) {
	config, _ := enginetest.Config(t, headline.New(), headline.Focus(), headline.Outline())
	eng, err := engine.New(config)
	require.NoError(t, err)
	conflicts := eng.Describe().Conflicts
	require.Len(t, conflicts, 1)
	require.Equal(t, phase.StepEnd, conflicts[0].Phase)
	require.Equal(t, []string{"focus/step_end/0", "outline/step_end/0"}, conflicts[0].Hooks)
}

func TestLineString(t *testing.T) {
	require.Empty(t, headline.Line{}.String())
	require.Equal(t, "step 1, 0 calls", headline.Line{Step: 1}.String())
}
