package engine_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

type panel struct{ kind, name, text string }

func (p panel) Kind() string        { return p.kind }
func (p panel) Name() string        { return p.name }
func (p panel) Description() string { return p.text }

func gaExtras(plugin string, extras ...engine.Extra) engine.Plugin {
	return gaPlugin(plugin, func(r *engine.Registrar) { r.Extra(extras...) })
}

func gaButtons(t *testing.T, eng *engine.Engine, spec engine.AgentSpec) map[string]engine.Extra {
	t.Helper()
	list, err := eng.Extras(spec, "button")
	require.NoError(t, err)
	return maps.Collect(list)
}

// What plugins bring for the program is handed out by kind, for active plugins only,
// and listed in the manifest.
func TestExtras(t *testing.T) {
	undo, redo, chart := panel{"button", "undo", "takes back"}, panel{"button", "redo", ""}, panel{"chart", "undo", ""}
	eng := gaNew(t, engine.Config{Plugins: []engine.Plugin{gaExtras("a", undo, chart), gaExtras("b", redo)}})
	require.Equal(t, map[string]engine.Extra{"a": undo, "b": redo}, gaButtons(t, eng, engine.AgentSpec{ID: "x"}))
	require.Equal(t, map[string]engine.Extra{"b": redo}, gaButtons(t, eng, engine.AgentSpec{ID: "x", ActiveHookFilter: []string{"b"}}))
	_, err := eng.Extras(engine.AgentSpec{}, "button")
	require.ErrorIs(t, err, engine.ErrSpec)
	require.Equal(t, []engine.ExtraManifest{{Kind: "button", Name: "undo", Description: "takes back"}, {Kind: "chart", Name: "undo"}}, eng.Describe().Plugins[0].Extras)
}

// Capability M6. Two of one name are a mistake that names both plugins.
func TestExtrasAreUniquePerKind(t *testing.T) {
	_, err := engine.New(engine.Config{Plugins: []engine.Plugin{
		gaExtras("a", panel{"button", "undo", ""}), gaExtras("b", panel{"button", "undo", ""}), gaExtras("c", panel{"", "x", ""}), gaExtras("d", nil)}})
	require.ErrorIs(t, err, engine.ErrRegistration)
	require.ErrorContains(t, err, `plugin b: button "undo" is already registered by plugin a`)
	require.ErrorContains(t, err, "plugin c: an extra without kind or name")
	require.ErrorContains(t, err, "plugin d: an extra without kind or name")
}

// Code of the program sees what a hook would see, and the same while a run is under way.
func TestThreadContext(t *testing.T) {
	var inside string
	var eng *engine.Engine
	var th *engine.Thread
	eng = gaNew(t, engine.Config{Model: gaSays("hello"), Plugins: []engine.Plugin{
		gaKeys(actionsCell),
		gaOn("a", phase.StepEnd, func(context.Context, *phase.Context) (cmd phase.Command, err error) {
			pc, err := th.Context(engine.AgentSpec{ID: "x"})
			inside = pc.Run().ID
			cmd.Update(actionsCell.With(4))
			return cmd, err
		})}})
	th, err := eng.NewThread("t")
	require.NoError(t, err)
	res, err := th.Run(t.Context(), engine.AgentSpec{ID: "x"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, res.Run, inside)

	pc, err := th.Context(engine.AgentSpec{ID: "x"})
	require.NoError(t, err)
	require.Equal(t, 4, actionsCell.Get(pc.Snapshot()))
	require.Equal(t, "hello", pc.Messages().Slice()[1].Text)
	require.Equal(t, "t", pc.Run().Thread)
	require.Zero(t, pc.Phase())
	_, err = th.Context(engine.AgentSpec{})
	require.ErrorIs(t, err, engine.ErrSpec)
	require.NoError(t, eng.Close(t.Context()))
	_, err = th.Context(engine.AgentSpec{ID: "x"})
	require.ErrorIs(t, err, engine.ErrClosed)
}

// saver is a tool that brings a key, a hook, a gate and an extra.
func saver(t *testing.T) engine.Tool {
	tool := engine.NewTool(inference.ToolSpec{Name: "save"}, func(_ context.Context, _ *phase.Context, in struct {
		Name string `json:"name"`
	}) (engine.Output, error) {
		return engine.Text("saved " + in.Name), nil
	})
	return engine.WithParts(tool, func(r *engine.Registrar) error {
		require.Equal(t, "files", r.Plugin())
		r.Key(actionsLog)
		r.Hook(phase.AfterToolExecute, gaWrites(actionsLog.Append("saw a call")))
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if pc.Call().Name == "save" && pc.Call().Args == `{"name":"x"}` {
				return gate.Block("never x"), nil
			}
			return gate.Abstain(), nil
		}))
		r.Extra(panel{"button", "save", "saves"})
		return nil
	})
}

