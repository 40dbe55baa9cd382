package jsonpos_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

type settings struct {
	Name  string         `json:"name"`
	Tags  []string       `json:"tags"`
	Pair  [2]int8        `json:"pair"`
	Inner map[string]int `json:"inner"`
	Opt   *uint          `json:"opt"`
	Text  int            `json:"text,string"`
	Level level          `json:"level"`
	base
}

type base struct {
	Limit float64 `json:"limit"`
	Name  string  `json:"name"` // hidden by the outer one
}

type level int

func (l *level) UnmarshalText(text []byte) error {
	if string(text) != "high" {
		return errors.New("want high")
	}
	*l = 1
	return nil
}

// said returns the faults as lines.
func said(c *jsonpos.Check) []string {
	var lines []string
	for _, f := range c.Faults() {
		line := jsonpos.At("", f.Line, f.Column) + " " + f.Path + ": " + f.Msg
		if f.Nearest != "" {
			line += " (" + f.Nearest + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

func fit(text string, r jsonpos.Rules) (*jsonpos.Check, bool) {
	c := &jsonpos.Check{Nearest: func(name string, known []string) string {
		for _, k := range known {
			if strings.EqualFold(k, name) {
				return k
			}
		}
		return ""
	}}
	return c, c.Tree(jsonpos.Parse([]byte(text))) && c.Fit(reflect.TypeFor[settings](), c.Root, nil, r)
}

func TestPlaces(t *testing.T) {
	n := jsonpos.Parse([]byte("\xef\xbb\xbf{\r\n\t\"ä\": [true, null,\n  -1.50e2, \"x\\ny\"], \"o\": {}}"))
	require.Equal(t, &jsonpos.Node{Kind: jsonpos.Object, Line: 1, Column: 1, Members: []jsonpos.Member{
		{Name: "ä", Line: 2, Column: 2, Value: &jsonpos.Node{Kind: jsonpos.List, Line: 2, Column: 7, Items: []*jsonpos.Node{
			{Kind: jsonpos.Bool, Text: "true", Line: 2, Column: 8},
			{Kind: jsonpos.Null, Line: 2, Column: 14},
			{Kind: jsonpos.Number, Text: "-1.50e2", Line: 3, Column: 3},
			{Kind: jsonpos.String, Text: "x\ny", Line: 3, Column: 12},
		}}},
		{Name: "o", Line: 3, Column: 21, Value: &jsonpos.Node{Kind: jsonpos.Object, Line: 3, Column: 26}},
	}}, n)
	require.Equal(t, `{"o":{},"ä":[true,null,-1.50e2,"x\ny"]}`, n.JSON())
}

// Fault B16.
func TestTree(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, want := range map[string][]string{
		`[1]`:                             nil,
		deep(jsonpos.MaxDepth):            nil,
		"":                                {"1:1 : not JSON: unexpected end of JSON input"},
		"[\n1,]":                          {"2:3 : not JSON: invalid character ']' looking for beginning of value"},
		"\"\xff\"":                        {"1:2 : the text is not UTF-8; save it as UTF-8"},
		deep(jsonpos.MaxDepth + 1):        {"1:101 : nested deeper than 100 levels"},
		`{"a":1,"a":2,"b":{"a":1,"a":2}}`: {`1:8 a: field "a" appears twice, first at 1:2; keep one`, `1:25 b.a: field "a" appears twice, first at 1:19; keep one`},
		"[" + strings.Repeat("0,", jsonpos.MaxNodes) + "0]": {"1:200000 : more than 100000 values"},
	} {
		var c jsonpos.Check
		ok := c.Tree(jsonpos.Parse([]byte(text)))
		require.Equal(t, want, said(&c), "%.40s", text)
		require.Equal(t, ok, c.Root != nil)
		require.Equal(t, ok, want == nil || strings.Contains(want[0], "twice"), "%.40s", text)
	}
}

// A program may build any tree.
func TestTreeOfAProgram(t *testing.T) {
	cyclic := &jsonpos.Node{Kind: jsonpos.List}
	cyclic.Items = []*jsonpos.Node{cyclic, cyclic}
	for want, n := range map[string]*jsonpos.Node{
		" : no value":                               nil,
		" : a node of unknown kind 0":               {},
		" : a node of unknown kind 9":               {Kind: 9},
		` : "yes" is neither true nor false`:        {Kind: jsonpos.Bool, Text: "yes"},
		` : "01" is not a number as JSON writes it`: {Kind: jsonpos.Number, Text: "01"},
		" : nested deeper than 100 levels":          cyclic,
	} {
		var c jsonpos.Check
		require.False(t, c.Tree(n))
		require.Equal(t, []string{want}, said(&c))
	}

	given := &jsonpos.Node{Kind: jsonpos.String, Text: "a\xffb"}
	var c jsonpos.Check
	require.True(t, c.Tree(given))
	given.Text = "changed later"
	require.Equal(t, "a\uFFFDb", c.Root.Text)
}

// Fault B16.
func TestFit(t *testing.T) {
	c, ok := fit(`{"name":"x","tags":["a"],"pair":[1,2],"inner":{"a":1},"opt":1,"text":"5","level":"high","limit":0.5}`, jsonpos.Rules{})
	require.True(t, ok, said(c))

	c, ok = fit(`{"name":1,"tags":["a",true],"pair":[1],"inner":{"a b":1.5},"opt":-1,"NAME":0,"what":0,"level":"low","limit":1e999}`, jsonpos.Rules{})
	require.False(t, ok)
	require.Equal(t, []string{
		"1:9 name: want a string, got a number",
		"1:23 tags[1]: want a string, got true or false",
		"1:36 pair: want 2 items, got 1",
		`1:55 inner["a b"]: want a whole number of 64 bits, got 1.5`,
		"1:66 opt: want a whole number of 0 or more and 64 bits, got -1",
		`1:69 NAME: no field "NAME" (name)`,
		`1:78 what: no field "what"; known: name, tags, pair, inner, opt, text, level, limit`,
		"1:95 level: want high",
		"1:109 limit: want a number in the range of float64, got 1e999",
	}, said(c))
	require.EqualError(t, c.Faults()[7].Err, "want high")

	c, ok = fit(`{"pair":[1,300]}`, jsonpos.Rules{})
	require.False(t, ok)
	require.Equal(t, []string{"1:12 pair[1]: want a whole number of 8 bits, got 300"}, said(c))
}

func TestRules(t *testing.T) {
	const text = `{"tags":null,"inner":null,"opt":null,"name":null}`
	c, ok := fit(text, jsonpos.Rules{})
	require.False(t, ok)
	require.Len(t, c.Faults(), 4)

	c, ok = fit(text, jsonpos.Rules{Null: true})
	require.False(t, ok)
	require.Equal(t, []string{"1:45 name: want a string, got null"}, said(c))

	calls := 0
	c, ok = fit(`{"level":"high","limit":1}`, jsonpos.Rules{Call: func(decode func() error) error {
		calls++
		return errors.Join(decode(), errors.New("refused"))
	}})
	require.False(t, ok)
	require.Equal(t, 2, calls)
	require.Equal(t, []string{"1:10 level: refused", "1:25 limit: refused"}, said(c))
}

func TestFirstFaultOfAValueCounts(t *testing.T) {
	var c jsonpos.Check
	at := jsonpos.Path{"a", 2, "b c"}
	c.Value(at, "first %d", 1).Err = errors.ErrUnsupported
	c.Value(at, "second").Nearest = "dropped"
	c.OneOf(nil, "word", "x")
	c.OneOf(jsonpos.Path{"fine"}, "word", "x", "y", "x")
	require.Equal(t, []*jsonpos.Fault{
		{Path: `a[2]["b c"]`, Msg: "first 1", Err: errors.ErrUnsupported},
		{Msg: `no word "x"; none is known`},
	}, c.Faults())
}

func TestListed(t *testing.T) {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprint(i))
	}
	require.Equal(t, "0, 1", jsonpos.Listed(names[:2]))
	require.Equal(t, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more", jsonpos.Listed(names))
}

func TestPath(t *testing.T) {
	p := jsonpos.Path{"a"}
	require.Equal(t, "a.b[0]", p.To("b", 0).String())
	require.Equal(t, "a", p.String())
	n := jsonpos.Parse([]byte("{\"a\":\n [5]}"))
	m, ok := n.Find(p.To(0))
	require.True(t, ok)
	require.Equal(t, "5", m.Value.Text)
	m, ok = n.Find(p.To(1, "x"))
	require.False(t, ok)
	require.Equal(t, 2, m.Line, "what it is missing from")
}

func TestDecode(t *testing.T) {
	strict := (*json.Decoder).DisallowUnknownFields
	for text, want := range map[string]string{
		`{"limit":1}`:         "",
		``:                    "0: unexpected EOF",
		`{"limit":`:           "9: unexpected EOF",
		`{"limit":x}`:         "10: invalid character 'x' looking for beginning of value",
		`{"limit":"1"}`:       "12: json: cannot unmarshal string into Go struct field base.limit of type float64",
		`{"limit":1,"l":2}  `: `17: json: unknown field "l"`,
		`{"limit":1} 2`:       "13: text after the value; send exactly one JSON value",
	} {
		var v base
		offset, err := jsonpos.Decode(text, &v, strict)
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, 1.0, v.Limit)
			continue
		}
		require.EqualError(t, fmt.Errorf("%d: %w", offset, err), want, text)
	}
}

// What is valid JSON and within the bounds becomes a tree of the same value;
// everything else is a fault, and nothing panics.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "[]", `{"a":[1,{"b":"\u00e9"}]}`, `{"a":1,"a":2}`, "\xef\xbb\xbf1", "{", "[\xff]", "-0", `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c jsonpos.Check
		ok := c.Tree(jsonpos.Parse(text))
		require.True(t, ok || len(c.Faults()) > 0)
		for _, x := range c.Faults() {
			require.Positive(t, x.Line)
			require.Positive(t, x.Column)
			require.NotEmpty(t, x.Msg)
		}
		if len(c.Faults()) > 0 {
			return
		}
		require.Equal(t, plain(t, strings.TrimPrefix(string(text), "\xef\xbb\xbf")), plain(t, c.Root.JSON()))
	})
}

// plain decodes a text with its numbers as written.
func plain(t *testing.T, text string) (v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&v))
	return v
}
