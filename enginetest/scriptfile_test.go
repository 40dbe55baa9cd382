package enginetest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/stretchr/testify/require"
)

// result is the message with which a call is answered.
func result(id, content string, details inference.JSON, isError bool) inference.Message {
	return inference.ToolMessage(inference.ToolResult{
		CallID: id, Name: "tool-of-" + id, Content: content, Details: details, IsError: isError, Outcome: inference.OutcomeOK,
	})
}

// printed returns what a template prints over a transcript.
func printed(t *testing.T, tmpl string, history ...inference.Message) (string, error) {
	t.Helper()
	file, err := json.Marshal(map[string]any{"answers": []any{map[string]any{"text": tmpl}}})
	require.NoError(t, err)
	s, err := enginetest.ParseScript("s.json", file)
	require.NoError(t, err)
	got, err := s.Generate(t.Context(), request(history...))
	return got.Message.Text, err
}

func TestScriptFileTemplates(t *testing.T) {
	details := inference.JSON(`{"files":["a.go","b.md","c/d.go"],"count":3,"size":12345678901,"ratio":0.5,"deep":{"ok":true},"nothing":null}`)
	history := []inference.Message{
		inference.User("survey this"), inference.System("be kind"), inference.User("please"),
		result("c1", "  one\ntwo\nthree\n", details, false), result("c2", "", "", true),
	}
	for tmpl, want := range map[string]string{
		`{{ .Input }}|{{ .Task }}|{{ .Step }}`:                                                                                               "please|survey this|1",
		`{{ with .Result "c1" }}{{ .Name }} {{ .IsError }} {{ .Outcome }}{{ end }}`:                                                          "tool-of-c1 false ok",
		`{{ (.Result "c2").IsError }} {{ .Has "c2" }} {{ .Has "c3" }} {{ len .Results }}`:                                                    "true true false 2",
		`{{ (index .Results "c1").Content | trim | lines | join "," }}`:                                                                      "one,two,three",
		`{{ (.Result "c1").Content | lines | first 2 }}`:                                                                                     "[  one two]",
		`{{ (.Result "c1").Content | lines | last 1 | join "" }}`:                                                                            "three",
		`{{ (.Result "c1").Content | lines | skip 1 | at 1 }}`:                                                                               "three",
		`{{ (.Result "c1").Content | lines | at 9 }}{{ (.Result "c1").Content | lines | at -1 }}.`:                                           ".",
		`{{ (.Result "c2").Content | lines | len }}`:                                                                                         "0",
		`{{ "grüße" | first 3 }} {{ "grüße" | last 2 }} {{ "ab" | first 9 }} {{ "ab" | skip 9 }}`:                                            "grü ße ab ",
		`{{ range (.Result "c1").Details.files | first 2 }}<{{ . }}>{{ end }}`:                                                               "<a.go><b.md>",
		`{{ (.Result "c1").Details.files | filter ".go" | join " " }}`:                                                                       "a.go c/d.go",
		`{{ (.Result "c1").Details.size }} {{ (.Result "c1").Details.ratio }}`:                                                               "12345678901 0.5",
		`{{ if gt (.Result "c1").Details.count 2 }}many{{ end }}`:                                                                            "many",
		`{{ (.Result "c1").Details.deep | json }} {{ json "a<b" }}`:                                                                          `{"ok":true} "a<b"`,
		`{{ (.Result "c1").Details.nothing | default "none" }} {{ default 7 0 }} {{ default 7 8 }}`:                                          "none 7 8",
		`{{ add 1 2 }} {{ sub 5 3 }} {{ upper "a" }}{{ lower "B" }}`:                                                                         "3 2 Ab",
		`{{ replace "a" "b" "aa" }} {{ split "," "x,y" | last 1 }}`:                                                                          "bb [y]",
		`{{ contains "b" "abc" }} {{ hasPrefix "b" "abc" }} {{ hasSuffix "c" "abc" }}`:                                                       "true false true",
		`{{ base "c/d.go" }} {{ dir "c/d.go" }} {{ ext "c/d.go" }}`:                                                                          "d.go c .go",
		`{{ first 2 (.Result "c1").Details.nothing }}{{ at 0 (.Result "c1").Details.nothing }}{{ join "," (.Result "c1").Details.nothing }}`: "[]",
	} {
		got, err := printed(t, tmpl, history...)
		require.NoError(t, err, tmpl)
		require.Equal(t, want, got, tmpl)
	}
}

