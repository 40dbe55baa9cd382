package engine_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

const fullSpec = `{
  "id": "support",
  "description": "answers <customers>",
  "model_id": "large",
  "system_prompt": "Be kind.\n",
  "max_rounds": 7,
  "stop_conditions": [
    {"type": "max_rounds", "rounds": 3},
    {"type": "timeout", "seconds": 1.5},
    {"type": "token_budget", "tokens": 5000},
    {"type": "consecutive_errors", "count": 2},
    {"type": "stop_on_tool", "tool": "done"},
    {"type": "content_match", "pattern": "(?i)bye"},
    {"type": "loop_detection", "repeats": 4, "window": 9}
  ],
  "reasoning_effort": "low",
  "params": {"temperature": 0, "max_tokens": 100, "top_p": 0.5, "extra": {"seed": 1, "a": null}},
  "tool_execution": "parallel",
  "plugin_ids": ["audit", "budget"],
  "active_hook_filter": ["audit"],
  "allowed_tools": ["search", "done"],
  "allowed_tool_patterns": ["read_*"],
  "excluded_tools": ["shell"],
  "excluded_tool_patterns": ["*_all"],
  "delegates": ["billing"],
  "sections": {"audit": {"b": [1, 2.50], "a": "x"}, "budget": null}
}`

func fullSpecInGo() engine.AgentSpec {
	return engine.AgentSpec{
		ID:           "support",
		Description:  "answers <customers>",
		ModelID:      "large",
		SystemPrompt: "Be kind.\n",
		MaxRounds:    7,
		StopConditions: []engine.StopCondition{
			engine.StopAfterRounds(3),
			engine.StopAfter(1500 * time.Millisecond),
			engine.StopOverTokens(5000),
			engine.StopOnErrors(2),
			engine.StopOnTool("done"),
			engine.StopOnContent("(?i)bye"),
			{Type: engine.StopTypeLoopDetection, Repeats: 4, Window: 9},
		},
		ReasoningEffort: inference.Some(inference.EffortLow),
		Params: inference.Params{
			Temperature: inference.Some(0.0),
			MaxTokens:   inference.Some(100),
			TopP:        inference.Some(0.5),
			Extra:       inference.Extra{}.With("seed", "1").With("a", ""),
		},
		ToolExecution:        engine.ToolsParallel,
		PluginIDs:            []string{"audit", "budget"},
		ActiveHookFilter:     []string{"audit"},
		AllowedTools:         []string{"search", "done"},
		AllowedToolPatterns:  []string{"read_*"},
		ExcludedTools:        []string{"shell"},
		ExcludedToolPatterns: []string{"*_all"},
		Delegates:            []string{"billing"},
		Sections:             map[string]inference.JSON{"audit": `{"a":"x","b":[1,2.50]}`, "budget": ""},
	}
}

// requireSameSpec compares all exported fields. An empty list is like none.
func requireSameSpec(t *testing.T, want, got engine.AgentSpec) {
	t.Helper()
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for i := range w.NumField() {
		field := w.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if k := field.Type.Kind(); (k == reflect.Slice || k == reflect.Map) && w.Field(i).Len()+g.Field(i).Len() == 0 {
			continue
		}
		require.Equal(t, w.Field(i).Interface(), g.Field(i).Interface(), field.Name)
	}
}

// specErrors returns the faults that err joins, each of which must be a
// *SpecError.
func specErrors(t *testing.T, err error) []*engine.SpecError {
	t.Helper()
	require.ErrorIs(t, err, engine.ErrSpec)
	var list []*engine.SpecError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			var e *engine.SpecError
			require.ErrorAs(t, one, &e)
			list = append(list, e)
		}
		return list
	}
	var e *engine.SpecError
	require.ErrorAs(t, err, &e)
	return []*engine.SpecError{e}
}

