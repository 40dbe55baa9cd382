package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
	regLog    = state.NewLog("reg.log", state.Options[string]{Scope: state.ScopeThread})
	regCell   = state.NewCell[int]("reg.cell", state.Options[int]{Scope: state.ScopeThread})
	regEffect = effects.NewSpec[int]("reg.effect")
	regAction = phase.NewAction[int]("reg.action", phase.StepStart)
	regUser   = state.NewProfileKey("reg.user", state.Options[string]{})
	regConfig = engine.NewConfigKey("reg", engine.ConfigOptions[int]{})
)

func gaNothing(context.Context, *phase.Context, int) (phase.Command, error) {
	return phase.Command{}, nil
}

// Capability A1. Capability A2. A filter takes a plugin's hooks, gates, policies,
// tools and transforms away and leaves its keys, sections, action and effect
// handlers at work for the others.
func TestRegistrationStructuralAndBehavioural(t *testing.T) {
	build := func(said map[string]int) (engine.Config, *gaScript) {
		var mu sync.Mutex // gates are asked at the same time
		say := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			said[what]++
		}
		model := gaCalls(inference.ToolCall{ID: "c", Name: "tool", Args: "{}"})
		return engine.Config{Model: model, Plugins: []engine.Plugin{
			gaPlugin("full", func(r *engine.Registrar) {
				r.Key(regLog)
				r.ProfileKey(regUser)
				r.Section(regConfig)
				r.Action(regAction.Handle(func(context.Context, *phase.Context, int) (phase.Command, error) {
					say("action")
					return gaUpdates(regLog.Append("from the action")), nil
				}))
				r.Effect(regEffect.Handle(func(context.Context, *state.Snapshot, int) error { say("effect"); return nil }))
				r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
					say("hook")
					return phase.Command{}, nil
				}))
				r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) {
					say("gate")
					return gate.Abstain(), nil
				}))
				r.Policy(gate.PolicyFunc(func(context.Context, gate.Subject) (gate.Verdict, error) {
					say("policy")
					return gate.Verdict{}, nil
				}))
				r.Transform(inference.TransformFunc(func(_ context.Context, q inference.Request) (inference.Request, error) {
					say("transform")
					return q, nil
				}))
				r.Tool(gaTool{"tool", func(context.Context, *phase.Context) (engine.Output, error) {
					say("tool")
					return engine.Text("ok"), nil
				}})
			}),
			gaOn("user", phase.StepStart, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
				if pc.Run().Step == 1 {
					cmd.Schedule(regAction.New(1)).Emit(regEffect.New(1))
				}
				return cmd, nil
			}),
		}}, model
	}
	said := map[string]int{}
	c, model := build(said)
	eng := gaNew(t, c)
	_, err := eng.Run(t.Context(), engine.AgentSpec{ID: "all", Sections: map[string]inference.JSON{"reg": "1"}}, engine.Prompt("x"))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"action": 1, "effect": 1, "hook": 2, "gate": 1, "policy": 1, "transform": 2, "tool": 1}, said)
	require.Len(t, model.asked()[0].Tools, 1)

	said = map[string]int{}
	c, model = build(said)
	eng = gaNew(t, c)
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "some", ActiveHookFilter: []string{"user"}, Sections: map[string]inference.JSON{"reg": "1"}}, engine.Prompt("x"))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"action": 1, "effect": 1}, said)
	require.Empty(t, model.asked()[0].Tools)
	require.NoError(t, res.Err)
	require.Contains(t, model.asked()[1].Messages[2].Result.Content, "no tool")
}