func TestScriptFileTemplateFaults(t *testing.T) {
	history := []inference.Message{inference.User("go"), result("c1", "text", `{"n":1}`, false), result("c2", "no details", "{oops", false)}
	for tmpl, want := range map[string]string{
		`{{ .Result "c9" }}`:                   `no result of call "c9"; known calls: c1, c2`,
		`{{ (.Result "c1").Details.missing }}`: "missing",
		`{{ (.Result "c2").Details.n }}`:       "nil",
		`{{ .Nonsense }}`:                      "Nonsense",
		`{{ first 1 7 }}`:                      "neither a list nor a text",
		`{{ at 0 "text" }}`:                    "not a list",
		`{{ join "," 7 }}`:                     "not a list",
		`{{ filter "a" "text" }}`:              "not a list",
		`{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`: "depth",
	} {
		_, err := printed(t, tmpl, history...)
		require.ErrorIs(t, err, enginetest.ErrBadScript, tmpl)
		require.ErrorContains(t, err, want, tmpl)
		require.ErrorContains(t, err, "s.json: answer 1: text", tmpl)
	}
	_, err := printed(t, `{{ .Result "c1" }}`, inference.User("go"))
	require.ErrorContains(t, err, "known calls: none")
}

func TestScriptFileArguments(t *testing.T) {
	s, err := enginetest.ParseScript("s.json", []byte(`{"answers":[{"tool_calls":[
		{"id":"x","tool":"a","args":{"p":"{{ .Input }}","list":["{{ .Step }}",1,true,null,{"q":"{{ upper .Input }}"}],"n":1234567890123456789,"plain":"<b>"}},
		{"tool":"b","when":"{{ eq .Input \"skip\" | not }}"},
		{"tool":"c","args":["{{ json .Input }}"]},
		{"tool":"d","args":null}
	],"usage":{"input_tokens":5,"output_tokens":2},"stop":"max_tokens"}]}`))
	require.NoError(t, err)
	got, err := s.Generate(t.Context(), request(inference.User(`say "hi"`)))
	require.NoError(t, err)
	require.Equal(t, []inference.ToolCall{
		{ID: "x", Name: "a", Args: `{"list":["1",1,true,null,{"q":"SAY \"HI\""}],"n":1234567890123456789,"p":"say \"hi\"","plain":"<b>"}`},
		{ID: "call-1-2", Name: "b"},
		{ID: "call-1-3", Name: "c", Args: `["\"say \\\"hi\\\"\""]`},
		{ID: "call-1-4", Name: "d"},
	}, got.Message.ToolCalls)
	require.Equal(t, inference.Usage{InputTokens: 5, OutputTokens: 2}, got.Usage)
	require.Equal(t, inference.StopMaxTokens, got.Stop)

	got, err = s.Generate(t.Context(), request(inference.User("skip")))
	require.NoError(t, err)
	require.Len(t, got.Message.ToolCalls, 3)
	require.Equal(t, "call-1-3", got.Message.ToolCalls[1].ID)
}

func TestScriptFileError(t *testing.T) {
	s, err := enginetest.ParseScript("s.json", []byte(`{"answers":[{"text":"half","error":"no {{ .Input }}"}]}`))
	require.NoError(t, err)
	got, err := s.Generate(t.Context(), request(inference.User("luck")))
	require.EqualError(t, err, "no luck")
	require.Equal(t, "half", got.Message.Text)
}