// Capability A16.
func TestParseSpecReadsEveryField(t *testing.T) {
	spec, err := engine.ParseSpec("agent.json", []byte(fullSpec))
	require.NoError(t, err)
	requireSameSpec(t, fullSpecInGo(), spec)
	require.NoError(t, spec.Validate())
	require.NoError(t, fullSpecInGo().Validate())
}

func TestSpecRoundTrip(t *testing.T) {
	parsed, err := engine.ParseSpec("agent.json", []byte(fullSpec))
	require.NoError(t, err)
	text, err := json.Marshal(parsed)
	require.NoError(t, err)

	fromGo, err := json.Marshal(fullSpecInGo())
	require.NoError(t, err)
	require.Equal(t, string(fromGo), string(text), "the canonical text does not depend on the origin")

	again, err := engine.ParseSpec("", text)
	require.NoError(t, err)
	requireSameSpec(t, parsed, again)

	messy := engine.AgentSpec{ID: "x", Sections: map[string]inference.JSON{"a": ` { "b" : 1 , "a" : [ ] } `}}
	text, err = json.Marshal(messy)
	require.NoError(t, err)
	require.Equal(t, `{"id":"x","sections":{"a":{"a":[],"b":1}}}`, string(text))

	_, err = json.Marshal(engine.AgentSpec{ID: "x", Sections: map[string]inference.JSON{"a": `{`}})
	require.ErrorContains(t, err, `section "a" of agent "x"`)
}