// Capability A12. Faults F32 and F35. Two plugins of one name are an error that names it, as
// are two owners of one action, effect, tool, key, profile key or section, which
// names both plugins.
func TestRegistrationDuplicates(t *testing.T) {
	twice := func(register func(r *engine.Registrar)) []engine.Plugin {
		return []engine.Plugin{gaPlugin("first", register), gaPlugin("second", register)}
	}
	other := state.NewCell[string]("reg.cell", state.Options[string]{})
	for name, c := range map[string]struct {
		plugins []engine.Plugin
		what    string
		also    error
	}{
		"plugin": {plugins: []engine.Plugin{gaKeys(), gaPlugin("second", func(*engine.Registrar) {}), gaPlugin("second", func(*engine.Registrar) {})}, what: "second"},
		"action": {plugins: twice(func(r *engine.Registrar) { r.Action(regAction.Handle(gaNothing)) }), what: "reg.action"},
		"effect": {plugins: twice(func(r *engine.Registrar) {
			r.Effect(regEffect.Handle(func(context.Context, *state.Snapshot, int) error { return nil }))
		}), what: "reg.effect", also: effects.ErrDuplicateHandler},
		"tool":        {plugins: twice(func(r *engine.Registrar) { r.Tool(gaTool{name: "hammer"}) }), what: "hammer"},
		"key":         {plugins: twice(func(r *engine.Registrar) { r.Key(regCell) }), what: "reg.cell", also: state.ErrDuplicateKey},
		"profile key": {plugins: twice(func(r *engine.Registrar) { r.ProfileKey(regUser) }), what: "reg.user"},
		"section":     {plugins: twice(func(r *engine.Registrar) { r.Section(regConfig) }), what: "reg"},
		"other key of the name": {plugins: []engine.Plugin{
			gaPlugin("first", func(r *engine.Registrar) { r.Key(regCell) }), gaPlugin("second", func(r *engine.Registrar) { r.Key(other) }),
		}, what: "reg.cell", also: state.ErrDuplicateKey},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine.New(engine.Config{Plugins: c.plugins})
			require.ErrorIs(t, err, engine.ErrRegistration)
			require.ErrorContains(t, err, c.what)
			require.ErrorContains(t, err, "second")
			if name != "plugin" {
				require.ErrorContains(t, err, "first")
			}
			if c.also != nil {
				require.ErrorIs(t, err, c.also)
			}
		})
	}
}

// Capability A12. What belongs to the engine cannot be registered by a plugin: its
// name, its keys and its actions.
func TestRegistrationOfTheEnginesOwn(t *testing.T) {
	for name, p := range map[string]engine.Plugin{
		"name": gaPlugin("engine", func(*engine.Registrar) {}),
		"key":  gaPlugin("p", func(r *engine.Registrar) { r.Key(engine.Transcript) }),
		"action": gaPlugin("p", func(r *engine.Registrar) {
			r.Action(engine.ExcludeTool.Handle(func(context.Context, *phase.Context, string) (phase.Command, error) { return phase.Command{}, nil }))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine.New(engine.Config{Plugins: []engine.Plugin{p}})
			require.ErrorIs(t, err, engine.ErrRegistration)
			require.ErrorContains(t, err, "plugin "+p.Name())
		})
	}
}

// Capability A12. Every mistake of every plugin is reported at once, each with its
// plugin, and a plugin that made one has nothing registered.
func TestRegistrationMistakesAreCollected(t *testing.T) {
	boom := errors.New("boom")
	bad := gaPlugin("bad", func(r *engine.Registrar) {
		r.Key(nil)
		r.ProfileKey(nil)
		r.Section(nil)
		r.Action(phase.ActionHandler{})
		r.Effect(effects.Handler{})
		r.Hook(phase.StepStart, nil)
		r.Hook(0, phase.HookFunc(nil))
		r.Hook(77, gaDoes(phase.Command{}))
		r.Hook(phase.ToolGate, gaDoes(phase.Command{}))
		r.Hook(phase.StepEnd, gaDoes(phase.Command{}), engine.Timeout(-1))
		r.Gate(nil)
		r.Gate(gate.Func(nil), engine.Timeout(-1))
		r.Policy(nil)
		r.Transform(nil)
		r.Tool(nil, gaTool{})
	})
	fails := engine.NewPlugin("fails", func(r *engine.Registrar) error {
		r.Hook(phase.StepStart, nil)
		return boom
	})
	_, err := engine.New(engine.Config{Plugins: []engine.Plugin{bad, gaPlugin("good", func(*engine.Registrar) {}), fails}})
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "unknown phase 77")
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 18)
	for i, line := range lines {
		name := "plugin bad"
		if i >= 16 {
			name = "plugin fails"
		}
		require.Contains(t, line, name)
	}
	require.NotContains(t, err.Error(), "good")
}

// Capability A12. An action for a phase that does not exist is refused when its
// handler is registered.
func TestRegistrationOfActionForUnknownPhase(t *testing.T) {
	_, err := engine.New(engine.Config{Plugins: []engine.Plugin{gaPlugin("p", func(r *engine.Registrar) {
		r.Action(phase.NewAction[int]("lost", phase.Phase(42)).Handle(gaNothing))
	})}})
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorContains(t, err, "lost")
	require.ErrorContains(t, err, "42")
}

