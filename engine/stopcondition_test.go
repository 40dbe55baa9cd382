package engine_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
)

func TestStopConditionRules(t *testing.T) {
	for _, c := range []struct {
		stop engine.StopCondition
		want string // after the path of the condition; "" for none
	}{
		{engine.StopAfterRounds(1), ""},
		{engine.StopAfterRounds(0), ".rounds: want rounds above 0, got 0"},
		{engine.StopAfter(time.Nanosecond), ""},
		{engine.StopAfter(0), ".seconds: want seconds above 0 and below 9223372036, got 0"},
		{engine.StopAfter(-time.Second), ".seconds: want seconds above 0 and below 9223372036, got -1"},
		{engine.StopCondition{Type: engine.StopTypeTimeout, Seconds: math.NaN()}, ".seconds: want seconds above 0 and below 9223372036, got NaN"},
		{engine.StopCondition{Type: engine.StopTypeTimeout, Seconds: 1e10}, ".seconds: want seconds above 0 and below 9223372036, got 1e+10"},
		{engine.StopCondition{Type: engine.StopTypeTimeout, Seconds: 1e-12}, ".seconds: want seconds above 0 and below 9223372036, got 1e-12"},
		{engine.StopOverTokens(1), ""},
		{engine.StopOverTokens(-1), ".tokens: want tokens above 0, got -1"},
		{engine.StopOnErrors(1), ""},
		{engine.StopOnErrors(-1), ".count: want count above 0, got -1"},
		{engine.StopOnTool("a"), ""},
		{engine.StopOnTool(""), ".tool: want the name of a tool"},
		{engine.StopOnContent("a+"), ""},
		{engine.StopOnContent("a("), ".pattern: not a regular expression: error parsing regexp: missing closing ): `a(`"},
		{engine.StopOnContent(""), ".pattern: want a regular expression; an empty one matches every answer"},
		{engine.StopOnLoop(0), ""},
		{engine.StopOnLoop(2), ""},
		{engine.StopOnLoop(1), ".repeats: want 2 repeats or more, got 1"},
		{engine.StopOnLoop(-1), ".repeats: want 2 repeats or more, got -1"},
		{engine.StopCondition{Type: engine.StopTypeLoopDetection, Window: 3}, ""},
		{engine.StopCondition{Type: engine.StopTypeLoopDetection, Window: 2}, ".window: want a window of at least the 3 repeats, got 2"},
		{engine.StopCondition{Type: engine.StopTypeMaxRounds, Rounds: 1, Tool: "a"}, ".tool: a condition of type max_rounds takes no tool; its fields: rounds"},
		{engine.StopCondition{}, `.type: no stop condition ""; known: max_rounds, timeout, token_budget, consecutive_errors, stop_on_tool, content_match, loop_detection`},
	} {
		t.Run(fmt.Sprintf("%+v", c.stop), func(t *testing.T) {
			err := engine.AgentSpec{ID: "x", StopConditions: []engine.StopCondition{c.stop}}.Validate()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, `engine: agent "x": stop_conditions[0]`+c.want)
		})
	}
}

// Fault B16.
func TestStopConditionText(t *testing.T) {
	_, err := engine.ParseSpec("a.json", []byte(`{"id": "x", "stop_conditions": [
 {"type": "timout", "seconds": 1},
 {"type": "timeout", "seconds": "30s"},
 {"type": "timeout", "seconds": 1, "rounds": 0},
 5]}`))
	require.EqualError(t, err, `engine: a.json:2:11: stop_conditions[0].type: no stop condition "timout"; did you mean "timeout"?
engine: a.json:3:33: stop_conditions[1].seconds: want a number, got a string
engine: a.json:4:36: stop_conditions[2].rounds: a condition of type timeout takes no rounds; its fields: seconds
engine: a.json:5:2: stop_conditions[3]: want an object, got a number
engine: a.json:5:2: stop_conditions[3].type: no stop condition ""; known: max_rounds, timeout, token_budget, consecutive_errors, stop_on_tool, content_match, loop_detection`)
}

func TestStopAfterKeepsTheDuration(t *testing.T) {
	for _, d := range []time.Duration{1, time.Millisecond, 90*time.Minute + 1, 30 * 24 * time.Hour} {
		require.Equal(t, d, engine.StopAfter(d).Timeout())
	}
}
