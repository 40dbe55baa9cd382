package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

type budgetConfig struct {
	Limit int    `json:"limit"`
	Unit  string `json:"unit"`
}

var errNoLimit = errors.New("the limit must be above 0")

func checkBudget(c budgetConfig) error {
	if c.Limit <= 0 {
		return errNoLimit
	}
	return nil
}

// wideColor reads itself from text.
type wideColor struct{ name string }

func (c *wideColor) UnmarshalText(text []byte) error {
	switch c.name = string(text); c.name {
	case "red", "green":
		return nil
	case "boom":
		panic("a color that panics")
	}
	return fmt.Errorf("%q is no color; use red or green", text)
}

func (c wideColor) MarshalText() ([]byte, error) { return []byte(c.name), nil }

type wideBase struct {
	Name string `json:"name"`
}

type wideConfig struct {
	wideBase
	Flag    bool                `json:"flag"`
	Small   int8                `json:"small"`
	Count   uint                `json:"count"`
	Rate    float32             `json:"rate"`
	Color   wideColor           `json:"color"`
	Items   []wideItem          `json:"items"`
	ByName  map[string]wideItem `json:"by_name"`
	Pair    [2]int              `json:"pair"`
	Pointer *wideItem           `json:"pointer"`
	Any     any                 `json:"any"`
	Data    []byte              `json:"data"`
	Quoted  int                 `json:"quoted,string"`
	Number  json.Number         `json:"number"`
	Opt     inference.Opt[int]  `json:"opt"`
	Raw     json.RawMessage     `json:"raw"`
	Hidden  string              `json:"-"`
	//lint:ignore U1000 it must not be found by name
	private string //nolint:unused // as above
}

type wideItem struct {
	ID  string `json:"id"`
	Max int    `json:"max"`
}

var wideSection = engine.NewConfigKey("wide", engine.ConfigOptions[wideConfig]{})

func sectionSpec(section, text string) engine.AgentSpec {
	return engine.AgentSpec{ID: "x", Sections: map[string]inference.JSON{section: inference.JSON(text)}}
}

// Capability A16.
func TestSectionFrom(t *testing.T) {
	c, err := wideSection.From(sectionSpec("wide", `{
		"name": "n", "flag": true, "small": -128, "count": 3, "rate": 0.5, "color": "red",
		"items": [{"id": "a"}], "by_name": {"k": {"max": 2}}, "pair": [1, 2], "pointer": {"id": "p"},
		"any": {"x": [1]}, "data": "aGk=", "quoted": "5", "number": 1e3, "opt": 4, "raw": {"q": 1}
	}`))
	require.NoError(t, err)
	require.Equal(t, wideConfig{
		wideBase: wideBase{"n"}, Flag: true, Small: -128, Count: 3, Rate: 0.5, Color: wideColor{"red"},
		Items: []wideItem{{ID: "a"}}, ByName: map[string]wideItem{"k": {Max: 2}}, Pair: [2]int{1, 2}, Pointer: &wideItem{ID: "p"},
		Any: map[string]any{"x": []any{1.0}}, Data: []byte("hi"), Quoted: 5, Number: "1e3", Opt: inference.Some(4), Raw: json.RawMessage(`{"q":1}`),
	}, withCompactRaw(c))

	c, err = wideSection.From(sectionSpec("wide", `{"items": null, "by_name": null, "pointer": null, "any": null, "opt": null}`))
	require.NoError(t, err)
	require.Equal(t, wideColor{}, c.Color)
}

func withCompactRaw(c wideConfig) wideConfig {
	c.Raw = json.RawMessage(inference.JSON(c.Raw).Compact())
	return c
}