// Capability G8. A tool brings its own hooks, gates and commands, which work for the
// agents that may use the tool, and its own checks stay.
func TestToolWithParts(t *testing.T) {
	other := engine.NewTool(inference.ToolSpec{Name: "look"}, func(context.Context, *phase.Context, struct{}) (engine.Output, error) {
		return engine.Text("seen"), nil
	})
	for name, c := range map[string]struct {
		spec engine.AgentSpec
		has  bool
	}{
		"offered":      {engine.AgentSpec{ID: "a"}, true},
		"excluded":     {engine.AgentSpec{ID: "a", ExcludedTools: []string{"save"}}, false},
		"not allowed":  {engine.AgentSpec{ID: "a", AllowedTools: []string{"look"}}, false},
		"not active":   {engine.AgentSpec{ID: "a", ActiveHookFilter: []string{"others"}}, false},
		"by a pattern": {engine.AgentSpec{ID: "a", AllowedToolPatterns: []string{"sa*"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			config, rec := enginetest.Config(t, gaPlugin("files", func(r *engine.Registrar) { r.Tool(saver(t)) }), gaPlugin("others", func(r *engine.Registrar) { r.Tool(other) }))
			config.Model = enginetest.NewScript(
				enginetest.Call("c1", "save", inference.JSON(`{"name":"x"}`)).And(enginetest.Call("c2", "save", inference.JSON(`{"name":"y"}`))).And(enginetest.Call("c3", "save", inference.JSON(`{"nam":"y"}`))).And(enginetest.Call("c4", "look", inference.JSON(`{}`))),
				enginetest.Say("done"))
			eng := gaNew(t, config)
			th, err := eng.NewThread("")
			require.NoError(t, err)
			res, err := th.Run(t.Context(), c.spec, engine.Prompt("go"))
			require.NoError(t, err)
			require.NoError(t, res.Err)
			var got []inference.Outcome
			for _, f := range enginetest.Select[engine.ToolFinished](rec.Events()) {
				got = append(got, f.Result.Outcome)
			}
			extras := gaButtons(t, eng, c.spec)
			if c.has {
				require.Equal(t, []inference.Outcome{"blocked", "ok", "error"}, got[:3])
				require.Len(t, gaLog(th), 4)
				require.Len(t, extras, 1)
			} else {
				require.Equal(t, []inference.Outcome{"error", "error", "error"}, got[:3])
				require.Empty(t, gaLog(th))
				require.Empty(t, extras)
			}
		})
	}
}

// What goes wrong in the parts of a tool leaves nothing of its plugin, and a tool of an
// input cannot bring any.
func TestToolWithPartsRefused(t *testing.T) {
	for name, bring := range map[string]func(r *engine.Registrar) error{
		"error":   func(*engine.Registrar) error { return context.Canceled },
		"panic":   func(*engine.Registrar) error { panic("no") },
		"mistake": func(r *engine.Registrar) error { r.Gate(nil); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine.New(engine.Config{Plugins: []engine.Plugin{
				gaPlugin("files", func(r *engine.Registrar) { r.Tool(engine.WithParts(saver(t), bring)) })}})
			require.ErrorIs(t, err, engine.ErrRegistration)
			require.ErrorContains(t, err, "plugin files")
		})
	}
	in := engine.Prompt("go")
	in.Tools = []engine.Tool{saver(t)}
	_, err := gaNew(t, engine.Config{Model: gaSays("x")}).Run(t.Context(), engine.AgentSpec{ID: "a"}, in)
	require.ErrorIs(t, err, engine.ErrInput)
	require.ErrorContains(t, err, "only a plugin can register")
}

// Capability M3. A transform sees the state that the request was made of, and its
// agent, so that it can go by more than the request.
func TestTransformsSeeTheMoment(t *testing.T) {
	config, _ := enginetest.Config(t, gaKeys(actionsCell),
		gaOn("writer", phase.BeforeInference, gaWrites(actionsCell.With(7))),
		gaPlugin("reader", func(r *engine.Registrar) {
			r.Transform(inference.TransformFunc(func(ctx context.Context, req inference.Request) (inference.Request, error) {
				pc, ok := phase.FromContext(ctx)
				require.True(t, ok)
				require.Equal(t, phase.BeforeInference, pc.Phase())
				require.Equal(t, len(req.Messages), pc.Messages().Len())
				req.System = fmt.Sprintf("%s has %d at step %d", pc.Agent().ID, actionsCell.Get(pc.Snapshot()), pc.Run().Step)
				return req, nil
			}))
		}))
	var asked string
	config.Model = inference.ModelFunc(func(_ context.Context, req inference.Request) (inference.Response, error) {
		asked = req.System
		return inference.Response{Message: inference.Assistant("done")}, nil
	})
	res, err := gaNew(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Equal(t, "a has 7 at step 1", asked)
	_, ok := phase.FromContext(t.Context())
	require.False(t, ok)
}

// A tool made by NewTool gets what a gate saw: arguments that programs read in several
// ways are refused before any gate is asked.
//
// Capability M2.
func TestArgumentsHaveOneReading(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a","path":"b"}`:               `field "path" is there twice`,
		`{"path":"a","PATH":"b"}`:               `unknown field "PATH"`,
		`{"Path":"a"}`:                          `unknown field "Path"`,
		`{"path":"a","more":{"x":1,"x":2}}`:     `field "x" is there twice`,
		`{"path":"a","more":{"x":1},"list":[]}`: "",
	} {
		asked := false
		config, rec := enginetest.Config(t, gaPlugin("p", func(r *engine.Registrar) {
			r.Gate(gate.Func(func(context.Context, *phase.Context) (gate.Decision, error) { asked = true; return gate.Abstain(), nil }))
			r.Tool(engine.NewTool(inference.ToolSpec{Name: "save"}, func(_ context.Context, _ *phase.Context, in struct {
				Path string         `json:"path"`
				More map[string]any `json:"more"`
				List []string       `json:"list"`
			}) (engine.Output, error) {
				return engine.Text("saved " + in.Path), nil
			}))
		}))
		config.Model = enginetest.NewScript(enginetest.Call("c1", "save", inference.JSON(args)), enginetest.Say("done"))
		_, err := gaNew(t, config).Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
		require.NoError(t, err)
		result := enginetest.Select[engine.ToolFinished](rec.Events())[0].Result
		if want == "" {
			require.Equal(t, "saved a", result.Content)
			continue
		}
		require.Equal(t, inference.OutcomeError, result.Outcome)
		require.Contains(t, result.Content, want)
		require.False(t, asked, args)
	}
}