// gaOdd is a plugin whose methods do what they are told.
type gaOdd struct {
	name     func() string
	register func(r *engine.Registrar) error
}

func (g gaOdd) Name() string                       { return g.name() }
func (g gaOdd) Register(r *engine.Registrar) error { return g.register(r) }

// Capability A12. A plugin that is nil, panics or has no name is an error that
// helps to find it, and takes nobody else down.
func TestRegistrationOfPluginsThatMisbehave(t *testing.T) {
	boom := errors.New("boom")
	fine := func(*engine.Registrar) error { return nil }
	var typedNil *gaOdd
	for name, c := range map[string]struct {
		plugin engine.Plugin
		want   []string
		is     error
	}{
		"nil":             {plugin: nil, want: []string{"nil plugin"}},
		"typed nil":       {plugin: typedNil, want: []string{"gaOdd"}},
		"name panics":     {plugin: gaOdd{func() string { panic(boom) }, fine}, want: []string{"boom", "gaOdd"}, is: boom},
		"no name":         {plugin: gaOdd{func() string { return "" }, fine}, want: []string{"without a name", "gaOdd"}},
		"register panics": {plugin: gaOdd{func() string { return "p" }, func(*engine.Registrar) error { panic(boom) }}, want: []string{"plugin p", "boom"}, is: boom},
		"no register":     {plugin: engine.NewPlugin("p", nil), want: []string{"plugin p"}},
		"tool panics":     {plugin: gaPlugin("p", func(r *engine.Registrar) { r.Tool(gaPanicTool{}) }), want: []string{"plugin p", "no spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine.New(engine.Config{Plugins: []engine.Plugin{c.plugin}})
			require.ErrorIs(t, err, engine.ErrRegistration)
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
		})
	}
}

type gaPanicTool struct{ gaTool }

func (gaPanicTool) Spec() inference.ToolSpec { panic("no spec") }

// Capability A12. A registrar is dead after Register returned: using it changes
// nothing, also while the engine runs.
func TestRegistrationRegistrarIsDeadAfterwards(t *testing.T) {
	var kept *engine.Registrar
	ran := 0
	eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{gaPlugin("p", func(r *engine.Registrar) {
		r.Key(regCell)
		kept = r
	})}})
	before := eng.Describe()
	kept.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
		ran++
		return phase.Command{}, nil
	}))
	kept.Key(regLog)
	kept.Key(nil)
	kept.ProfileKey(regUser)
	kept.Section(regConfig)
	kept.Action(regAction.Handle(gaNothing))
	kept.Effect(regEffect.Handle(func(context.Context, *state.Snapshot, int) error { return nil }))
	kept.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { ran++; return gate.Block("late"), nil }))
	kept.Policy(gate.PolicyFunc(func(context.Context, gate.Subject) (gate.Verdict, error) { ran++; return gate.Verdict{}, nil }))
	kept.Transform(inference.TransformFunc(func(_ context.Context, q inference.Request) (inference.Request, error) { ran++; return q, nil }))
	kept.Tool(gaTool{name: "late"}, nil)
	require.Equal(t, "p", kept.Plugin())
	res, err := eng.Run(t.Context(), gaAgent, engine.Prompt("x"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Zero(t, ran)
	require.Equal(t, before, eng.Describe())
	th, err := eng.NewThread("")
	require.NoError(t, err)
	require.False(t, th.Snapshot().Has(regLog))
	var cmd phase.Command
	cmd.Schedule(regAction.New(1))
	_, err = th.Submit(t.Context(), "x", cmd)
	require.ErrorIs(t, err, phase.ErrUnknownAction)
}

// Fault B15. A plugin that is resolved many times fires once per phase; two hooks
// of one plugin on one phase both run, in order, with different ids.
func TestRegistrationHooksFireOnce(t *testing.T) {
	ran := map[string]int{}
	hook := func(name string) phase.HookFunc {
		return func(context.Context, *phase.Context) (phase.Command, error) {
			return gaUpdates(regLog.Append(name)), nil
		}
	}
	tape := &gaTape{}
	eng := gaNew(t, engine.Config{Observers: []engine.Observer{tape}, Plugins: []engine.Plugin{gaPlugin("p", func(r *engine.Registrar) {
		r.Key(regLog)
		r.Hook(phase.StepStart, hook("one"))
		r.Hook(phase.StepEnd, hook("end"))
		r.Hook(phase.StepStart, hook("two"))
	})}})
	for range 10 {
		require.NoError(t, eng.Check(gaAgent))
	}
	th, err := eng.NewThread("")
	require.NoError(t, err)
	gaRun(t, th)
	require.Equal(t, []string{"one", "two", "end"}, regLog.Get(th.Snapshot()).Slice())
	for _, e := range gaOf[engine.HookFinished](tape) {
		ran[e.Hook]++
	}
	require.Equal(t, map[string]int{"p/step_start/0": 1, "p/step_start/1": 1, "p/step_end/0": 1}, ran)
}

// Fault F33. There is one name of a plugin, asked for once: what it says of itself
// later changes nothing, and an unknown one in a filter is refused.
func TestRegistrationNameIsAskedOnce(t *testing.T) {
	asked := 0
	hooked := 0
	eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{gaOdd{
		name: func() string { asked++; return fmt.Sprintf("name%d", asked) },
		register: func(r *engine.Registrar) error {
			require.Equal(t, "name1", r.Plugin())
			r.Hook(phase.StepStart, phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) {
				hooked++
				return phase.Command{}, nil
			}))
			return nil
		},
	}}})
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"name1"}}, engine.Prompt("x"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, 1, hooked)
	require.Equal(t, 1, asked)
	_, err = eng.Run(t.Context(), engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"name2"}}, engine.Prompt("x"))
	require.ErrorIs(t, err, engine.ErrSpec)
	require.ErrorContains(t, err, "name1")
}