// Each case lists all errors of a text, in order of their positions.
//
// Fault B16.
func TestParseSpecErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {``, `engine: a.json:1:1: not JSON: unexpected end of JSON input`},
		"cut off":          {"{\"id\":\n\"x\"", `engine: a.json:2:4: not JSON: unexpected end of JSON input`},
		"syntax":           {"{\n  \"id\": x}", `engine: a.json:2:9: not JSON: invalid character 'x' looking for beginning of value`},
		"two values":       {`{"id":"x"} {}`, `engine: a.json:1:12: not JSON: invalid character '{' after top-level value`},
		"not UTF-8, twice": {"{\"id\":\"a\",\"id\":\"b\xff\"}", `engine: a.json:1:18: the text is not UTF-8; save it as UTF-8`},
		"not UTF-8":        {"{\"id\":\"\xff\"}", `engine: a.json:1:8: the text is not UTF-8; save it as UTF-8`},
		"too deep": {`{"id":"x","sections":{"a":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}}`,
			`engine: a.json:1:125: nested deeper than 100 levels`},
		"no object": {`"x"`, `engine: a.json:1:1: want an object, got a string
engine: a.json:1:1: id: an agent needs an id`},
		"a list": {`[]`, `engine: a.json:1:1: want an object, got a list; read several specs with ParseSpecs`},
		"unknown field": {"{\"id\": \"x\",\n \"active_hook_fliter\": []}",
			`engine: a.json:2:2: active_hook_fliter: no field "active_hook_fliter"; did you mean "active_hook_filter"?`},
		"wrong case":     {`{"ID": "x", "id": "x"}`, `engine: a.json:1:2: ID: no field "ID"; did you mean "id"?`},
		"repeated field": {"{\"id\": \"x\",\n \"id\": \"y\"}", `engine: a.json:2:2: id: field "id" appears twice, first at 1:2; keep one`},
		"repeated in a section": {`{"id": "x", "sections": {"a": {"b": 1, "b": 2}}}`,
			`engine: a.json:1:40: sections.a.b: field "b" appears twice, first at 1:32; keep one`},
		"columns are characters": {`{"id": "äöü", "max_rounds": -1}`, `engine: a.json:1:29: max_rounds: want 0 (for 25) or more, got -1`},
		"wrong types": {`{"id": 5, "max_rounds": "3", "plugin_ids": "a", "allowed_tools": ["a", 1], "sections": []}`,
			`engine: a.json:1:8: id: want a string, got a number
engine: a.json:1:25: max_rounds: want a number, got a string
engine: a.json:1:44: plugin_ids: want a list, got a string
engine: a.json:1:72: allowed_tools[1]: want a string, got a number
engine: a.json:1:88: sections: want an object, got a list`},
		"null": {`{"id": "x", "allowed_tools": null, "sections": null}`,
			`engine: a.json:1:30: allowed_tools: want a list, got null
engine: a.json:1:48: sections: want an object, got null`},
		"fraction": {`{"id": "x", "max_rounds": 1.5}`, `engine: a.json:1:27: max_rounds: want a whole number of 64 bits, got 1.5`},
		"no id":    {`{"description": "x"}`, `engine: a.json:1:1: id: an agent needs an id`},
		"params": {`{"id": "x", "reasoning_effort": "hihg", "params": {"temperature": -1, "top_p": "x", "max_token": 5, "reasoning_effort": "low"}}`,
			`engine: a.json:1:33: reasoning_effort: no reasoning effort "hihg"; did you mean "high"?
engine: a.json:1:67: params.temperature: want a finite number of 0 or more, got -1
engine: a.json:1:80: params.top_p: want a number in the range of float64, got a string
engine: a.json:1:85: params.max_token: no field "max_token"; did you mean "max_tokens"?
engine: a.json:1:121: params.reasoning_effort: reasoning_effort is set outside params too; keep one`},
		"tool execution": {`{"id": "x", "tool_execution": "paralel"}`,
			`engine: a.json:1:31: tool_execution: no tool execution "paralel"; did you mean "parallel"?`},
		"lists": {`{"id": "x", "plugin_ids": ["a", "b", "a"], "active_hook_filter": ["", "c"], "allowed_tool_patterns": ["[", "ok"], "delegates": ["x"]}`,
			`engine: a.json:1:38: plugin_ids[2]: "a" is listed twice, first at [0]; keep one
engine: a.json:1:67: active_hook_filter[0]: an empty name
engine: a.json:1:71: active_hook_filter[1]: no plugin in plugin_ids named "c"; known: a, b, a
engine: a.json:1:103: allowed_tool_patterns[0]: "[" is not a pattern as path.Match takes it: syntax error in pattern
engine: a.json:1:129: delegates[0]: an agent cannot delegate to itself`},
		"odd names": {`{"id": "x", "sections": {"": 1, "a b": {"c.d": [1, {"e": 1, "e": 2}]}}}`,
			`engine: a.json:1:26: sections[""]: a section without a name
engine: a.json:1:61: sections["a b"]["c.d"][1].e: field "e" appears twice, first at 1:53; keep one`},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := engine.ParseSpec("a.json", []byte(c.text))
			require.EqualError(t, err, c.want)
			require.Equal(t, engine.AgentSpec{}, spec, "nothing is half loaded")
			specErrors(t, err)
		})
	}
}

func TestSpecErrorParticulars(t *testing.T) {
	_, err := engine.ParseSpec("a.json", []byte("{\"id\": \"x\",\n  \"stop_conditions\": [{\"type\": \"max_rounds\", \"roudns\": 3}]}"))
	list := specErrors(t, err)
	require.Len(t, list, 2)
	require.Equal(t, &engine.SpecError{
		File: "a.json", Line: 2, Column: 23, Agent: "x", Path: "stop_conditions[0].rounds",
		Msg: "want rounds above 0, got 0",
	}, list[0], "a missing field is reported where it is missing from")
	require.Equal(t, &engine.SpecError{
		File: "a.json", Line: 2, Column: 46, Path: "stop_conditions[0].roudns",
		Msg: `no field "roudns"`, Nearest: "rounds",
	}, list[1])
}

func TestSpecMadeInGoIsCheckedToo(t *testing.T) {
	err := engine.AgentSpec{ID: "x", MaxRounds: -2, Delegates: []string{"a", "a"}, ToolExecution: "both"}.Validate()
	require.EqualError(t, err, `engine: agent "x": max_rounds: want 0 (for 25) or more, got -2
engine: agent "x": tool_execution: no tool execution "both"; known: sequential, parallel
engine: agent "x": delegates[1]: "a" is listed twice, first at [0]; keep one`)
	err = engine.AgentSpec{Sections: map[string]inference.JSON{"a": "{"}}.Validate()
	require.EqualError(t, err, "engine: agent spec: id: an agent needs an id\nengine: agent spec: sections.a: not JSON")
}

