package specfile_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/specfile"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// Capability A16. A spec in YAML is the same as one in JSON.
func TestYAMLEqualsJSON(t *testing.T) {
	const yaml = `
# A comment.
id: "gärtner"
description: |
  two
  lines
system_prompt: >
  one
  line
max_rounds: 0x10
params: {temperature: 0.5, max_tokens: 1_000}
stop_conditions:
  - type: timeout
    seconds: 1.5
  - {type: token_budget, tokens: 100}
active_hook_filter: &names [a, 'b']
plugin_ids: *names
sections:
  s: {text: yes, nothing: ~, flag: true, list: [1, -2.5e3, null], "quoted key": 2024-01-01}
`
	const text = `{"id":"gärtner","description":"two\nlines\n","system_prompt":"one line\n","max_rounds":16,
"params":{"temperature":0.5,"max_tokens":1000},
"stop_conditions":[{"type":"timeout","seconds":1.5},{"type":"token_budget","tokens":100}],
"active_hook_filter":["a","b"],"plugin_ids":["a","b"],
"sections":{"s":{"text":"yes","nothing":null,"flag":true,"list":[1,-2500,null],"quoted key":"2024-01-01"}}}`
	got, err := specfile.ParseYAML("a.yaml", []byte(yaml))
	require.NoError(t, err)
	want, err := engine.ParseSpecs("a.json", []byte(text))
	require.NoError(t, err)
	require.Len(t, got, 1)
	a, err := json.Marshal(got[0])
	require.NoError(t, err)
	b, err := json.Marshal(want[0])
	require.NoError(t, err)
	require.JSONEq(t, string(b), string(a))
}

// Capability A16. Faults have file, line and column, and the nearest known name.
func TestFaults(t *testing.T) {
	for text, want := range map[string][]string{
		"id: x\nmax_rouns: 3\n":                       {`engine: f.yaml:2:1: max_rouns: no field "max_rouns"; did you mean "max_rounds"?`},
		"id: x\nmax_rounds: many\n":                   {`engine: f.yaml:2:13: max_rounds: want a number, got a string`},
		"id: x\nmax_rounds: -3\n":                     {`engine: f.yaml:2:13: max_rounds: want 0`},
		"id: x\nplugin_ids:\n  - a\n  - 7\n":          {`engine: f.yaml:4:5: plugin_ids[1]: want a string, got a number`},
		"id: x\nsections: {a: {b: {c: .inf}}}\n":      {`engine: f.yaml:2:23: .inf is no number`},
		"id: x\nid: y\n":                              {`engine: f.yaml:2:1: `},
		"id: [\n":                                     {`engine: f.yaml:1:5: not YAML: `},
		"":                                            {`engine: f.yaml:1:1: the file is empty`},
		"id: x\n---\n---\nid: y\n":                    {`engine: f.yaml:2:1: the document that begins here is empty`},
		"---\n# nothing\n":                            {`engine: f.yaml:1:1: the document that begins here is empty`},
		"id: x\nmax_rounds: 1e999\n":                  {`engine: f.yaml:2:13: `},
		"id: x\nmax_rounds: .nan\n":                   {`engine: f.yaml:2:13: .nan is no number`},
		"# only a comment\n":                          {`engine: f.yaml:1:1: the file is empty`},
		"just text":                                   {`engine: f.yaml:1:1: want an object, got a string`},
		"id: *nope\n":                                 {`engine: f.yaml:1:5: no anchor &nope`},
		"id: x\n<<: {max_rounds: 3}\n":                {`engine: f.yaml:2:1: merge keys are not used`},
		"id: x\n1: y\n":                               {`engine: f.yaml:2:1: the name of a field is a text`},
		"id: !!binary eA==\n":                         {`the tag !!binary is not used`},
		"id: x\n---\nid: x\n":                         {`a second agent with the id "x"; the first is at f.yaml:1:5`},
		"description: x\nmax_rouns: 1\nplugin_id: []": {`f.yaml:1:1: id: an agent needs an id`, `f.yaml:2:1: max_rouns`, `f.yaml:3:1: plugin_id: `},
	} {
		specs, err := specfile.ParseYAML("f.yaml", []byte(text))
		require.ErrorIs(t, err, engine.ErrSpec, text)
		require.Empty(t, specs, "nothing is loaded of a faulty file")
		for _, w := range want {
			require.ErrorContains(t, err, w, text)
		}
	}
}

