package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	manifestTitle = state.NewCell("title", state.Options[string]{Scope: state.ScopeThread})
	manifestCount = state.NewCounter("count", state.Options[int64]{})
	manifestUser  = state.NewProfileKey("user", state.Options[string]{})
)

// describedPlugins has every kind of part.
func describedPlugins() []engine.Plugin {
	hook := phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, nil })
	abstain := gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Abstain(), nil })
	policy := gate.PolicyFunc(func(context.Context, gate.Subject) (gate.Verdict, error) { return gate.Verdict{}, nil })
	notify := phase.NewAction[string]("notify", phase.StepEnd).ReplaySafe()
	audit := effects.NewSpec[string]("audit")
	return []engine.Plugin{
		engine.NewPlugin("namer", func(r *engine.Registrar) error {
			r.Key(manifestTitle, manifestCount)
			r.ProfileKey(manifestUser)
			r.Section(budgetSection)
			r.Hook(phase.StepEnd, hook, engine.Tier(1), engine.Timeout(2*time.Second), engine.OnError(engine.Skip),
				engine.Reads(manifestCount), engine.Writes(manifestTitle))
			r.Hook(phase.StepEnd, hook)
			r.Action(notify.Handle(func(context.Context, *phase.Context, string) (phase.Command, error) { return phase.Command{}, nil }))
			r.Effect(audit.Handle(func(context.Context, *state.Snapshot, string) error { return nil }))
			return nil
		}),
		engine.NewPlugin(`guard "x"`, func(r *engine.Registrar) error {
			r.Hook(phase.StepEnd, hook, engine.Tier(1), engine.Writes(manifestTitle, manifestCount))
			r.Gate(abstain, engine.FailOpen(), engine.Timeout(time.Second))
			r.Policy(policy)
			r.Transform(inference.TransformFunc(func(_ context.Context, q inference.Request) (inference.Request, error) { return q, nil }))
			r.Tool(engine.NewTool(inference.ToolSpec{Name: "search", Kind: "read", Description: "Finds\nthings"},
				func(context.Context, *phase.Context, struct{}) (engine.Output, error) { return engine.Output{}, nil }))
			return nil
		}),
	}
}

func manifestOf(t *testing.T, plugins ...engine.Plugin) engine.Manifest {
	t.Helper()
	e, err := engine.New(engine.Config{Plugins: plugins, Model: inference.ModelFunc(
		func(context.Context, inference.Request) (inference.Response, error) { return inference.Response{}, nil })})
	require.NoError(t, err)
	return e.Describe()
}

// Hooks that declare the same key in one phase and tier are told before anything
// runs.
//
// Capability B10. Capability H6.
func TestManifestConflicts(t *testing.T) {
	m := manifestOf(t, describedPlugins()...)
	require.Equal(t, []engine.PotentialConflict{{
		Phase: phase.StepEnd, Tier: 1, Key: "count", Merge: state.Commutative,
		Hooks: []string{`guard "x"/step_end/0`}, Readers: []string{"namer/step_end/0"},
	}, {
		Phase: phase.StepEnd, Tier: 1, Key: "title",
		Hooks: []string{"namer/step_end/0", `guard "x"/step_end/0`},
	}}, m.Conflicts)
	require.Equal(t, []string{"namer/step_end/1"}, m.Undeclared)
}