func TestUnmarshalIsStrict(t *testing.T) {
	var doc struct{ Agent engine.AgentSpec }
	err := json.Unmarshal([]byte(`{"agent": {"id": "x", "plugin_id": []}}`), &doc)
	require.EqualError(t, err, `engine: agent spec: plugin_id: no field "plugin_id"; did you mean "plugin_ids"?`)
	require.Equal(t, engine.AgentSpec{}, doc.Agent)

	require.NoError(t, json.Unmarshal([]byte(`{"agent": `+fullSpec+`}`), &doc))
	require.Equal(t, fullSpecInGo(), doc.Agent)
}

// Fault B16.
func TestParseSpecs(t *testing.T) {
	one, err := engine.ParseSpecs("a.json", []byte(`{"id": "x"}`))
	require.NoError(t, err)
	require.Len(t, one, 1)

	two, err := engine.ParseSpecs("a.json", []byte(`[{"id": "x"}, {"id": "y"}]`))
	require.NoError(t, err)
	require.Equal(t, "y", two[1].ID)

	none, err := engine.ParseSpecs("a.json", []byte("[\n {\"id\": \"x\"},\n {\"id\": \"x\", \"max_rounds\": -1}, 5]"))
	require.EqualError(t, err, `engine: a.json:3:9: id: a second agent with the id "x"; the first is at a.json:2:9
engine: a.json:3:28: max_rounds: want 0 (for 25) or more, got -1
engine: a.json:3:33: want an object, got a number
engine: a.json:3:33: id: an agent needs an id`)
	require.Empty(t, none)
}

// Fault B16.
func TestSpecFromNode(t *testing.T) {
	str := func(text string, line, column int) *engine.SpecNode {
		return &engine.SpecNode{Kind: engine.StringNode, Text: text, Line: line, Column: column}
	}
	filter := &engine.SpecNode{Kind: engine.ListNode, Line: 2, Column: 21, Items: []*engine.SpecNode{str("a", 3, 5), str("a", 4, 5)}}
	root := &engine.SpecNode{Kind: engine.ObjectNode, Line: 1, Column: 1, Members: []engine.SpecMember{
		{Name: "id", Line: 1, Column: 1, Value: str("x", 1, 5)},
		{Name: "active_hook_filter", Line: 2, Column: 1, Value: filter},
	}}
	_, err := engine.SpecFromNode("a.yaml", root)
	require.EqualError(t, err, `engine: a.yaml:4:5: active_hook_filter[1]: "a" is listed twice, first at [0]; keep one`)

	filter.Items = filter.Items[:1]
	spec, err := engine.SpecFromNode("a.yaml", root)
	require.NoError(t, err)
	filter.Items[0].Text = "changed later"
	require.Equal(t, []string{"a"}, spec.ActiveHookFilter)

	cyclic := &engine.SpecNode{Kind: engine.ListNode}
	cyclic.Items = []*engine.SpecNode{cyclic, cyclic}
	wide := &engine.SpecNode{Kind: engine.NullNode}
	for range 20 {
		wide = &engine.SpecNode{Kind: engine.ListNode, Items: []*engine.SpecNode{wide, wide}}
	}
	for name, c := range map[string]struct {
		value *engine.SpecNode
		want  string
	}{
		"nil":       {nil, "sections: no value"},
		"no kind":   {&engine.SpecNode{}, "sections: a node of unknown kind 0"},
		"bool":      {&engine.SpecNode{Kind: engine.BoolNode, Text: "yes"}, `sections: "yes" is neither true nor false`},
		"number":    {&engine.SpecNode{Kind: engine.NumberNode, Text: "0x10"}, `sections: "0x10" is not a number as JSON writes it`},
		"cycle":     {cyclic, "nested deeper than 100 levels"},
		"explosion": {wide, "more than 100000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine.SpecFromNode("a.yaml", &engine.SpecNode{Kind: engine.ObjectNode, Members: []engine.SpecMember{{Name: "sections", Value: c.value}}})
			require.EqualError(t, err, "engine: a.yaml: "+c.want)
		})
	}
	_, err = engine.SpecFromNode("a.yaml", nil)
	require.ErrorIs(t, err, engine.ErrSpec)
}