func TestDocuments(t *testing.T) {
	specs, err := specfile.ParseYAML("f.yaml", []byte("---\nid: a\n---\n# a comment\nid: b\n"))
	require.NoError(t, err)
	require.Len(t, specs, 2)
	specs, err = specfile.ParseYAML("f.yaml", []byte("- id: a\n- id: b\n- id: c\n"))
	require.NoError(t, err)
	require.Len(t, specs, 3)
}

// A small text that stands for a huge tree is refused, not built.
func TestExpandingAliases(t *testing.T) {
	var b strings.Builder
	b.WriteString("id: x\nsections:\n  s0: &a0 [1,2,3,4,5,6,7,8,9,10]\n")
	for i := 1; i < 9; i++ {
		d := string(rune('0' + i))
		p := string(rune('0' + i - 1))
		b.WriteString("  s" + d + ": &a" + d + " [" + strings.Repeat("*a"+p+", ", 9) + "*a" + p + "]\n")
	}
	_, err := specfile.ParseYAML("f.yaml", []byte(b.String()))
	require.ErrorContains(t, err, "more than 100000 values")

	_, err = specfile.ParseYAML("f.yaml", []byte("id: x\nsections: {s: "+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+"}\n"))
	require.ErrorIs(t, err, engine.ErrSpec)
}

func TestRead(t *testing.T) {
	fsys := fstest.MapFS{
		"a.yaml": {Data: []byte("id: x\nmodel_id: gpt\n")},
		"a.json": {Data: []byte("{\"id\": \"x\",\n \"model_id\": \"gpt\"}")},
		"e.json": {Data: []byte("[]")},
	}
	for name, at := range map[string]string{"a.yaml": "2:11", "a.json": "2:14"} {
		f, err := specfile.Read(fsys, name, "dir/"+name)
		require.NoError(t, err)
		cause := errors.New("cause")
		fault := f.Fault(0, "model_id", "no model: %w", cause)
		require.EqualError(t, fault, "engine: dir/"+name+":"+at+": model_id: no model: cause")
		require.ErrorIs(t, fault, cause)
		require.ErrorIs(t, fault, engine.ErrSpec)
	}
	_, err := specfile.Read(fsys, "e.json", "e.json")
	require.ErrorContains(t, err, "the list of specs is empty")
	_, err = specfile.Read(fsys, "nope.yaml", "dir/nope.yaml")
	require.EqualError(t, err, "fixpoint: cannot read the spec dir/nope.yaml: file does not exist")
}

// FuzzParseYAML reads anything without harm, and what it reads it reads again
// from the canonical JSON, which is YAML as well.
func FuzzParseYAML(f *testing.F) {
	for _, seed := range []string{
		"id: x\n", "- id: a\n- id: b\n", "id: &a x\ndescription: *a\n", "a: [", "? a\n: b\n", "id: |\n  x\n", "{id: x, sections: {s: [1, 2.5, ~]}}",
		"id: x\n---\nid: y\n", "%YAML 1.2\n---\nid: x\n", "\ufeffid: x\n", "id: \"\\u00e4\"\n", "*a", "!!str x", "id: x\r\nmax_rounds: 1\r\n", "&a [*a]", "<<: *b",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		specs, err := specfile.ParseYAML("f.yaml", data)
		if err != nil {
			require.ErrorIs(t, err, engine.ErrSpec)
			return
		}
		for _, s := range specs {
			text, err := inference.ToJSON(s)
			require.NoError(t, err)
			again, err := specfile.ParseYAML("f.yaml", []byte(text))
			require.NoError(t, err, "%s", text)
			require.Len(t, again, 1)
			back, err := inference.ToJSON(again[0])
			require.NoError(t, err)
			require.Equal(t, text, back)
		}
	})
}