// Fault B16.
func TestSectionErrors(t *testing.T) {
	e := specEngine(t, engine.Config{Plugins: []engine.Plugin{
		engine.NewPlugin("wide", func(r *engine.Registrar) error { r.Section(wideSection); return nil }),
	}})
	spec, err := engine.ParseSpec("a.json", []byte(`{"id": "x", "sections": {"wide": {
  "nmae": "n",
  "Flag": true,
  "Hidden": 1, "private": 2,
  "small": 128,
  "count": -1,
  "rate": 1e99,
  "color": "blue",
  "items": [{"id": "a"}, {"id": "b", "mxa": 1}, {"id": 5}],
  "by_name": {"k": {"max": 1.5}},
  "pair": [1, 2, 3],
  "pointer": {"di": "p"},
  "data": "???",
  "number": true,
  "opt": "x",
  "name": null
}}}`))
	require.NoError(t, err, "what a section holds is known to the engine only")
	err = e.Check(spec)
	require.EqualError(t, err, `engine: a.json:2:3: sections.wide.nmae: no field "nmae"; did you mean "name"?
engine: a.json:3:3: sections.wide.Flag: no field "Flag"; did you mean "flag"?
engine: a.json:4:3: sections.wide.Hidden: no field "Hidden"; known: flag, small, count, rate, color, items, by_name, pair, pointer, any and 6 more
engine: a.json:4:16: sections.wide.private: no field "private"; known: flag, small, count, rate, color, items, by_name, pair, pointer, any and 6 more
engine: a.json:5:12: sections.wide.small: want a whole number of 8 bits, got 128
engine: a.json:6:12: sections.wide.count: want a whole number of 0 or more and 64 bits, got -1
engine: a.json:7:11: sections.wide.rate: want a number in the range of float32, got 1e99
engine: a.json:8:12: sections.wide.color: "blue" is no color; use red or green
engine: a.json:9:38: sections.wide.items[1].mxa: no field "mxa"; did you mean "max"?
engine: a.json:9:56: sections.wide.items[2].id: want a string, got a number
engine: a.json:10:28: sections.wide.by_name.k.max: want a whole number of 64 bits, got 1.5
engine: a.json:11:11: sections.wide.pair: want 2 items, got 3
engine: a.json:12:15: sections.wide.pointer.di: no field "di"; known: id, max
engine: a.json:13:11: sections.wide.data: illegal base64 data at input byte 0
engine: a.json:14:13: sections.wide.number: want a string, got true or false
engine: a.json:15:10: sections.wide.opt: want a whole number of 64 bits, got a string
engine: a.json:16:11: sections.wide.name: want a string, got null`)
	specErrors(t, err)
}

func TestSectionMadeInGo(t *testing.T) {
	for text, want := range map[string]string{
		`{"limit": 1,`:             `sections.budget: not JSON: unexpected end of JSON input`,
		`[]`:                       `sections.budget: want an object, got a list`,
		`{"limit": 1, "limit": 2}`: `sections.budget: field "limit" appears twice, first at 1:2; keep one`,
		`{"limit": 1, "unti": ""}`: `sections.budget.unti: no field "unti"; did you mean "unit"?`,
		`{"limit": 0}`:             `sections.budget: the limit must be above 0`,
	} {
		_, err := budgetSection.From(sectionSpec("budget", text))
		require.EqualError(t, err, `engine: agent "x": `+want)
	}
}

func TestSectionDefault(t *testing.T) {
	e := specEngine(t, engine.Config{})
	get := func(s engine.AgentSpec) budgetConfig {
		sections, err := engine.DecodeSections(e, s)
		require.NoError(t, err)
		return budgetSection.Get(sectionContext(sections))
	}
	require.Equal(t, budgetConfig{10, "tokens"}, get(engine.AgentSpec{ID: "x"}))
	require.Equal(t, budgetConfig{10, "tokens"}, get(sectionSpec("budget", "")), "null is no section")
	require.Equal(t, budgetConfig{5, "tokens"}, get(sectionSpec("budget", `{"limit": 5}`)), "what is left out keeps its default")
	require.Equal(t, budgetConfig{10, "tokens"}, budgetSection.Get(nil))
	require.Equal(t, budgetConfig{10, "tokens"}, budgetSection.Get(phase.NewContext(phase.Frame{})))
	require.Equal(t, budgetConfig{}, engine.ConfigKey[budgetConfig]{}.Get(nil))
	require.Equal(t, "", engine.ConfigKey[budgetConfig]{}.Name())
}

func sectionContext(sections map[string]any) *phase.Context {
	return phase.NewContext(phase.Frame{Agent: phase.NewAgentInfo("x", "", "", sections)})
}