// A condition is judged by what stands before its answer, however often and
// however late the script is asked.
func TestScriptFileConditions(t *testing.T) {
	s, err := enginetest.ParseScript("s.json", []byte(`{"answers":[
		{"tool_calls":[{"id":"c1","tool":"list"}]},
		{"when":"{{ (.Result \"c1\").IsError }}","text":"it failed"},
		{"when":"{{ contains \"README\" (.Result \"c1\").Content }}","tool_calls":[{"id":"c2","tool":"read"}]},
		{"when":" {{ .Has \"c2\" }}\n","text":"read"},
		{"when":"{{ not (.Has \"c2\") }}","text":"nothing to read"},
		{"text":"end"}
	]}`))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		list inference.Message
		want []string
	}{
		"readme":  {result("c1", "README.md", "", false), []string{"list", "read", "read", "end"}},
		"nothing": {result("c1", "x", "", false), []string{"list", "nothing to read", "end"}},
		"failed":  {result("c1", "x", "", true), []string{"list", "it failed", "nothing to read", "end"}},
	} {
		t.Run(name, func(t *testing.T) {
			history := []inference.Message{inference.User("go")}
			var ends []int
			for _, want := range c.want {
				got, err := s.Generate(t.Context(), request(history...))
				require.NoError(t, err)
				said := got.Message.Text
				history = append(history, got.Message)
				for _, call := range got.Message.ToolCalls {
					said = call.Name
					answer := c.list
					if call.ID == "c2" {
						answer = result("c2", "contents", "", false)
					}
					history = append(history, answer)
				}
				require.Equal(t, want, said)
				ends = append(ends, len(history))
			}
			_, err := s.Generate(t.Context(), request(history...))
			require.ErrorIs(t, err, enginetest.ErrScriptOver)
			require.ErrorContains(t, err, "s.json")
			// Asked again about an earlier part, it gives the same as then.
			for i, end := range ends[:len(ends)-1] {
				got, err := s.Generate(t.Context(), request(history[:end]...))
				require.NoError(t, err)
				require.Equal(t, history[end], got.Message, "answer %d", i+2)
			}
		})
	}
}

func TestScriptFileConditionMustBeTrueOrFalse(t *testing.T) {
	for _, when := range []string{"yes", "{{ .Step }}", "true false"} {
		for _, file := range []string{`{"answers":[{"when":%q}]}`, `{"answers":[{"tool_calls":[{"tool":"x","when":%q}]}]}`} {
			s, err := enginetest.ParseScript("s.json", fmt.Appendf(nil, file, when))
			require.NoError(t, err)
			_, err = s.Generate(t.Context(), request(inference.User("go")))
			require.ErrorIs(t, err, enginetest.ErrBadScript)
			require.ErrorContains(t, err, "when: it printed")
		}
	}
}