// Capability B10.
func TestManifestConflictRules(t *testing.T) {
	hook := phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, nil })
	type declared struct {
		at      phase.Phase
		options []engine.HookOption
	}
	w, r := engine.Writes, engine.Reads
	for name, c := range map[string]struct {
		first, second declared
		want          int
	}{
		"two writers":                 {declared{phase.StepEnd, []engine.HookOption{w(manifestTitle)}}, declared{phase.StepEnd, []engine.HookOption{w(manifestTitle)}}, 1},
		"other phase":                 {declared{phase.StepEnd, []engine.HookOption{w(manifestTitle)}}, declared{phase.StepStart, []engine.HookOption{w(manifestTitle)}}, 0},
		"other tier":                  {declared{phase.StepEnd, []engine.HookOption{w(manifestTitle)}}, declared{phase.StepEnd, []engine.HookOption{w(manifestTitle), engine.Tier(1)}}, 0},
		"commutative":                 {declared{phase.StepEnd, []engine.HookOption{w(manifestCount)}}, declared{phase.StepEnd, []engine.HookOption{w(manifestCount)}}, 0},
		"reader":                      {declared{phase.StepEnd, []engine.HookOption{w(manifestCount)}}, declared{phase.StepEnd, []engine.HookOption{r(manifestCount)}}, 1},
		"two readers":                 {declared{phase.StepEnd, []engine.HookOption{r(manifestTitle)}}, declared{phase.StepEnd, []engine.HookOption{r(manifestTitle)}}, 0},
		"reader that writes itself":   {declared{phase.StepEnd, []engine.HookOption{r(manifestTitle), w(manifestTitle)}}, declared{phase.StepEnd, nil}, 0},
		"commutative writer reads it": {declared{phase.StepEnd, []engine.HookOption{r(manifestCount), w(manifestCount)}}, declared{phase.StepEnd, []engine.HookOption{w(manifestCount)}}, 1},
		"one hook twice":              {declared{phase.StepEnd, []engine.HookOption{w(manifestTitle, manifestTitle), w(manifestTitle)}}, declared{phase.StepEnd, nil}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifestOf(t,
				engine.NewPlugin("keys", func(r *engine.Registrar) error { r.Key(manifestTitle, manifestCount); return nil }),
				engine.NewPlugin("a", func(r *engine.Registrar) error { r.Hook(c.first.at, hook, c.first.options...); return nil }),
				engine.NewPlugin("b", func(r *engine.Registrar) error { r.Hook(c.second.at, hook, c.second.options...); return nil }))
			require.Len(t, m.Conflicts, c.want)
		})
	}
}

func TestManifestJSON(t *testing.T) {
	text, err := json.MarshalIndent(manifestOf(t, describedPlugins()[1]), "", " ")
	require.NoError(t, err)
	require.Equal(t, `{
 "plugins": [
  {
   "name": "guard \"x\"",
   "source": "github.com/ddd26017/fixpoint/engine_test",
   "active": true,
   "hooks": [
    {
     "id": "guard \"x\"/step_end/0",
     "phase": "step_end",
     "tier": 1,
     "on_error": "fail",
     "writes": [
      "title",
      "count"
     ]
    }
   ],
   "gates": [
    {
     "id": "guard \"x\"/tool_gate/0",
     "phase": "tool_gate",
     "timeout": "1s",
     "fail_open": true
    },
    {
     "id": "guard \"x\"/tool_gate/1",
     "phase": "tool_gate",
     "policy": true
    }
   ],
   "transforms": 1,
   "tools": [
    {
     "name": "search",
     "kind": "read",
     "description": "Finds\nthings"
    }
   ]
  }
 ]
}`, string(text))

	empty, err := json.Marshal(manifestOf(t))
	require.NoError(t, err)
	require.Equal(t, `{"plugins":[]}`, string(empty))
}

// A hook that declares to write nothing is no unknown.
func TestManifestSilentHook(t *testing.T) {
	m := manifestOf(t, engine.NewPlugin("p", func(r *engine.Registrar) error {
		hook := phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, nil })
		r.Key(manifestTitle)
		r.Hook(phase.StepEnd, hook, engine.Writes())
		r.Hook(phase.StepEnd, hook)
		r.Hook(phase.StepEnd, hook, engine.Writes(), engine.Writes(manifestTitle))
		return nil
	}))
	require.Equal(t, []string{"p/step_end/1"}, m.Undeclared)
	require.True(t, m.Plugins[0].Hooks[0].Silent)
	require.False(t, m.Plugins[0].Hooks[2].Silent)
}

// Capability B10.
func TestManifestFor(t *testing.T) {
	all := manifestOf(t, describedPlugins()...)
	m := all.For(engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"namer"}})
	require.Equal(t, "x", m.Agent)
	require.True(t, m.Plugins[0].Active)
	require.False(t, m.Plugins[1].Active)
	require.Empty(t, m.Conflicts, "a conflict needs two active hooks")
	require.Equal(t, []string{"namer/step_end/1"}, m.Undeclared)

	require.Empty(t, all.For(engine.AgentSpec{ID: "x", PluginIDs: []string{`guard "x"`}}).Undeclared)
	require.Equal(t, all.Conflicts, all.For(engine.AgentSpec{ID: "x"}).Conflicts)
	require.True(t, all.Plugins[1].Active, "the original stays as it was")
	require.Len(t, all.Conflicts, 2)
}

func TestManifestIsDeterministic(t *testing.T) {
	first := manifestOf(t, describedPlugins()...)
	for range 20 {
		require.Equal(t, first, manifestOf(t, describedPlugins()...))
	}
}
