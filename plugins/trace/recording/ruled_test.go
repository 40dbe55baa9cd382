package recording_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// Events without the line that says that they are a trace were written by no rules, such
// as those of `fixpoint run --json`: what is made of them tells no secrets either.
func TestLinesThatNoRulesWereForAreRuled(t *testing.T) {
	event := engine.ToolStarted{
		Header: engine.Header{Seq: 1, Time: enginetest.Epoch(), Run: "r", Thread: "t", Agent: "a", Step: 1},
		Call:   inference.ToolCall{ID: "c", Name: "login", Args: `{"password":"hunter-22"}`},
	}
	for name, lines := range map[string][]trace.Line{
		"events alone": {{Event: event, Number: 1}},
		"a trace":      {{Version: 1, Number: 1}, {Event: event, Number: 2}},
	} {
		rec := recording.New("x")
		for _, l := range lines {
			rec.Add(l)
		}
		view, err := json.Marshal(rec.View())
		require.NoError(t, err)
		require.Contains(t, string(view), "login")
		if name == "events alone" {
			require.NotContains(t, string(view), "hunter-22")
		} else {
			require.Contains(t, string(view), "hunter-22", "its writer's rules are its writer's affair")
		}
	}
}