// A section whose default is refused is required, but only of agents that have
// its plugin active.
func TestSectionRequired(t *testing.T) {
	required := engine.NewConfigKey("http", engine.ConfigOptions[budgetConfig]{Check: checkBudget})
	e := specEngine(t, engine.Config{Plugins: []engine.Plugin{
		engine.NewPlugin("http", func(r *engine.Registrar) error { r.Section(required); return nil }),
	}})
	err := e.Check(engine.AgentSpec{ID: "x"})
	require.EqualError(t, err, `engine: agent "x": sections.http: the limit must be above 0`)
	require.ErrorIs(t, err, errNoLimit)
	require.NoError(t, e.Check(sectionSpec("http", `{"limit": 1}`)))
	require.NoError(t, e.Check(engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"audit"}}))
	require.NoError(t, e.Check(engine.AgentSpec{ID: "x", PluginIDs: []string{"audit"}}))
	broken := sectionSpec("http", `{"limit": 0}`)
	broken.ActiveHookFilter = []string{"audit"}
	require.ErrorIs(t, e.Check(broken), errNoLimit, "a section that is there is checked in any case")
}

// Settings that hold references are decoded for each reader, and neither the
// default nor the spec can be reached through them.
//
// Capability A16.
func TestSectionsShareNothing(t *testing.T) {
	shared := auditConfig{Level: "low", Tags: make([]string, 1, 8)}
	shared.Tags[0] = "default"
	key := engine.NewConfigKey("notes", engine.ConfigOptions[auditConfig]{Default: func() auditConfig { return shared }})
	e := specEngine(t, engine.Config{Plugins: []engine.Plugin{
		engine.NewPlugin("notes", func(r *engine.Registrar) error { r.Section(key); return nil }),
	}})
	for text, want := range map[string][]string{`{}`: {"default"}, `{"tags": ["a", "b"]}`: {"a", "b"}} {
		sections, err := engine.DecodeSections(e, sectionSpec("notes", text))
		require.NoError(t, err)
		pc := sectionContext(sections)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					c := key.Get(pc)
					c.Tags[0] = "changed"
				}
			})
		}
		wg.Wait()
		require.Equal(t, want, key.Get(pc).Tags)
		require.Equal(t, []string{"default"}, shared.Tags)
	}
}

func TestSectionCodeThatMisbehaves(t *testing.T) {
	cause := errors.New("cause")
	goexit := func(auditConfig) error { runtime.Goexit(); return nil }
	for name, c := range map[string]struct {
		options engine.ConfigOptions[auditConfig]
		want    string
	}{
		"default panics": {engine.ConfigOptions[auditConfig]{Default: func() auditConfig { panic(cause) }}, "sections.bad: the default: engine: plugin bad panicked: cause"},
		"check panics":   {engine.ConfigOptions[auditConfig]{Check: func(auditConfig) error { panic(cause) }}, "sections.bad: engine: plugin bad panicked: cause"},
		"check fails":    {engine.ConfigOptions[auditConfig]{Check: func(auditConfig) error { return cause }}, "sections.bad: cause"},
		"check exits":    {engine.ConfigOptions[auditConfig]{Check: goexit}, "sections.bad: engine: user code ended its goroutine with runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			key := engine.NewConfigKey("bad", c.options)
			e := specEngine(t, engine.Config{Plugins: []engine.Plugin{
				engine.NewPlugin("bad", func(r *engine.Registrar) error { r.Section(key); return nil }),
			}})
			err := e.Check(sectionSpec("bad", `{}`))
			require.EqualError(t, err, `engine: agent "x": `+c.want)
			if !strings.Contains(name, "exits") {
				require.ErrorIs(t, err, cause)
			}
		})
	}
	_, err := wideSection.From(sectionSpec("wide", `{"color": "boom", "flag": 1}`))
	require.EqualError(t, err, `engine: agent "x": sections.wide.color: engine: plugin wide panicked: a color that panics
engine: agent "x": sections.wide.flag: want true or false, got a number`)
}

// FuzzSection holds the shape check to the decoder: it passes nothing that
// encoding/json would refuse, and what it passes is what is decoded.
func FuzzSection(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `{"limit":1}`, `{"items":[{"id":"a"}],"pair":[1,2]}`, `{"quoted":"x"}`, `{"any":[]}`, `{"name":"n","name":"m"}`, `[`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := wideSection.From(sectionSpec("wide", text))
		if err != nil {
			specErrors(t, err)
			return
		}
		var want wideConfig
		require.NoError(t, inference.JSON(text).Decode(&want))
		require.Equal(t, withCompactRaw(want), withCompactRaw(got))
	})
}