// Capability A12. A bad configuration is refused with every fault.
func TestRegistrationConfigFaults(t *testing.T) {
	_, err := engine.New(engine.Config{
		Limits:      engine.Limits{PhaseRounds: -1, Grace: -time.Second},
		GateDefault: 9,
		Observers:   []engine.Observer{nil},
		Models:      map[string]inference.Model{"m": nil},
		EffectMode:  99,
	})
	require.ErrorIs(t, err, engine.ErrConfig)
	for _, want := range []string{"PhaseRounds", "Grace", "GateDefault", "Observers[0]", `Models["m"]`, "EffectMode"} {
		require.ErrorContains(t, err, want)
	}
}

// Capability H6. Hooks are in the manifest: who has which, where, and under which rules.
func TestRegistrationManifestListsHooks(t *testing.T) {
	eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{gaKeys(regCell), gaOn("p", phase.StepEnd, gaDoes(phase.Command{}),
		engine.Tier(2), engine.Timeout(time.Second), engine.OnError(engine.Skip), engine.Reads(regCell), engine.Writes(regCell))}})
	hooks := eng.Describe().Plugins[1].Hooks
	require.Equal(t, []engine.HookManifest{{
		ID: "p/step_end/0", Phase: phase.StepEnd, Tier: 2, Timeout: "1s", OnError: engine.Skip, Reads: []string{"reg.cell"}, Writes: []string{"reg.cell"},
	}}, hooks)
}

// gaLife is a plugin that takes part in activation and closing.
type gaLife struct {
	name       string
	activate   func(spec engine.AgentSpec, b *engine.Batch) error
	deactivate func(b *engine.Batch) error
	close      func(ctx context.Context) error
}

func (g gaLife) Name() string                     { return g.name }
func (g gaLife) Register(*engine.Registrar) error { return nil }

func (g gaLife) OnActivate(spec engine.AgentSpec, b *engine.Batch) error {
	if g.activate == nil {
		return nil
	}
	return g.activate(spec, b)
}

func (g gaLife) OnDeactivate(b *engine.Batch) error {
	if g.deactivate == nil {
		return nil
	}
	return g.deactivate(b)
}

func (g gaLife) Close(ctx context.Context) error {
	if g.close == nil {
		return nil
	}
	return g.close(ctx)
}

// Capability A1. OnActivate runs before RunStart, for active plugins only, and its
// updates are in one commit that RunStart hooks see.
func TestRegistrationOnActivate(t *testing.T) {
	activate := func(name string) func(engine.AgentSpec, *engine.Batch) error {
		return func(spec engine.AgentSpec, b *engine.Batch) error {
			b.Update(regLog.Append(name + " for " + spec.ID))
			return nil
		}
	}
	var seen []string
	th := gaPlugins(t, gaKeys(regLog),
		gaLife{name: "a", activate: activate("a")}, gaLife{name: "b", activate: activate("b")}, gaLife{name: "c", activate: activate("c")},
		gaOn("look", phase.RunStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
			seen = regLog.Get(pc.Snapshot()).Slice()
			return phase.Command{}, nil
		}))
	spec := engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"look", "a", "c"}}
	res, err := th.Run(t.Context(), spec, engine.Prompt("x"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, []string{"a for x", "c for x"}, seen)
	_, err = th.Run(t.Context(), spec, engine.Prompt("again"))
	require.NoError(t, err)
	require.Len(t, seen, 4, "at the start of each run")
}

