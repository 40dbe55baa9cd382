package picture_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/picture"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	title   = state.NewCell("title", state.Options[string]{Scope: state.ScopeThread})
	count   = state.NewCounter("count", state.Options[int64]{})
	user    = state.NewProfileKey("user", state.Options[string]{})
	section = engine.NewConfigKey("budget", engine.ConfigOptions[struct{}]{})
)

var nothing = phase.HookFunc(func(context.Context, *phase.Context) (phase.Command, error) { return phase.Command{}, nil })

// describedPlugins has every kind of part.
func describedPlugins() []engine.Plugin {
	abstain := gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { return gate.Abstain(), nil })
	policy := gate.PolicyFunc(func(context.Context, gate.Subject) (gate.Verdict, error) { return gate.Verdict{}, nil })
	notify := phase.NewAction[string]("notify", phase.StepEnd).ReplaySafe()
	audit := effects.NewSpec[string]("audit")
	return []engine.Plugin{
		engine.NewPlugin("namer", func(r *engine.Registrar) error {
			r.Key(title, count)
			r.ProfileKey(user)
			r.Section(section)
			r.Hook(phase.StepEnd, nothing, engine.Tier(1), engine.Timeout(2*time.Second), engine.OnError(engine.Skip),
				engine.Reads(count), engine.Writes(title))
			r.Hook(phase.StepEnd, nothing)
			r.Action(notify.Handle(func(context.Context, *phase.Context, string) (phase.Command, error) { return phase.Command{}, nil }))
			r.Effect(audit.Handle(func(context.Context, *state.Snapshot, string) error { return nil }))
			return nil
		}),
		engine.NewPlugin(`guard "x"`, func(r *engine.Registrar) error {
			r.Hook(phase.StepEnd, nothing, engine.Tier(1), engine.Writes(title, count))
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

func TestText(t *testing.T) {
	require.Equal(t, `plugin namer
  from github.com/ddd26017/fixpoint/engine/picture_test
  key title; thread; exclusive
  key count; run; commutative
  profile key user
  section budget
  hook namer/step_end/0; tier 1; timeout 2s; on error skip; reads count; writes title
  hook namer/step_end/1; tier 0; on error fail
  action notify; at step_end; replay-safe
  effect audit
plugin guard "x"
  from github.com/ddd26017/fixpoint/engine/picture_test
  hook guard "x"/step_end/0; tier 1; on error fail; writes title, count
  gate guard "x"/tool_gate/0; timeout 1s; fails open
  gate guard "x"/tool_gate/1; policy
  transforms 1
  tool search; kind read; Finds things
could conflict
  step_end; tier 1; commutative key count; written by guard "x"/step_end/0; read by namer/step_end/0
  step_end; tier 1; exclusive key title; written by namer/step_end/0, guard "x"/step_end/0
declare no writes, so could conflict with any hook of their phase and tier
  namer/step_end/1
`, picture.Text(manifestOf(t, describedPlugins()...)))
	require.Empty(t, picture.Text(manifestOf(t)))
}

func TestMermaid(t *testing.T) {
	require.Equal(t, `flowchart TD
    phase1(["run_start"])
    phase2(["step_start"])
    phase3(["before_inference"])
    phase4(["after_inference"])
    phase5(["tool_gate"])
    phase6(["before_tool_execute"])
    phase7(["after_tool_execute"])
    phase8(["step_end"])
    phase9(["run_end"])
    phase1 --> phase2
    phase2 --> phase3
    phase3 --> phase4
    phase4 --> phase5
    phase5 --> phase6
    phase6 --> phase7
    phase7 --> phase8
    phase8 --> phase9
    phase8 -->|next step| phase2
    k0[("title")]:::fought
    k1[("count")]:::fought
    p0h0["namer/step_end/0<br/>tier 1"]
    phase8 --- p0h0
    k1 -.->|read by| p0h0
    p0h0 -->|writes| k0
    p0h1["namer/step_end/1<br/>tier 0"]
    phase8 --- p0h1
    p1h0["guard #quot;x#quot;/step_end/0<br/>tier 1"]:::inactive
    phase8 --- p1h0
    p1h0 -->|writes| k0
    p1h0 -->|writes| k1
    p1g0{{"guard #quot;x#quot;/tool_gate/0"}}:::inactive
    phase5 --- p1g0
    p1g1{{"guard #quot;x#quot;/tool_gate/1<br/>policy"}}:::inactive
    phase5 --- p1g1
    classDef fought stroke-width:3px
    classDef inactive stroke-dasharray:4 4
`, picture.Mermaid(withInactive(manifestOf(t, describedPlugins()...), 1)))
}

func withInactive(m engine.Manifest, plugin int) engine.Manifest {
	m.Plugins[plugin].Active = false
	return m
}

func TestMermaidEscapesNames(t *testing.T) {
	key := state.NewCell("a\"];<i>#quot;`%%\\", state.Options[string]{})
	text := picture.Mermaid(manifestOf(t, engine.NewPlugin("p", func(r *engine.Registrar) error { r.Key(key); return nil })))
	require.Contains(t, text, `    k0[("a#quot;];#lt;i#gt;#35;quot;#96;#37;#37;#92;")]`+"\n")
}

// What a plugin that is not active has is marked, and so is a hook that writes nothing.
func TestTextMarks(t *testing.T) {
	all := manifestOf(t, append(describedPlugins(), engine.NewPlugin("quiet", func(r *engine.Registrar) error {
		r.Hook(phase.StepEnd, nothing, engine.Writes())
		r.Extra(button{})
		return nil
	}))...)
	text := picture.Text(all.For(engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"namer", "quiet"}}))
	require.Contains(t, text, "agent x\nplugin namer\n")
	require.Contains(t, text, "\nplugin guard \"x\" (inactive)\n")
	require.Contains(t, text, "  hook quiet/step_end/0; tier 0; on error fail; writes nothing\n  button undo; takes back\n")
	require.NotContains(t, text, "could conflict\n  step_end", "a conflict needs two active hooks")
}

type button struct{}

func (button) Kind() string        { return "button" }
func (button) Name() string        { return "undo" }
func (button) Description() string { return "takes back" }
