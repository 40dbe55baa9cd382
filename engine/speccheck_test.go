package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

type auditConfig struct {
	Level string   `json:"level"`
	Tags  []string `json:"tags"`
}

var (
	auditSection  = engine.NewConfigKey("audit", engine.ConfigOptions[auditConfig]{})
	budgetSection = engine.NewConfigKey("budget", engine.ConfigOptions[budgetConfig]{
		Default: func() budgetConfig { return budgetConfig{Limit: 10, Unit: "tokens"} },
		Check:   checkBudget,
	})
)

func emptyTool(name string) engine.Tool {
	return engine.NewTool(inference.ToolSpec{Name: name}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
		return engine.Text(""), nil
	})
}

func specEngine(t *testing.T, c engine.Config) *engine.Engine {
	t.Helper()
	c.Plugins = append([]engine.Plugin{
		engine.NewPlugin("audit", func(r *engine.Registrar) error { r.Section(auditSection); return nil }),
		engine.NewPlugin("budget", func(r *engine.Registrar) error { r.Section(budgetSection); return nil }),
		engine.NewPlugin("web", func(r *engine.Registrar) error { r.Tool(emptyTool("search"), emptyTool("fetch")); return nil }),
	}, c.Plugins...)
	if c.Model == nil && c.Models == nil {
		c.Model = inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
			return inference.Response{}, nil
		})
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	return e
}

// Every name in a spec is held against what the engine has.
//
// Capability A16. Faults B16, F33.
func TestCheckNames(t *testing.T) {
	e := specEngine(t, engine.Config{Agents: []engine.AgentSpec{{ID: "billing"}}})
	_, err := engine.ParseSpec("agent.json", []byte(`{
  "id": "support",
  "plugin_ids": ["audit", "wbe"],
  "active_hook_filter": ["audti"],
  "allowed_tools": ["search", "fetch", "delegate_to_billing", "sarch"],
  "excluded_tools": ["shell"],
  "delegates": ["billing", "biling"],
  "stop_conditions": [{"type": "stop_on_tool", "tool": "ftech"}],
  "sections": {"adit": {}, "audit": {"levle": "x"}, "budget": {}}
}`))
	require.Error(t, err, "a filter name that plugin_ids does not have needs no engine to be wrong")

	spec, err := engine.ParseSpec("agent.json", []byte(`{
  "id": "support",
  "plugin_ids": ["audit", "wbe"],
  "active_hook_filter": ["audit"],
  "allowed_tools": ["search", "fetch", "`+engine.DelegatePrefix+`billing", "sarch"],
  "excluded_tools": ["shell"],
  "delegates": ["billing", "biling"],
  "stop_conditions": [{"type": "stop_on_tool", "tool": "ftech"}],
  "sections": {"adit": {}, "audit": {"levle": "x"}, "budget": {}}
}`))
	require.NoError(t, err)
	err = e.Check(spec)
	require.EqualError(t, err, `engine: agent.json:3:27: plugin_ids[1]: no plugin "wbe"; did you mean "web"?
engine: agent.json:5:63: allowed_tools[3]: no tool "sarch"; did you mean "search"?
engine: agent.json:6:22: excluded_tools[0]: no tool "shell"; known: search, fetch, delegate_to_billing, delegate_to_biling
engine: agent.json:7:28: delegates[1]: no agent "biling"; did you mean "billing"?
engine: agent.json:8:56: stop_conditions[0].tool: no tool "ftech"; did you mean "fetch"?
engine: agent.json:9:16: sections.adit: no section "adit"; did you mean "audit"?
engine: agent.json:9:38: sections.audit.levle: no field "levle"; did you mean "level"?
engine: agent.json:9:53: sections.budget: the section belongs to plugin "budget", which plugin_ids does not list`)
	specErrors(t, err)
}

// An empty filter means all; a filter whose names are all unknown is an error.
//
// Fault B16.
func TestCheckFilter(t *testing.T) {
	e := specEngine(t, engine.Config{})
	for _, filter := range [][]string{nil, {}, {"audit"}, {"web", "audit"}} {
		require.NoError(t, e.Check(engine.AgentSpec{ID: "x", ActiveHookFilter: filter}))
	}
	require.EqualError(t, e.Check(engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"audti"}}),
		`engine: agent "x": active_hook_filter[0]: no plugin "audti"; did you mean "audit"?`)
	require.EqualError(t, e.Check(engine.AgentSpec{ID: "x", PluginIDs: []string{"web"}, ActiveHookFilter: []string{"audit"}}),
		`engine: agent "x": active_hook_filter[0]: no plugin in plugin_ids named "audit"; known: web`)
}

func TestCheckModel(t *testing.T) {
	m := inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) { return inference.Response{}, nil })
	named := specEngine(t, engine.Config{Models: map[string]inference.Model{"large": m, "small": m}})
	require.NoError(t, named.Check(engine.AgentSpec{ID: "x", ModelID: "small"}))
	require.EqualError(t, named.Check(engine.AgentSpec{ID: "x", ModelID: "smal"}),
		`engine: agent "x": model_id: no model "smal"; did you mean "small"?`)
	require.EqualError(t, named.Check(engine.AgentSpec{ID: "x"}), `engine: agent "x": model_id: name a model; known: large, small`)

	require.NoError(t, specEngine(t, engine.Config{}).Check(engine.AgentSpec{ID: "x", ModelID: "anything"}))
}

func TestCheckRulesToo(t *testing.T) {
	e := specEngine(t, engine.Config{})
	require.EqualError(t, e.Check(engine.AgentSpec{MaxRounds: -1}),
		"engine: agent spec: id: an agent needs an id\nengine: agent spec: max_rounds: want 0 (for 25) or more, got -1")
	_, err := engine.New(engine.Config{Agents: []engine.AgentSpec{{ID: "x", ActiveHookFilter: []string{"nobody"}}}})
	require.ErrorIs(t, err, engine.ErrSpec)
}

// Fault B39.
func TestCheckChangesNothing(t *testing.T) {
	e := specEngine(t, engine.Config{Agents: []engine.AgentSpec{{ID: "billing"}}})
	spec := engine.AgentSpec{
		ID: "x", AllowedTools: []string{"search"}, Delegates: []string{"billing"},
		Sections: map[string]inference.JSON{"audit": `{ "level" : "high" }`},
	}
	before := spec.Clone()
	require.NoError(t, e.Check(spec))
	require.Equal(t, before, spec)
}

// The nearest name is offered only when it is near.
func TestNearestNames(t *testing.T) {
	e := specEngine(t, engine.Config{Plugins: []engine.Plugin{
		engine.NewPlugin("rate_limit", func(*engine.Registrar) error { return nil }),
		engine.NewPlugin("io", func(*engine.Registrar) error { return nil }),
	}})
	for name, want := range map[string]string{
		"audti": "audit", "AUDIT": "audit", "adit": "audit", "audits": "audit", "rate-limit": "rate_limit",
		"ratelimt": "rate_limit", "IO": "io", "oi": "", "xx": "", "something": "", "budgie": "budget", "": "",
	} {
		err := e.Check(engine.AgentSpec{ID: "x", PluginIDs: []string{name}})
		require.Equal(t, want, specErrors(t, err)[0].Nearest, name)
	}
}