// Capability A1. When one OnActivate fails or panics none of the updates commit, the
// run ends with an error that names every plugin at fault, and RunEnd runs.
func TestRegistrationOnActivateFails(t *testing.T) {
	boom := errors.New("boom")
	ends := 0
	th := gaPlugins(t, gaKeys(regLog),
		gaLife{name: "a", activate: func(_ engine.AgentSpec, b *engine.Batch) error { b.Update(regLog.Append("a")); return nil }},
		gaLife{name: "b", activate: func(_ engine.AgentSpec, b *engine.Batch) error { b.Update(regLog.Append("b")); return boom }},
		gaLife{name: "c", activate: func(engine.AgentSpec, *engine.Batch) error { panic("c fell over") }},
		gaOn("end", phase.RunEnd, func(context.Context, *phase.Context) (phase.Command, error) { ends++; return phase.Command{}, nil }))
	res, err := th.Run(t.Context(), gaAgent, engine.Prompt("x"))
	require.NoError(t, err)
	require.Equal(t, phase.ReasonError, res.Reason)
	require.ErrorIs(t, res.Err, boom)
	require.ErrorContains(t, res.Err, "plugin b")
	require.ErrorContains(t, res.Err, "c fell over")
	require.Zero(t, regLog.Get(th.Snapshot()).Len())
	require.Equal(t, 1, ends)
}

// Capability A1. A plugin cannot change the agent through the spec it is given, nor
// anything through a batch that it keeps.
func TestRegistrationOnActivateCannotReachTheAgent(t *testing.T) {
	var kept *engine.Batch
	th := gaPlugins(t, gaKeys(regLog, regCell),
		gaLife{name: "a", activate: func(spec engine.AgentSpec, b *engine.Batch) error {
			spec.ActiveHookFilter[0] = "changed"
			kept = b
			b.Update(regCell.With(1))
			return nil
		}},
		gaOn("hook", phase.RunStart, func(context.Context, *phase.Context) (phase.Command, error) {
			kept.Update(regCell.With(2))
			return gaUpdates(regLog.Append("hook")), nil
		}))
	spec := engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"a", "hook"}}
	_, err := th.Run(t.Context(), spec, engine.Prompt("x"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "hook"}, spec.ActiveHookFilter)
	require.Equal(t, []string{"hook"}, regLog.Get(th.Snapshot()).Slice())
	require.Equal(t, 1, regCell.Get(th.Snapshot()))
}

// Capability A1. At a handoff plugins that become inactive clean up and those that
// become active prepare, in one commit with it; plugins active in both are left alone.
func TestRegistrationHandoffActivates(t *testing.T) {
	life := func(name string) engine.Plugin {
		return gaLife{
			name:       name,
			activate:   func(spec engine.AgentSpec, b *engine.Batch) error { b.Update(regLog.Append("+" + name)); return nil },
			deactivate: func(b *engine.Batch) error { b.Update(regLog.Append("-" + name)); return nil },
		}
	}
	first := engine.AgentSpec{ID: "first", ActiveHookFilter: []string{"switch", "both", "old"}}
	second := engine.AgentSpec{ID: "second", ActiveHookFilter: []string{"both", "new"}}
	tape := &gaTape{}
	th := gaThread(t, engine.Config{
		Agents: []engine.AgentSpec{first, second}, Observers: []engine.Observer{tape},
		Plugins: []engine.Plugin{gaKeys(regLog), life("old"), life("both"), life("new"),
			gaOn("switch", phase.StepStart, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
				return gaUpdates(engine.HandOff("second")), nil
			})},
	})
	res, err := th.Run(t.Context(), first, engine.Prompt("x"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, "second", res.Agent)
	require.Equal(t, []string{"+old", "+both", "-old", "+new"}, regLog.Get(th.Snapshot()).Slice())
	for _, e := range gaOf[engine.Committed](tape) {
		for _, w := range e.Writes {
			if w.Plugin == "new" {
				require.GreaterOrEqual(t, len(e.Writes), 4, "agent, cleaning up and preparing are one commit")
				require.Equal(t, "old", e.Writes[len(e.Writes)-2].Plugin)
			}
		}
	}
}