// Fault B39.
func TestCloneSharesNothing(t *testing.T) {
	spec, err := engine.ParseSpec("", []byte(fullSpec))
	require.NoError(t, err)
	c := spec.Clone()
	require.Equal(t, spec, c)
	for _, list := range [][]string{c.PluginIDs, c.ActiveHookFilter, c.AllowedTools, c.AllowedToolPatterns, c.ExcludedTools, c.ExcludedToolPatterns, c.Delegates} {
		list[0] = "changed"
	}
	c.StopConditions[0].Rounds = 99
	c.Sections["audit"] = "changed"
	requireSameSpec(t, fullSpecInGo(), spec)
}

func TestSpecActive(t *testing.T) {
	for _, c := range []struct {
		ids, filter []string
		want        bool
	}{
		{nil, nil, true},
		{[]string{"a"}, nil, true},
		{[]string{"b"}, nil, false},
		{nil, []string{"a"}, true},
		{nil, []string{"b"}, false},
		{[]string{"a", "b"}, []string{"b"}, false},
	} {
		require.Equal(t, c.want, engine.AgentSpec{PluginIDs: c.ids, ActiveHookFilter: c.filter}.Active("a"), "%v", c)
	}
}

func TestSpecParameters(t *testing.T) {
	spec := engine.AgentSpec{Params: inference.Params{Temperature: inference.Some(0.0)}, ReasoningEffort: inference.Some(inference.EffortHigh)}
	require.Equal(t, inference.Params{Temperature: inference.Some(0.0), ReasoningEffort: inference.Some(inference.EffortHigh)}, spec.Parameters())
	require.False(t, spec.Params.ReasoningEffort.IsSet())
}

func FuzzParseSpec(f *testing.F) {
	for _, seed := range []string{
		fullSpec, ``, `{}`, `[]`, `{"id":"x"}`, "\xef\xbb\xbf{\"id\":\"x\"}", `{"id":"\ud800"}`, `{"id":"x","id":"y"}`,
		`{"id":"x","sections":{"a":{"b":[null,true,1e5,-0,"<\u2028>"]}}}`, `{"id":"x","params":{"extra":{"a":[1.0]}}}`,
		`{"id":"x","stop_conditions":[{"type":"timeout","seconds":1e-9}]}`, `{"id":"x","max_rounds":9223372036854775808}`,
		`{"id":"x","allowed_tools":[],"sections":{}}`,
		`{"id":"x","stop_Conditions":[{"type":"timeout"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := engine.ParseSpec("fuzz.json", data)
		if err != nil {
			for _, e := range specErrors(t, err) {
				require.Positive(t, e.Line)
				require.Positive(t, e.Column)
			}
			return
		}
		text, err := json.Marshal(spec)
		require.NoError(t, err)
		again, err := engine.ParseSpec("", text)
		require.NoError(t, err, "%s", text)
		requireSameSpec(t, spec, again)
		twice, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(text), string(twice))
	})
}

func TestSpecFileFromDisk(t *testing.T) {
	name := t.TempDir() + "/agent.json"
	require.NoError(t, os.WriteFile(name, []byte(`{"id": "x", "sectoins": {}}`), 0o600))
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	_, err = engine.ParseSpec(name, data)
	var e *engine.SpecError
	require.True(t, errors.As(err, &e))
	require.Equal(t, "sections", e.Nearest)
	require.Equal(t, name, e.File)
}