func TestScriptFileFaults(t *testing.T) {
	for file, want := range map[string]string{
		``:                                      "s.json:1:1: unexpected EOF",
		"{\n \"answers\": [}":                   "s.json:2:14: invalid character",
		`{"answers":"x"}`:                       "s.json:1:1",
		`{"answers":[]}`:                        "no answers",
		`{}`:                                    "no answers",
		`{"answers":[{}]} x`:                    "text after the end",
		`{"answer":[{}]}`:                       `unknown field "answer"`,
		`{"answers":[{},{"txt":"a"}]}`:          `answer 2: json: unknown field "txt"`,
		`{"answers":[{"text":7}]}`:              "answer 1: json: cannot unmarshal number",
		`{"answers":[{"text":"{{ .Input"}]}`:    "answer 1: text: template: text:1: unclosed action",
		`{"answers":[{"text":"a\n{{ foo }}"}]}`: `answer 1: text: template: text:2: function "foo" not defined`,
		`{"answers":[{"stop":"tired"}]}`:        `answer 1: stop: "tired" is not a stop reason`,
		`{"answers":[{"tool_calls":[{"id":"a"}]}]}`:                                  "answer 1: tool_calls[0].tool: the call names no tool",
		`{"answers":[{"tool_calls":[{"id":"a","tool":"x"},{"id":"a","tool":"x"}]}]}`: `answer 1: tool_calls[1].id: "a" is the id of an earlier call`,
		`{"answers":[{"tool_calls":[{"tool":"x","args":{"b":[1,"{{ end }}"]}}]}]}`:   "answer 1: tool_calls[0].args.b[1]: template",
		`{"answers":[{"tool_calls":[{"tool":"x","arguments":{}}]}]}`:                 `unknown field "arguments"`,
		`{"answers":[null]}`: "answer 1: it is null",
	} {
		_, err := enginetest.ParseScript("s.json", []byte(file))
		require.ErrorIs(t, err, enginetest.ErrBadScript, file)
		require.ErrorContains(t, err, want, file)
	}
	// All faults are told at once, in order.
	_, err := enginetest.ParseScript("s.json", []byte(`{"answers":[{"when":"{{","stop":"x"},{"text":"{{","tool_calls":[{"tool":"x","args":{"b":"{{","a":"{{"}}]}]}`))
	var fields []string
	for line := range strings.Lines(err.Error()) {
		fields = append(fields, strings.SplitN(line, ": ", 5)[3])
	}
	require.Equal(t, []string{"when", "stop", "text", "tool_calls[0].args.a", "tool_calls[0].args.b"}, fields)
	var first *enginetest.ScriptError
	require.ErrorAs(t, err, &first)
	require.Equal(t, 1, first.Answer)
}

// A script file drives a real run.
func TestScriptFileDrivesARun(t *testing.T) {
	config, _ := enginetest.Config(t)
	file, err := os.ReadFile("testdata/survey.json")
	require.NoError(t, err)
	script, err := enginetest.ParseScript("testdata/survey.json", file)
	require.NoError(t, err)
	config.Model, config.Stream = script, true
	in := engine.Prompt("What is here?")
	in.Tools = []engine.Tool{
		enginetest.StubTool("list_files", engine.Output{Content: "a.txt\nREADME.md\n", Details: `{"files":["a.txt","README.md"]}`}),
		enginetest.StubTool("read_file", engine.Text("# Title\ntext\n")),
	}
	res, err := enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, in)
	require.NoError(t, err)
	require.Equal(t, "What is here? 2 files; README.md begins with # Title.", res.Text)
	require.Equal(t, int64(220), res.Usage.InputTokens)
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(`{"answers":[{"text":"{{ .Input | first 3 }}","tool_calls":[{"tool":"x","args":{"a":["{{ .Step }}"]}}]}]}`))
	f.Add([]byte(`{"answers":[{"when":"{{ .Has \"c1\" }}","error":"{{ json .Results }}"},{"text":"{{ range (.Result \"c1\").Content | lines }}{{ . }}{{ end }}"}]}`))
	f.Add([]byte(`{"answers":[{"text":"{{ at 1 (.Result \"c1\").Details }}{{ sub 1 2 | first \"x\" }}"}]}`))
	f.Add([]byte(`{"answers":[null,{"args":{}}]}`))
	f.Add([]byte(`{"answers":`))
	history := request(inference.User("go"), result("c1", "a\nb", `[1,"x"]`, false))
	f.Fuzz(func(t *testing.T, file []byte) {
		if strings.Contains(string(file), "printf") {
			return // a width may make it print gigabytes; that is the script's author's affair
		}
		s, err := enginetest.ParseScript("f.json", file)
		if err != nil {
			require.ErrorIs(t, err, enginetest.ErrBadScript)
			return
		}
		a, errA := s.Generate(t.Context(), history.Clone())
		b, errB := s.Generate(t.Context(), history.Clone())
		require.Equal(t, a, b)
		require.Equal(t, fmt.Sprint(errA), fmt.Sprint(errB))
	})
}