// Capability A1. Close closes every plugin at the same time under one deadline: a
// hung one, many hung ones, a panic and an exit cost one grace, are named, and the
// others are closed.
func TestRegistrationClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		release := make(chan struct{})
		closed := make(chan string, 8)
		hang := func(context.Context) error { <-release; return nil }
		eng := gaNew(t, engine.Config{Limits: engine.Limits{Grace: time.Second}, Plugins: []engine.Plugin{
			gaLife{name: "hung1", close: hang}, gaLife{name: "hung2", close: hang}, gaLife{name: "hung3", close: hang},
			gaLife{name: "fails", close: func(context.Context) error { return boom }},
			gaLife{name: "panics", close: func(context.Context) error { panic("oh") }},
			gaLife{name: "exits", close: func(context.Context) error { runtime.Goexit(); return nil }},
			gaLife{name: "good", close: func(ctx context.Context) error {
				_, limited := ctx.Deadline()
				require.True(t, limited)
				closed <- "good"
				return nil
			}},
			gaPlugin("plain", func(*engine.Registrar) {}),
		}})
		th, err := eng.NewThread("")
		require.NoError(t, err)
		start := time.Now()
		err = eng.Close(t.Context())
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, err, boom)
		require.ErrorIs(t, err, engine.ErrTimeout)
		require.ErrorIs(t, err, engine.ErrGoexit)
		for _, name := range []string{"hung1", "hung2", "hung3", "fails", "panics", "exits"} {
			require.ErrorContains(t, err, "closing plugin "+name)
		}
		require.NotContains(t, err.Error(), "good")
		require.Equal(t, "good", <-closed)
		require.NoError(t, eng.Close(t.Context()), "closing twice is fine")
		_, err = eng.NewThread("")
		require.ErrorIs(t, err, engine.ErrClosed)
		_, err = eng.Run(t.Context(), gaAgent, engine.Prompt("x"))
		require.ErrorIs(t, err, engine.ErrClosed)
		_, err = th.Run(t.Context(), gaAgent, engine.Prompt("x"))
		require.ErrorIs(t, err, engine.ErrClosed)
		_, err = th.RunPhase(t.Context(), gaAgent, phase.StepStart)
		require.ErrorIs(t, err, engine.ErrClosed)
		_, err = th.Submit(t.Context(), "x", phase.Command{})
		require.ErrorIs(t, err, engine.ErrClosed)
		require.NotNil(t, th.Snapshot(), "state can still be read")
		close(release)
	})
}

// Capability A1. A context that ends cuts Close short.
func TestRegistrationCloseWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{gaLife{name: "hung", close: func(context.Context) error { <-release; return nil }}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, eng.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Millisecond, time.Since(start))
		close(release)
	})
}

// Scenario: half a plugin. Of a plugin whose registration fails or panics midway nothing
// remains: there is no engine with the half of it, and what it had registered is free
// for another one.
func TestRegistrationThatFailsMidwayLeavesNothing(t *testing.T) {
	fired := 0
	fill := func(r *engine.Registrar) {
		r.Key(regCell)
		r.Section(regConfig)
		r.Action(regAction.Handle(gaNothing))
		r.Effect(regEffect.Handle(func(context.Context, *state.Snapshot, int) error { return nil }))
		r.Tool(gaTool{name: "hammer"})
		r.Hook(phase.RunStart, phase.HookFunc(func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			fired++
			return cmd, nil
		}))
	}
	boom := errors.New("boom")
	for name, last := range map[string]func() error{
		"error": func() error { return boom },
		"panic": func() error { panic(boom) },
	} {
		t.Run(name, func(t *testing.T) {
			fired = 0
			half := engine.NewPlugin("half", func(r *engine.Registrar) error { fill(r); return last() })
			for _, plugins := range [][]engine.Plugin{{half}, {half, gaKeys(regLog)}, {gaKeys(regLog), half}} {
				eng, err := engine.New(engine.Config{Plugins: plugins})
				require.Nil(t, eng)
				require.ErrorIs(t, err, engine.ErrRegistration)
				require.ErrorContains(t, err, "plugin half")
			}
			// What it left behind is not in the way of one that does it right.
			model := gaSays("done")
			th := gaThread(t, engine.Config{Model: model, Plugins: []engine.Plugin{gaPlugin("whole", fill)}})
			gaRun(t, th)
			require.Equal(t, 1, fired)
			require.Len(t, model.asked()[0].Tools, 1)
		})
	}
}
